"""An insurance claim, from the customer's report to the payment, and back if it has to be.

Each part needs only what the parts before it have shown: docs/claim.md goes through them.
"""

from collections.abc import Iterable
from datetime import timedelta
from functools import cache
from typing import Annotated, TypedDict

from roundsman import (
    Agent,
    Callback,
    Compensation,
    Done,
    Json,
    NamedStep,
    NotYet,
    Signal,
    Sleep,
    Step,
    StepRequest,
    Text,
    Undo,
    Workflow,
)
from roundsman.agents.http import RemoteService

# 1. A step that can be undone.


class Claim(TypedDict):
    """What a claim must be."""

    policy: Annotated[str, Text(20)]
    report: Annotated[str, Text(40)]


BRIEFLY = timedelta(seconds=30)  # for one call, not for what it begins
UNDONE_SAFELY = Compensation(fences_late_performs=True)

open_file = Step(
    name="open_file", agent="files", complete_within=BRIEFLY, compensation=UNDONE_SAFELY
)
files = Agent("files")


@files.performs(open_file)
def opened(request: StepRequest) -> Json:
    """Open the file of the claim."""
    policy = request.input_as(Claim)["policy"]
    return call(request, "PUT", "files", request.task_id, body={"policy": policy})


@files.compensates(open_file)
def removed(request: StepRequest) -> None:
    """Remove the file. It is no error if there is none."""
    call(request, "DELETE", "files", request.task_id)


service = cache(RemoteService.from_env)  # the address in SERVICE_URL, of each agent its own


def call(
    request: StepRequest, method: str, *path: str, body: Json = None, returns: Iterable[str] = ()
) -> dict[str, Json]:
    """Call the service of the agent, under the key of the request."""
    return service().call(
        method,
        *path,
        key=request.idempotency_key,
        body=body,
        time_left=request.time_left(),
        ok=(200, 201, 204),
        returns=tuple(returns),
    )


# 2. Steps that nobody knows beforehand.


class Document(TypedDict):
    """What a step that reads a document is added with."""

    id: Annotated[str, Text(40)]


read_document = Step(
    name="read_document",
    agent="archive",
    input=Document,
    complete_within=BRIEFLY,
    compensation=UNDONE_SAFELY,
)
read_report = Step(name="read_report", agent="archive", complete_within=BRIEFLY, after=(open_file,))
archive = Agent("archive")


def reading(documents: Iterable[str]) -> tuple[NamedStep, ...]:
    """The steps that read these documents."""
    return tuple(read_document.named(each, input=Document(id=each)) for each in documents)


@archive.performs(read_report)
def begun(request: StepRequest) -> Done:
    """Begin with the report of the customer."""
    return Done(then=reading([request.input_as(Claim)["report"]]))


@archive.performs(read_document)
def copied(request: StepRequest) -> Done:
    """Copy a document into the file, and read those that it mentions next."""
    document = request.step_input_as(Document)["id"]
    copy = call(request, "PUT", "copies", request.task_id, document, returns=("mentions",))
    mentioned = copy["mentions"]
    return Done(then=reading(map(str, mentioned if isinstance(mentioned, list) else ())))


@archive.compensates(read_document)
def taken_out(request: StepRequest) -> None:
    """Remove the copy. It is no error if there is none."""
    call(request, "DELETE", "copies", request.task_id, request.step_input_as(Document)["id"])


# 3. A partner that works for days and must be asked.

estimate = Step(
    name="estimate",
    agent="assessor",
    complete_within=BRIEFLY,
    after=(read_report,),
    compensation=UNDONE_SAFELY,
)
assessor = Agent("assessor")


@assessor.performs(estimate)
def estimated(request: StepRequest) -> "Json | NotYet | Done":
    """Have the damage estimated, or look how far that is: the same call under the same key."""
    found = call(
        request, "POST", "estimates", body={"claim": request.task_id}, returns=("state", "amount")
    )
    if found["state"] == "not insured":
        return Done(end="the policy does not cover this damage", undo=True)
    if found["state"] != "done":
        return NotYet(again_in=timedelta(hours=6), within=timedelta(days=20))
    return found["amount"]


@assessor.compensates(estimate)
def called_off(request: StepRequest) -> None:
    """Call the estimate off. It is no error if it is done, or was never begun."""
    call(request, "DELETE", "estimates", request.perform_key)


# 4. A person who decides, and is reminded.

approve = Step(name="approve", agent="desk", complete_within=BRIEFLY, after=(estimate,))
desk = Agent("desk")


@desk.performs(approve)
def asked(request: StepRequest) -> Callback:
    """Ask the desk for an approval."""
    put_on_desk(request, f"Please approve claim {request.task_id}")
    return Callback(within=timedelta(days=5), remind_every=timedelta(days=1))


@desk.reminds(approve)
def reminded(request: StepRequest) -> None:
    """Remind the desk, each day until it has decided."""
    put_on_desk(request, f"Reminder {request.reminder}: please approve claim {request.task_id}")


def put_on_desk(request: StepRequest, text: str) -> None:
    """Show the desk a text, with the token that its answer must name."""
    call(request, "POST", "notes", body={"text": text, "token": request.callback_token})


# 5. What only the customer can say.

accepted = Signal("accepted", within=timedelta(days=30), after=(approve,))

# 6. A time in which the customer may still withdraw.

cooling_off = Sleep(name="cooling_off", for_=timedelta(days=14), after=(accepted,))

# 7. Two that can do the same.

pay = Step(
    name="pay",
    agents=("bank", "cheques"),
    next_agent_on=("AccountClosed",),
    complete_within=BRIEFLY,
    after=(cooling_off,),
    compensation=UNDONE_SAFELY,
)
bank, cheques = Agent("bank"), Agent("cheques")


@bank.performs(pay)
@cheques.performs(pay)
def paid(request: StepRequest) -> Json:
    """Pay what was estimated."""
    amount = request.results["estimate"]
    return call(request, "POST", "payments", body={"claim": request.task_id, "amount": amount})


@bank.compensates(pay)
@cheques.compensates(pay)
def called_back(request: StepRequest) -> None:
    """Call the payment back. It is no error if there is none."""
    call(request, "DELETE", "payments", request.perform_key)


# 8. All of it, and the way back.

write = Step(name="write", agent="desk", complete_within=BRIEFLY)


@desk.performs(write)
def written(request: StepRequest) -> Json:
    """Write to the customer why nothing is paid."""
    return call(request, "POST", "letters", body={"end": request.ending and request.ending.end})


claim = Workflow(
    name="claim",
    input=Claim,
    steps=(open_file, read_report, estimate, approve, accepted, cooling_off, pay),
    may_add=(read_document,),
    most_added=50,
    complete_within=timedelta(days=100),
    on_failure=Undo(),
    when_undone=(write,),
    when_cancelled=(write,),
    retain_for=timedelta(days=90),
)
AGENTS = (files, archive, assessor, desk, bank, cheques)
