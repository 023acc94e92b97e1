"""The {{agent}} agent: calls its remote service for the steps that are bound to it here.

Bind a step of a workflow like this, with a function that undoes it if the step has a compensation:

    from workflows.orders import book

    @{{agent}}.performs(book)
    def perform(request: StepRequest) -> Json:
        return create(request)

    @{{agent}}.compensates(book)
    def undo(request: StepRequest) -> None:
        delete(request)
"""

from functools import cache

from roundsman import Agent, Json, StepRequest
from roundsman.agents.http import RemoteService

{{agent}} = Agent("{{agent}}")
service = cache(RemoteService.from_env)


def create(request: StepRequest) -> Json:
    """Create the resource at the service. The key makes a repeated call harmless."""
    return service().call(
        "POST",
        "{{agent}}",
        key=request.idempotency_key,
        body={
            "orderId": request.task_id,
            # The stand-in service refuses an order that asks for it; events/refused.json does.
            "refuse": "Refused" if request.input.get("refuse") == "{{agent}}" else None,
        },
        time_left=request.time_left(),
        returns=("id",),
    )


def delete(request: StepRequest) -> None:
    """Delete the resource that the perform with this key created, if it did."""
    service().call(
        "DELETE",
        "{{agent}}",
        request.perform_key,
        key=request.idempotency_key,
        time_left=request.time_left(),
        ok=(204,),
    )


handler = {{agent}}.lambda_handler
