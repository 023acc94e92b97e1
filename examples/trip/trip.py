"""A trip whose legs are found as it is booked.

Nobody knows before how many legs a trip has: each leg that is booked says where it ends, and the
next one is looked for from there. If a leg cannot be booked, all legs so far are cancelled, the
last one first, and nothing is charged.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, TypedDict

from roundsman import (
    Agent,
    Compensation,
    Done,
    Json,
    PermanentError,
    Range,
    Step,
    StepRequest,
    Text,
    Undo,
    Workflow,
)

ROUTES: Mapping[str, str] = {"LIS": "MAD", "MAD": "PAR", "PAR": "BRU", "BRU": "AMS"}
"""Where a flight or a train from a place goes: what a remote service would answer."""


class Trip(TypedDict):
    """What is ordered."""

    start: Annotated[str, Text(3)]
    end: Annotated[str, Text(3)]


class Leg(TypedDict):
    """What a leg is added with."""

    start: Annotated[str, Text(3)]
    number: Annotated[int, Range(1, 20)]


book_leg = Step(
    name="book_leg",
    agent="carriers",
    input=Leg,
    complete_within=timedelta(seconds=60),
    compensation=Compensation(fences_late_performs=True),
)
find_route = Step(name="find_route", agent="carriers", complete_within=timedelta(seconds=60))
charge = Step(
    name="charge",
    agent="payment",
    complete_within=timedelta(seconds=60),
    after=(find_route,),  # and after all legs: they are added by find_route, and by one another
)
send_ticket = Step(
    name="send_ticket", agent="mail", complete_within=timedelta(seconds=60), after=(charge,)
)

trip = Workflow(
    name="trip",
    input=Trip,
    steps=(find_route, charge, send_ticket),
    may_add=(book_leg,),
    most_added=20,
    complete_within=timedelta(hours=2),
    point_of_no_return=charge,
    on_failure=Undo(),
)

carriers = Agent("carriers")


def next_leg(start: str, number: int) -> Done:
    """The leg from a place, as a step that is added to the trip."""
    leg = book_leg.named(f"leg-{number}", input=Leg(start=start, number=number))
    return Done({"from": start}, then=(leg,))


@carriers.performs(find_route)
def find(request: StepRequest) -> Done:
    """Begin with the first leg."""
    return next_leg(request.input_as(Trip)["start"], 1)


@carriers.performs(book_leg)
def book(request: StepRequest) -> Done:
    """Book one leg under its key, and add the next one unless the trip is at its end."""
    leg, end = request.step_input_as(Leg), request.input_as(Trip)["end"]
    reached = ROUTES.get(leg["start"])
    if reached is None:
        raise PermanentError("NoConnection", f"nothing goes on from {leg['start']}")
    booked: Json = {"booking": request.idempotency_key, "to": reached}
    more = () if reached == end else next_leg(reached, leg["number"] + 1).then
    return Done(booked, then=more)


@carriers.compensates(book_leg)
def cancel(request: StepRequest) -> None:
    """Cancel one leg."""
