"""The billing agent: starts the subscription of a tenant."""

from functools import cache

from roundsman import Agent, Json, StepRequest
from roundsman.agents.http import RemoteService
from workflows.registry import WORKFLOWS
from workflows.resources import create, delete
from workflows.tenant import Tenant
from workflows.tenant_onboarding import start_billing

billing = Agent("billing", WORKFLOWS)
service = cache(RemoteService.from_env)  # the address in SERVICE_URL


@billing.performs(start_billing)
def subscribe(request: StepRequest) -> Json:
    """Start the subscription."""
    tenant = request.input_as(Tenant)
    return create(service(), "billing", request, plan=tenant.plan, vatNumber=tenant.vatNumber)


@billing.compensates(start_billing)
def unsubscribe(request: StepRequest) -> None:
    """End the subscription, without an invoice."""
    delete(service(), "billing", request)


handler = billing.lambda_handler
