"""The payment agent: charges the card of an order and refunds charges."""

from functools import cache

from roundsman import Agent, DidNotHappen, Happened, Json, PermanentError, StepRequest
from roundsman.agents.http import RemoteService
from workflows.order_fulfilment import charge_card
from workflows.registry import WORKFLOWS

payment = Agent("payment", WORKFLOWS)
service = cache(RemoteService.from_env)


@payment.performs(charge_card)
def charge(request: StepRequest) -> Json:
    """Charge the order's total. Permanent error: CardDeclined."""
    return service().call(
        "POST",
        "charges",
        key=request.idempotency_key,
        body={
            "orderId": request.task_id,
            "amount": request.input["total"],
            "currency": request.input["currency"],
            "token": request.input["paymentToken"],
        },
        time_left=request.time_left(),
        returns=("chargeId",),
    )


@payment.probes(charge_card)
def charged(request: StepRequest) -> Happened | DidNotHappen:
    """Look up whether the perform's key was charged; used when an earlier answer was lost."""
    try:
        charge = service().call(
            "GET",
            "charges",
            request.perform_key,
            key=request.idempotency_key,
            time_left=request.time_left(),
            ok=(200,),
            returns=("chargeId",),
        )
    except PermanentError as error:
        if error.error_type == "NotCharged":
            return DidNotHappen()
        raise
    return Happened(charge)


@payment.compensates(charge_card)
def refund(request: StepRequest) -> Json:
    """Refund the charge of the perform's key. Also succeeds if there is no charge."""
    return service().call(
        "POST",
        "refunds",
        key=request.idempotency_key,
        body={"chargeKey": request.perform_key},
        time_left=request.time_left(),
        returns=("refundId",),
    )


handler = payment.lambda_handler
