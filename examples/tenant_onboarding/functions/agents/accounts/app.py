"""The accounts agent: creates the account of a tenant, and invites its users."""

from functools import cache

from roundsman import Agent, Json, StepRequest
from roundsman.agents.http import RemoteService
from workflows.registry import WORKFLOWS
from workflows.resources import create, delete
from workflows.tenant import Tenant
from workflows.tenant_onboarding import create_account, invite_user
from workflows.user_invitation import invite_more

accounts = Agent("accounts", WORKFLOWS)
service = cache(RemoteService.from_env)  # the address in SERVICE_URL


@accounts.performs(create_account)
def open_account(request: StepRequest) -> Json:
    """Create the account of the company."""
    tenant = request.input_as(Tenant)
    return create(service(), "accounts", request, company=tenant.company, plan=tenant.plan)


@accounts.performs(invite_user)
@accounts.performs(invite_more)
def invite(request: StepRequest) -> Json:
    """Invite one user. The request has the user as its item."""
    return create(service(), "accounts", request, user=request.item)


@accounts.compensates(create_account)
@accounts.compensates(invite_user)
@accounts.compensates(invite_more)
def close(request: StepRequest) -> None:
    """Close the account, or withdraw the invitation."""
    delete(service(), "accounts", request)


handler = accounts.lambda_handler
