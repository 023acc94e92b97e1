"""The mail_backup agent: sends mail through the second provider, when the first takes no work."""

from functools import cache

from roundsman import Agent, Json, StepRequest
from roundsman.agents.http import RemoteService
from workflows.registry import WORKFLOWS
from workflows.resources import create
from workflows.tenant import Tenant
from workflows.tenant_onboarding import send_welcome

mail_backup = Agent("mail_backup", WORKFLOWS)
service = cache(RemoteService.from_env)  # the address in SERVICE_URL


@mail_backup.performs(send_welcome)
def send(request: StepRequest) -> Json:
    """Send the welcome to the owner."""
    return create(
        service(),
        "mail_backup",
        request,
        to=request.input_as(Tenant).owner.email,
        template="welcome",
    )


handler = mail_backup.lambda_handler
