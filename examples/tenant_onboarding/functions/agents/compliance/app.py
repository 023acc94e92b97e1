"""The compliance agent: asks an officer to approve a tenant."""

from datetime import timedelta
from functools import cache

from roundsman import Agent, Callback, StepRequest
from roundsman.agents.http import RemoteService
from workflows.registry import WORKFLOWS
from workflows.resources import create, delete
from workflows.tenant import Tenant
from workflows.tenant_onboarding import approve_tenant

compliance = Agent("compliance", WORKFLOWS)
service = cache(RemoteService.from_env)  # the address in SERVICE_URL

TIME_TO_DECIDE = timedelta(days=5)


@compliance.performs(approve_tenant)
def ask(request: StepRequest) -> Callback:
    """Open a review. The officer's decision comes later, with the token."""
    tenant = request.input_as(Tenant)
    create(
        service(),
        "compliance",
        request,
        company=tenant.company,
        country=tenant.country,
        vatNumber=tenant.vatNumber,
        callbackToken=request.callback_token,
    )
    return Callback(within=TIME_TO_DECIDE)


@compliance.compensates(approve_tenant)
def withdraw(request: StepRequest) -> None:
    """Withdraw the review."""
    delete(service(), "compliance", request)


handler = compliance.lambda_handler
