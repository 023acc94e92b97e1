"""The mail agent: sends mail through the e-mail provider."""

from functools import cache

from roundsman import Agent, Json, StepRequest
from roundsman.agents.http import RemoteService
from workflows.registry import WORKFLOWS
from workflows.resources import create
from workflows.tenant import Tenant
from workflows.tenant_onboarding import send_welcome

mail = Agent("mail", WORKFLOWS)
service = cache(RemoteService.from_env)  # the address in SERVICE_URL


@mail.performs(send_welcome)
def send(request: StepRequest) -> Json:
    """Send the welcome to the owner."""
    return create(
        service(), "mail", request, to=request.input_as(Tenant).owner.email, template="welcome"
    )


handler = mail.lambda_handler
