"""The compliance agent: asks an officer to approve a tenant, and reminds of it each day."""

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
    return Callback(within=TIME_TO_DECIDE, remind_every=timedelta(days=1))


@compliance.reminds(approve_tenant)
def remind(request: StepRequest) -> None:
    """Remind the officer of the review. Each reminder has a key of its own."""
    create(
        service(),
        "compliance",
        request,
        reminder=request.reminder,
        callbackToken=request.callback_token,
    )


@compliance.compensates(approve_tenant)
def withdraw(request: StepRequest) -> None:
    """Withdraw the review."""
    delete(service(), "compliance", request)


handler = compliance.lambda_handler
