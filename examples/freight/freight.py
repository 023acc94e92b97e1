"""A freight is shared by two carriers: three are asked at once, and the first two that have room.

The third one is not needed: its room is given back if it has reserved some, and the order does not
wait for that. The freight leaves as soon as the customer accepts the two carriers, or after a day
without a word, whichever comes first.
"""

from datetime import timedelta
from functools import cache
from typing import TypedDict

from roundsman import (
    Agent,
    AnyOf,
    Compensation,
    Json,
    Signal,
    Step,
    StepRequest,
    Undo,
    Workflow,
)
from roundsman.agents.http import RemoteService


class Freight(TypedDict):
    """What an order must be."""

    customer: str
    pallets: int


BRIEFLY = timedelta(seconds=30)
FENCED = Compensation(fences_late_performs=True)

ask_air, ask_road, ask_sea = (
    Step(name=f"ask_{carrier}", agent="carriers", complete_within=BRIEFLY, compensation=FENCED)
    for carrier in ("air", "road", "sea")
)
offer = Step(
    name="offer",
    agent="mail",
    complete_within=BRIEFLY,
    after=AnyOf(ask_air, ask_road, ask_sea, enough=2),
)
accepted = Signal("accepted", within=timedelta(days=1), after=(offer,), otherwise=None)
load = Step(
    name="load",
    agent="carriers",
    complete_within=BRIEFLY,
    after=(accepted,),
    compensation=FENCED,
)
freight = Workflow(
    name="freight",
    input=Freight,
    steps=(ask_air, ask_road, ask_sea, offer, accepted, load),
    complete_within=timedelta(days=4),
    on_failure=Undo(),
)

carriers = Agent("carriers", {freight.name: freight})
mail = Agent("mail", {freight.name: freight})
service = cache(RemoteService.from_env)


def call(request: StepRequest, method: str, *path: str, body: Json = None) -> Json:
    """Call the service of the agent, under the key of the request."""
    return service().call(
        method,
        *path,
        key=request.idempotency_key,
        body=body,
        time_left=request.time_left(),
    )


@carriers.performs(ask_air)
@carriers.performs(ask_road)
@carriers.performs(ask_sea)
def reserved(request: StepRequest) -> Json:
    """Reserve room for half of the freight at the carrier that the step asks."""
    carrier = request.step.removeprefix("ask_")
    body: Json = {"carrier": carrier, "pallets": -(-int(request.input["pallets"]) // 2)}
    call(request, "POST", "rooms", body=body)
    return carrier


@carriers.compensates(ask_air)
@carriers.compensates(ask_road)
@carriers.compensates(ask_sea)
def given_back(request: StepRequest) -> None:
    """Give the room of the perform's key back. It is no error if there is none."""
    call(request, "DELETE", "rooms", request.perform_key)


def chosen(request: StepRequest) -> list[Json]:
    """The two carriers: the steps of the others have no result."""
    found = map(request.results.get, (ask_air.name, ask_road.name, ask_sea.name))
    return [carrier for carrier in found if carrier is not None]


@mail.performs(offer)
def offered(request: StepRequest) -> None:
    """Write to the customer which carriers it will be."""
    body: Json = {"to": request.input["customer"], "carriers": chosen(request)}
    call(request, "POST", "mails", body=body)


@carriers.performs(load)
def loaded(request: StepRequest) -> Json:
    """Load the freight at both carriers, accepted or not."""
    return call(request, "PUT", "loads", request.task_id, body={"carriers": chosen(request)})


@carriers.compensates(load)
def unloaded(request: StepRequest) -> None:
    """Unload the freight. It is no error if nothing was loaded."""
    call(request, "DELETE", "loads", request.task_id)
