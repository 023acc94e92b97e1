"""The inventory agent: reserves stock for an order and releases reservations."""

from functools import cache

from roundsman import Agent, Json, StepRequest
from roundsman.agents.http import RemoteService
from workflows.order_fulfilment import reserve_stock
from workflows.registry import WORKFLOWS

inventory = Agent("inventory", WORKFLOWS)
service = cache(RemoteService.from_env)


@inventory.performs(reserve_stock)
def reserve(request: StepRequest) -> Json:
    """Reserve the stock of every order line. Permanent error: OutOfStock."""
    return service().call(
        "POST",
        "reservations",
        key=request.idempotency_key,
        body={"orderId": request.task_id, "lines": request.input["lines"]},
        time_left=request.time_left(),
        returns=("reservationId",),
    )


@inventory.compensates(reserve_stock)
def release(request: StepRequest) -> None:
    """Release the reservation of the perform's key. Also succeeds if there is no reservation."""
    service().call(
        "DELETE",
        "reservations",
        request.perform_key,
        key=request.idempotency_key,
        time_left=request.time_left(),
        ok=(204,),
    )


handler = inventory.lambda_handler
