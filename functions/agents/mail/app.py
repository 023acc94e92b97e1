"""The mail agent: sends the order confirmation to the customer."""

from functools import cache

from roundsman import Agent, StepRequest
from roundsman.agents.http import RemoteService
from workflows.order_fulfilment import send_confirmation
from workflows.registry import WORKFLOWS

mail = Agent("mail", WORKFLOWS)
service = cache(RemoteService.from_env)


@mail.performs(send_confirmation)
def confirm(request: StepRequest) -> None:
    """Send the confirmation. It has no compensation, because a sent mail cannot be recalled."""
    service().call(
        "POST",
        "messages",
        key=request.idempotency_key,
        body={"orderId": request.task_id, "template": "order_confirmed"},
        time_left=request.time_left(),
        ok=(202,),
    )


handler = mail.lambda_handler
