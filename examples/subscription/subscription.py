"""A subscription begins with a trial. After it, or at its first day, the customer is charged.

The customer first confirms the address: the application sends the signal `confirmed` then. The
order says when the customer moves in, which may be before the end of the trial or long after it. A
customer who cancels meanwhile loses the access at once and is never charged. A customer has one
subscription at a time that is not charged yet: the next one waits until then.
"""

from datetime import timedelta
from functools import cache
from typing import TypedDict

from roundsman import (
    Agent,
    Compensation,
    Json,
    Limit,
    Signal,
    Sleep,
    SleepUntil,
    Step,
    StepRequest,
    Undo,
    Workflow,
)
from roundsman.agents.http import RemoteService


class Subscription(TypedDict):
    """What an order must be."""

    customer: str
    firstDay: str


BRIEFLY = timedelta(seconds=30)
FENCED = Compensation(fences_late_performs=True)

confirmed = Signal("confirmed", within=timedelta(days=2))
give_access = Step(
    name="give_access",
    agent="access",
    complete_within=BRIEFLY,
    after=(confirmed,),
    compensation=FENCED,
)
trial = Sleep(name="trial", for_=timedelta(days=30), after=(give_access,))
first_day = SleepUntil("input.firstDay", name="first_day", after=(give_access,))
charge = Step(
    name="charge",
    agent="billing",
    complete_within=BRIEFLY,
    after=(trial, first_day),
    compensation=FENCED,
)
subscription = Workflow(
    name="subscription",
    input=Subscription,
    steps=(confirmed, give_access, trial, first_day, charge),
    complete_within=timedelta(days=100),
    on_failure=Undo(),
    limit=Limit(by="input.customer", at_once=1),
)

access = Agent("access", {subscription.name: subscription})
billing = Agent("billing", {subscription.name: subscription})
service = cache(RemoteService.from_env)


def asked(method: str, what: str, request: StepRequest) -> Json:
    """Call the service of this agent for the customer of the order."""
    customer = str(request.input["customer"])
    return service().call(
        method,
        what,
        customer,
        key=request.idempotency_key,
        time_left=request.time_left(),
    )


@access.performs(give_access)
def given(request: StepRequest) -> Json:
    """Give the customer access."""
    return asked("PUT", "access", request)


@access.compensates(give_access)
def taken(request: StepRequest) -> None:
    """Take the access back. It is no error if there is none."""
    asked("DELETE", "access", request)


@billing.performs(charge)
def charged(request: StepRequest) -> Json:
    """Charge the first month."""
    return asked("PUT", "charges", request)


@billing.compensates(charge)
def paid_back(request: StepRequest) -> None:
    """Pay the first month back. It is no error if nothing was charged."""
    asked("DELETE", "charges", request)
