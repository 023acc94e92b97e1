"""The shipping agent: creates the shipment of an order and cancels shipments."""

from functools import cache

from roundsman import Agent, Json, StepRequest
from roundsman.agents.http import RemoteService
from workflows.order_fulfilment import create_shipment
from workflows.registry import WORKFLOWS

shipping = Agent("shipping", WORKFLOWS)
service = cache(RemoteService.from_env)


@shipping.performs(create_shipment)
def create(request: StepRequest) -> Json:
    """Create one shipment of all order lines. Permanent error: AddressUndeliverable."""
    return service().call(
        "POST",
        "shipments",
        key=request.idempotency_key,
        body={
            "orderId": request.task_id,
            "address": request.input["shippingAddress"],
            "lines": request.input["lines"],
        },
        time_left=request.time_left(),
        returns=("shipmentId",),
    )


@shipping.compensates(create_shipment)
def cancel(request: StepRequest) -> None:
    """Cancel the shipment of the perform's key. Also succeeds if there is no shipment."""
    service().call(
        "DELETE",
        "shipments",
        request.perform_key,
        key=request.idempotency_key,
        time_left=request.time_left(),
        ok=(204,),
    )


handler = shipping.lambda_handler
