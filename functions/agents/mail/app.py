"""The mail agent: tells the customer that the order is on its way."""

from functools import cache

from roundsman import Agent, StepRequest
from roundsman.agents.http import RemoteService
from workflows.order_fulfilment import send_confirmation

mail = Agent("mail")
service = cache(RemoteService.from_env)


@mail.performs(send_confirmation)
def confirm(request: StepRequest) -> None:
    """Have the confirmation sent. A mail cannot be taken back, so nothing compensates it."""
    service().call(
        "POST",
        "messages",
        key=request.idempotency_key,
        body={"orderId": request.task_id, "template": "order_confirmed"},
        time_left=request.time_left(),
        ok=(202,),
    )


handler = mail.lambda_handler
