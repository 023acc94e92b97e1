"""The calls that all services of the platform share: each creates and deletes one resource."""

from roundsman import Json, StepRequest
from roundsman.agents.http import RemoteService


def create(service: RemoteService, resource: str, request: StepRequest, **details: Json) -> Json:
    """Create the resource and return its id. The key makes a repeated call harmless."""
    return service.call(
        "POST",
        resource,
        key=request.idempotency_key,
        body={"orderId": request.task_id, **details},
        time_left=request.time_left(),
        returns=("id",),
    )


def delete(service: RemoteService, resource: str, request: StepRequest) -> None:
    """Delete what the perform with this key created, if it did."""
    service.call(
        "DELETE",
        resource,
        request.perform_key,
        key=request.idempotency_key,
        time_left=request.time_left(),
        ok=(204,),
    )
