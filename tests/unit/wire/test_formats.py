"""Every message keeps its exact text, and every fault in one its exact problems.

`recorded_messages.json` has what was written and reported when it was recorded; see
`tests.support.formats`. A difference is a change of the contract with other versions.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from inspect import signature
from pathlib import Path

import pytest

from roundsman.errors import InvalidMessage, Problem, RejectedOrder
from roundsman.model.events import (
    COMMAND_KINDS,
    Cancel,
    CommandSource,
    Erase,
    Extend,
    Move,
    Outcome,
    Reconcile,
    Resolve,
    Resubmit,
    RunNow,
    Signalled,
    UndoAsked,
    UndoPart,
)
from roundsman.model.json import Json
from roundsman.model.task import Effect, Owed, StepError, StepToAdd
from roundsman.wire.commands import COMMAND, EVENTS, SOURCE, Command, command_of, read_command
from roundsman.wire.dead_letters import DEAD_LETTER, DeadLetter, read_dead_letter
from roundsman.wire.fields import MessageTable
from roundsman.wire.messages import REPLY as REPLY_FIELDS
from roundsman.wire.messages import REQUEST as REQUEST_FIELDS
from roundsman.wire.messages import (
    AgentRequest,
    Reply,
    read_reply,
    read_request,
    rejected_status_body,
    rejection_body,
    status_body,
)
from tests.contract.samples import NOW, born
from tests.support.formats import ABSENT, Document, compare, faults, paths

RECORDED = Path(__file__).with_name("recorded_messages.json")
BAD: list[Json] = [ABSENT, None, "", "x", 0, -1, 1.5, True, [], {}, ["x"], [""], 10**10]

REQUEST = AgentRequest(
    task_id="ord-1",
    workflow="story",
    step="pick[3]",
    operation="undo",
    lock="7f3a-0c1d2e3f4a.2.5",
    idempotency_key="ord-1/pick[3]/undo",
    attempt=2,
    complete_by=NOW,
    input={"z": 1, "a": ["é", None]},
    results={"b": {"id": 1.0}, "a": None},
    sent_at=NOW - 1,
)
FULL_REQUEST = replace(
    REQUEST,
    perform_key="ord-1/pick[3]/perform",
    outcome_unknown=True,
    heartbeat_by=NOW + 1,
    item={"sku": "\ufffe"},
    step_input={"to": "BRU"},
    within=60_000,
    tenant="shop-1",
    read_before=True,
)
SUCCEEDED = Reply(
    task_id="ord-1",
    step="a",
    operation="perform",
    lock="l",
    idempotency_key="ord-1/a/perform",
    outcome=Outcome.SUCCEEDED,
    agent="worker",
    finished_at=NOW,
)
FAILED = replace(SUCCEEDED, outcome=Outcome.TRANSIENT, error=StepError("Down", "503"))
REPLIES = {
    "reply succeeded": replace(SUCCEEDED, result={"id": [1.0]}),
    "reply succeeded with null": SUCCEEDED,
    "reply transient": replace(FAILED, retry_after=2_000),
    "reply permanent": replace(
        FAILED, outcome=Outcome.PERMANENT, effect=Effect.NONE, callback=True
    ),
    "reply held": replace(
        FAILED, outcome=Outcome.HELD, error=StepError("Busy", ""), outcome_unknown=True
    ),
    "reply that adds steps": replace(
        SUCCEEDED,
        then=(
            StepToAdd("leg[a]", input={"to": ["BRU", 1.0]}),
            StepToAdd("leg[leg-2]", ("leg[a]", "find")),
        ),
    ),
    "reply waiting": replace(SUCCEEDED, outcome=Outcome.WAITING, until=NOW),
    "reply polling": replace(SUCCEEDED, outcome=Outcome.POLLING, again_in=60_000, within=7_200_000),
    "reply progress": replace(SUCCEEDED, outcome=Outcome.PROGRESS, effect=Effect.STANDS),
}
ASKED = CommandSource("c-1", "ann")
ASKED_FULLY = CommandSource("c-1", "ann", "why", 4, "AROASHOP:shop")
LETTER = DeadLetter(
    queue="q",
    message_id="m",
    reason="r" * 1_001,
    error_type="ValueError",
    error_at=tuple(f"line {n}" for n in range(6)),
    receives=3,
    sent_at=NOW,
    died_at=NOW + 1,
    function="scheduler",
    log_group="group",
    log_stream="stream",
)


def letter(text: str) -> DeadLetter:
    found = read_dead_letter(text)
    if found is None:
        raise InvalidMessage([Problem("", "not a dead letter of this stack")])
    return found


@dataclass(frozen=True)
class Format:
    """A message as written, and the function that reads it and writes it again."""

    text: str
    again: Callable[[str], str]


def requested(text: str) -> str:
    return read_request(text).body()


def replied(text: str) -> str:
    return read_reply(text).body()


def commanded(text: str) -> str:
    return read_command(text).body()


MESSAGES = {
    "request": Format(REQUEST.body(), requested),
    "request with every field": Format(FULL_REQUEST.body(), requested),
    **{name: Format(one.body(), replied) for name, one in REPLIES.items()},
    "start": Format(Command("start", "ord-1").body(), commanded),
    "inspect": Format(Command("inspect", "ord-1").body(), commanded),
    "resubmit": Format(command_of("ord-1", Resubmit(ASKED)).body(), commanded),
    "resubmit with every field": Format(
        command_of("ord-1", Resubmit(ASKED_FULLY, ("a", "b"), fresh_key=True, again=True)).body(),
        commanded,
    ),
    "undo": Format(command_of("ord-1", UndoAsked(ASKED_FULLY)).body(), commanded),
    "undo of a part": Format(
        command_of("ord-1", UndoPart(ASKED, ("a", "pick[3]"))).body(), commanded
    ),
    "cancel": Format(command_of("ord-1", Cancel(ASKED)).body(), commanded),
    "cancel without undo": Format(command_of("ord-1", Cancel(ASKED, undo=False)).body(), commanded),
    "resolve did": Format(
        command_of("ord-1", Resolve(ASKED, "a", did=True, result={"id": 1})).body(), commanded
    ),
    "resolve did with null": Format(
        command_of("ord-1", Resolve(ASKED, "a", did=True)).body(), commanded
    ),
    "resolve did not": Format(
        command_of("ord-1", Resolve(ASKED, "a", did=False, fresh_key=True)).body(), commanded
    ),
    "extend": Format(command_of("ord-1", Extend(ASKED, 60)).body(), commanded),
    "extend a step": Format(command_of("ord-1", Extend(ASKED, 60, "a")).body(), commanded),
    "run": Format(command_of("ord-1", RunNow(ASKED)).body(), commanded),
    "move": Format(command_of("ord-1", Move(ASKED, "0a" * 32)).body(), commanded),
    "reconcile": Format(command_of("ord-1", Reconcile(ASKED, 1_800_000_000_000)).body(), commanded),
    "signal": Format(
        command_of("ord-1", Signalled(ASKED, "paid", {"amount": 40})).body(), commanded
    ),
    "erase": Format(command_of("ord-1", Erase(ASKED)).body(), commanded),
    "dead letter": Format(LETTER.text(), lambda text: letter(text).text()),
}


WITH_FAULTS = [
    "request with every field",
    "reply transient",
    "reply held",
    "reply that adds steps",
    "reply waiting",
    "reply polling",
    "reply progress",
    "start",
    "resubmit with every field",
    "undo of a part",
    "cancel",
    "resolve did",
    "resolve did not",
    "extend a step",
    "dead letter",
]


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_keeps_its_text_and_is_written_again_as_it_was_read(name: str) -> None:
    message = MESSAGES[name]
    compare(RECORDED, name, {"text": message.text})
    assert message.again(message.text) == message.text


@pytest.mark.parametrize("name", WITH_FAULTS)
def test_a_fault_in_a_message_keeps_its_problems(name: str) -> None:
    def report(document: Document) -> Json:
        try:
            found: Json = json.loads(MESSAGES[name].again(json.dumps(document)))
        except InvalidMessage as refusal:
            return [str(problem) for problem in refusal.problems]
        return found

    document = json.loads(MESSAGES[name].text)
    found = faults(document, paths(document), BAD, report)
    compare(RECORDED, f"{name}: faults", found)


def test_a_message_with_several_faults_reports_each() -> None:
    found: dict[str, Json] = {}
    for name in ("request", "reply transient", "start", "resubmit", "resolve did", "extend"):
        document = json.loads(MESSAGES[name].text)
        kept = {"kind": document.get("kind", "")}
        wrong: dict[str, Json] = {key: ["x"] for key in document}
        for form in ({}, kept, {**wrong, **kept}, {**document, "later": 1}):
            try:
                problems: Json = MESSAGES[name].again(json.dumps(form))
            except InvalidMessage as refusal:
                problems = sorted(str(problem) for problem in refusal.problems)
            found[f"{name} {json.dumps(form)}"] = problems
    compare(RECORDED, "several faults", found)


def test_messages_that_are_only_written_keep_their_text() -> None:
    refused = RejectedOrder([Problem("a", "missing")], order_id="ord-1", correlation_id="web-7")
    found = {
        "status": status_body(born(), Owed("status", "completed", 4, NOW, "")),
        "rejected status": rejected_status_body(refused, NOW),
        "rejection": rejection_body("q", "{", (Problem("", "not JSON"), Problem("a", "missing"))),
    }
    compare(RECORDED, "written only", found)


@pytest.mark.parametrize(
    ("table", "kind", "elsewhere"),
    [
        (REQUEST_FIELDS, AgentRequest, {"tenant", "read_before"}),  # in attributes of SQS
        (REPLY_FIELDS, Reply, {"error", "retry_after"}),  # in REPLY_ERROR
        (DEAD_LETTER, DeadLetter, set()),
        (COMMAND, Command, {"event"}),  # in SOURCE and EVENTS
        (SOURCE, CommandSource, {"sender"}),  # in the attributes of SQS
        *((EVENTS[name], kind, {"asked"}) for kind, name in COMMAND_KINDS.items()),
    ],
)
def test_every_attribute_of_a_type_is_in_its_table_once(
    table: "MessageTable[object]", kind: type, elsewhere: set[str]
) -> None:
    found = [one.attribute for one in table.fields]
    assert sorted({*found, *elsewhere}) == sorted(signature(kind).parameters)
    assert len({one.name for one in table.fields}) == len(found) == len(set(found))
