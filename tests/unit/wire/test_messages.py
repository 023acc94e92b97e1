"""Messages: what is written is read again, and what is wrong is named field by field."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundsman.engine.new_task import ProcessingOptions
from roundsman.engine.requests import agent_of, request_for
from roundsman.errors import InvalidMessage, Problem
from roundsman.model.events import Outcome
from roundsman.model.json import Json
from roundsman.model.task import Owed, StepError, StepRecord, idempotency_key
from roundsman.wire.commands import Command, read_command
from roundsman.wire.messages import (
    AgentRequest,
    Reply,
    read_reply,
    read_request,
    rejection_body,
    status_body,
)
from tests.support.machine_world import REPLY_TO, T0, World, begun, plan, step
from tests.support.steps import step_record, stored_step

ids = st.from_regex(r"[A-Za-z0-9._~-]{1,128}", fullmatch=True)
characters = st.characters(exclude_categories=["Cs"])
texts = st.text(characters, min_size=1)
instants = st.integers(min_value=0, max_value=10**15)
contents: st.SearchStrategy[Json] = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.text(characters),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(characters), inner, max_size=3)
    ),
    max_leaves=6,
)
requests = st.builds(
    AgentRequest,
    task_id=ids,
    workflow=texts,
    step=texts,
    operation=st.sampled_from(["perform", "undo"]),
    lock=texts,
    idempotency_key=texts,
    attempt=instants,
    complete_by=instants,
    input=contents,
    results=st.dictionaries(texts, contents, max_size=3),
    sent_at=instants,
    perform_key=st.none() | texts,
    outcome_unknown=st.booleans(),
    probe_only=st.booleans(),
)
errors = st.builds(StepError, type=texts, message=st.text(characters))
base = {
    "task_id": ids,
    "step": texts,
    "operation": st.sampled_from(["perform", "undo"]),
    "lock": texts,
    "idempotency_key": texts,
    "agent": texts,
    "finished_at": instants,
}
replies = st.builds(Reply, outcome=st.just(Outcome.SUCCEEDED), result=contents, **base) | st.builds(
    Reply,
    outcome=st.sampled_from([Outcome.TRANSIENT, Outcome.PERMANENT]),
    error=errors,
    retry_after=st.none() | instants,
    **base,
)


@pytest.mark.exhaustive
@given(requests)
def test_a_request_is_read_as_it_was_written(request: AgentRequest) -> None:
    assert read_request(request.body()) == request


@given(replies)
def test_a_reply_is_read_as_it_was_written(reply: Reply) -> None:
    assert read_reply(reply.body()) == reply


@given(st.builds(Command, kind=st.sampled_from(["start", "inspect"]), task_id=ids))
def test_a_command_is_read_as_it_was_written(command: Command) -> None:
    assert read_command(command.body()) == command


REPLY = Reply(
    task_id="ord-1",
    step="a",
    operation="perform",
    lock="l",
    idempotency_key="ord-1/a/perform",
    outcome=Outcome.TRANSIENT,
    agent="worker",
    finished_at=T0,
    error=StepError("Unavailable", ""),
)
REQUEST = AgentRequest(
    task_id="ord-1",
    workflow="story",
    step="a",
    operation="perform",
    lock="l",
    idempotency_key="ord-1/a/perform",
    attempt=1,
    complete_by=T0,
    input={},
    results={},
    sent_at=T0,
)


def test_the_fields_on_the_wire_are_those_of_the_contract() -> None:
    sent = json.loads(REQUEST.body())
    assert sent == {
        "version": 1,
        "taskId": "ord-1",
        "workflow": "story",
        "step": "a",
        "operation": "perform",
        "lock": "l",
        "idempotencyKey": "ord-1/a/perform",
        "attempt": 1,
        "completeBy": T0,
        "outcomeUnknown": False,
        "input": {},
        "results": {},
        "sentAt": T0,
    }
    assert json.loads(REPLY.body()) == {
        "version": 1,
        "taskId": "ord-1",
        "step": "a",
        "operation": "perform",
        "lock": "l",
        "idempotencyKey": "ord-1/a/perform",
        "outcome": "transient",
        "error": {"type": "Unavailable", "message": ""},
        "agent": "worker",
        "finishedAt": T0,
    }
    assert json.loads(Command(kind="start", task_id="ord-1").body()) == {
        "version": 1,
        "kind": "start",
        "taskId": "ord-1",
    }


Reader = Callable[[str], object]
READERS: list[tuple[Reader, str]] = [
    (read_request, REQUEST.body()),
    (read_reply, REPLY.body()),
    (read_command, Command(kind="start", task_id="ord-1").body()),
]
BAD_VALUES: list[Json] = [None, "", 0, -1, 1.5, True, [], {}, ["x"], "x" * 300]


@pytest.mark.parametrize(("read", "body"), READERS)
def test_every_field_that_is_missing_is_named(read: Reader, body: str) -> None:
    optional = {"outcomeUnknown", "error"}
    with pytest.raises(InvalidMessage) as refusal:
        read("{}")
    missing = {problem.path for problem in refusal.value.problems}
    assert missing >= set(json.loads(body)) - optional - {"result"}
    for name in set(json.loads(body)) - optional:
        message = {key: value for key, value in json.loads(body).items() if key != name}
        with pytest.raises(InvalidMessage) as refusal:
            read(json.dumps(message))
        assert [problem.path for problem in refusal.value.problems] == [name]


def problems_of(read: Reader, message: Json) -> tuple[Problem, ...]:
    try:
        read(json.dumps(message))
    except InvalidMessage as refusal:
        return refusal.problems
    return ()


@pytest.mark.parametrize(("read", "body"), READERS)
def test_a_value_of_a_wrong_type_is_taken_or_named_and_never_a_traceback(
    read: Reader, body: str
) -> None:
    for name in json.loads(body):
        for bad in BAD_VALUES:
            problems = problems_of(read, {**json.loads(body), name: bad})
            assert {problem.path.partition(".")[0] for problem in problems} <= {name}, bad
            assert all(problem.message for problem in problems)
    assert problems_of(read, {**json.loads(body), "taskId": 3})


@pytest.mark.parametrize(("read", "body"), READERS)
@pytest.mark.parametrize("version", [0, 2, "1", True, None, [1]])
def test_another_version_is_refused(read: Reader, body: str, version: Json) -> None:
    with pytest.raises(InvalidMessage, match="version"):
        read(json.dumps({**json.loads(body), "version": version}))


@pytest.mark.parametrize(("read", "body"), READERS)
@pytest.mark.parametrize("task_id", ["a/b", "a b", "x" * 129, "ä", "a\n", "\u0000"])
def test_an_id_that_no_task_has_is_refused(read: Reader, body: str, task_id: str) -> None:
    with pytest.raises(InvalidMessage, match="taskId: must be 1 to 128 characters of"):
        read(json.dumps({**json.loads(body), "taskId": task_id}))


@pytest.mark.parametrize("read", [reader for reader, _ in READERS])
@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("", "not JSON: the text is empty"),
        ("hello", "not JSON"),
        ("[]", "not a JSON object"),
        ("null", "not a JSON object"),
        ('"text"', "not a JSON object"),
        ("[" * 100_000, "not JSON: nested deeper"),
        ('{"version": 1, "version": 1}', "the key 'version' appears twice"),
        ('{"version": NaN}', "NaN is not a number of JSON"),
        ('{"taskId": "\\ud800"}', "half of a surrogate pair"),
        ('{"a": "\\udc00\\ud800"}', "half of a surrogate pair"),
    ],
)
def test_text_that_is_no_message_is_refused_in_words(
    read: Reader, body: str, sentence: str
) -> None:
    with pytest.raises(InvalidMessage, match=sentence):
        read(body)


@pytest.mark.parametrize("read", [read for read, _ in READERS])
def test_an_order_event_in_a_wrong_queue_is_told_where_it_belongs(read: Reader) -> None:
    [problem] = problems_of(read, {"orderId": "ord-1", "processing": {"workflow": "w"}})
    assert str(problem).endswith(
        "it is an order event, which belongs in the SubmissionQueue; send it there"
    )
    assert "taskId" in {one.path for one in problems_of(read, {})}


def test_a_whole_surrogate_pair_is_an_ordinary_character() -> None:
    body = REPLY.body().replace('"worker"', '"\\ud83d\\ude00"')
    assert read_reply(body).agent == "\N{GRINNING FACE}"


def test_all_problems_are_reported_at_once() -> None:
    message: dict[str, Any] = {
        **json.loads(REPLY.body()),
        "lock": 3,
        "outcome": "maybe",
        "error": {"retryAfter": -1},
    }
    with pytest.raises(InvalidMessage) as refusal:
        read_reply(json.dumps(message))
    assert {problem.path for problem in refusal.value.problems} == {
        "lock",
        "outcome",
        "error.type",
        "error.message",
        "error.retryAfter",
    }


def test_a_failure_without_its_reason_is_refused() -> None:
    for outcome in ("transient", "permanent"):
        message = {**json.loads(REPLY.body()), "outcome": outcome}
        del message["error"]
        with pytest.raises(InvalidMessage, match=f"error: missing in a {outcome} reply"):
            read_reply(json.dumps(message))


def test_an_outcome_that_is_none_is_the_only_problem_named() -> None:
    message = {**json.loads(REPLY.body()), "outcome": "maybe"}
    del message["error"]
    with pytest.raises(InvalidMessage) as refusal:
        read_reply(json.dumps(message))
    assert [problem.path for problem in refusal.value.problems] == ["outcome"]


def test_a_field_that_a_later_version_may_add_does_no_harm() -> None:
    assert read_reply(json.dumps({**json.loads(REPLY.body()), "heartbeat": 1})) == REPLY


# --- what a claim stands for ---------------------------------------------------------------------


def test_a_request_carries_the_results_of_all_steps_before_and_of_no_other() -> None:
    a, side = step("a"), step("side")
    b = step("b", a)
    world = begun(a, side, b, step("c", b, agent="shipper"), order={"orderId": "ord-1"})
    world.succeeds("side", "s")
    world.succeeds("a", {"id": 1})
    world.succeeds("b", 2)
    request = request_for(world.plan, world.task, "c", world.order, T0 + 9)
    assert request.results == {"a": {"id": 1}, "b": 2}
    assert request.input == {"orderId": "ord-1"}
    assert (request.lock, request.sent_at) == (world.lock("c"), T0 + 9)
    assert request.complete_by == stored_step(world.record("c")).complete_by
    assert request.idempotency_key == "ord-1/c/perform"
    assert (request.attempt, request.outcome_unknown) == (1, False)
    assert agent_of(world.plan, world.task, "c") == "shipper"


def test_a_request_of_a_later_attempt_keeps_its_key_and_says_that_the_outcome_is_unknown() -> None:
    world = begun(step("a"))
    first = request_for(world.plan, world.task, "a", None, T0)
    world.overdue("a")
    world.start()
    second = request_for(world.plan, world.task, "a", None, T0)
    assert second.idempotency_key == first.idempotency_key
    assert second.lock != first.lock
    assert (second.attempt, second.outcome_unknown) == (2, True)


@pytest.mark.parametrize(
    ("record", "key"),
    [
        (StepRecord(), "ord-1/a/perform"),
        (step_record(failure_count=7, locked_by="l"), "ord-1/a/perform"),
        (step_record(round=2), "ord-1/a/perform/2"),
        (step_record(agent="backup"), "ord-1/a/perform/backup"),
        (step_record(round=3, agent="backup"), "ord-1/a/perform/3/backup"),
    ],
)
def test_an_effect_has_one_key_until_another_round_or_another_agent(
    record: StepRecord, key: str
) -> None:
    assert idempotency_key("ord-1", "a", "perform", record) == key


def test_a_step_that_is_not_claimed_has_no_request() -> None:
    world = World(plan(step("a"), step("b")))
    with pytest.raises(ValueError, match="a of ord-1 is not claimed"):
        request_for(world.plan, world.task, "a", None, T0)
    world.start()
    world.succeeds("a")
    world.fails("b")
    for name in ("a", "b"):
        with pytest.raises(ValueError, match="is not claimed"):
            request_for(world.plan, world.task, name, None, T0)


# --- what leaves the system ----------------------------------------------------------------------


def test_a_status_says_what_happened_to_which_order_and_when() -> None:
    world = World(plan(step("a")), ProcessingOptions(reply_to=REPLY_TO, correlation_id="web-7"))
    owed = Owed("status", "completed", 4, T0, "")
    assert json.loads(status_body(world.task, owed)) == {
        "orderId": "ord-1",
        "correlationId": "web-7",
        "status": "completed",
        "seq": 4,
        "at": "2027-01-15T08:00:00.000Z",
        "detail": "",
    }


def test_a_rejected_message_is_kept_as_it_came_with_all_that_is_wrong() -> None:
    body = '{"a": "\\ud800", broken'
    problems = (Problem("", "not JSON"), Problem("lines[0].quantity", "must be positive"))
    assert json.loads(rejection_body("queue", body, problems)) == {
        "queue": "queue",
        "reason": "not JSON; lines[0].quantity: must be positive",
        "problems": [
            {"path": "", "message": "not JSON"},
            {"path": "lines[0].quantity", "message": "must be positive"},
        ],
        "body": body,
    }
