"""Batches of requests at an agent's function: its replies, marks, logs and metrics."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import cast

import pytest

from roundsman import Agent, Compensation, PermanentError, StepRequest, TransientError
from roundsman.model.events import Outcome
from roundsman.wire.messages import AgentRequest
from tests.support.agent_world import (
    NOW,
    ORDER,
    Aws,
    World,
    greet,
    logged,
    made_aws,
    made_world,
    request,
    written,
)
from tests.support.guards import HeldGuard

CANARY = "canary-7d1f"


@pytest.fixture(scope="module")
def aws(session_without_real_aws: None) -> Iterator[Aws]:
    with made_aws() as found:
        yield found


@pytest.fixture
def world(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with made_world(aws, monkeypatch) as found:
        yield found


# ---- one request -------------------------------------------------------------------------


def test_a_request_is_answered_on_the_reply_queue(world: World) -> None:
    world.agent.performs(greet)(lambda given: f"hello {given.task_id}")
    assert world.handle(request()) == []
    [reply] = world.replies()
    assert (reply.outcome, reply.result) == (Outcome.SUCCEEDED, "hello ord-1")
    assert (reply.lock, reply.idempotency_key) == ("7f3a-0c1d.2", "ord-1/greet/perform")
    assert (reply.agent, reply.finished_at) == ("greeter", NOW)


def test_after_complete_by_nothing_is_sent_and_the_message_is_done(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    @world.agent.performs(greet)
    def slow(_: StepRequest) -> str:
        world.clock.now = NOW + 30_500
        return "too late"

    assert world.handle(request(), request(complete_by=NOW - 1)) == []
    assert world.replies() == []
    lines = [line for line in logged(capsys) if line["message"] == "silent"]
    assert [line["lateness_ms"] for line in lines] == [500, 30_501]


@pytest.mark.parametrize(
    ("queue", "priority"),
    [("s-GreeterRequestQueue", "normal"), ("s-GreeterUrgentRequestQueue", "urgent")],
)
def test_what_was_read_is_noted_under_its_queue_before_it_is_acted_on(
    world: World, queue: str, priority: str
) -> None:
    noted_before: list[object] = []
    world.agent.performs(greet)(lambda _: noted_before.extend(world.notes.found))
    world.handle(request(), queue=queue)
    assert noted_before == [("greeter", priority, NOW - 250)]


def test_a_request_read_after_its_complete_by_is_noted_too(world: World) -> None:
    world.handle(request(complete_by=NOW))
    assert len(world.notes.found) == 1


def test_a_note_that_fails_fails_no_request(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.notes.error = RuntimeError("no table")
    world.agent.performs(greet)(lambda _: "hello")
    assert world.handle(request()) == []
    assert len(world.replies()) == 1
    assert any("could not be stored" in str(line["message"]) for line in logged(capsys))


def test_an_attempt_is_logged_in_one_line_with_its_fields(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    @world.agent.performs(greet)
    def greeting(_: StepRequest) -> None:
        world.clock.now += 1_200
        raise TransientError("busy", retry_after=timedelta(seconds=3))

    world.handle(request())
    [line] = logged(capsys)
    assert {name: line[name] for name in ("task_id", "step", "attempt")} == {
        "task_id": "ord-1",
        "step": "greet",
        "attempt": 2,
    }
    assert "operation" not in line, "it was to perform, as nearly all are"
    assert (line["outcome"], line["error_type"]) == ("transient", "TransientError")
    assert (line["queued_ms"], line["took_ms"]) == (250, 1_200)
    assert "lateness_ms" not in line
    assert line["retry_after_ms"] == 3_000
    assert line["lock"] == "7f3a-0c1d.2"


def test_an_ordinary_attempt_has_in_its_line_what_is_not_ordinary_in_others(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.agent.performs(greet)(lambda _: "hello")
    world.handle(request())
    [line] = logged(capsys)
    assert line == {
        "message": "attempted",
        "service": line["service"],
        "task_id": "ord-1",
        "step": "greet",
        "attempt": 2,
        "queued_ms": 250,
        "took_ms": 0,
    }


def test_progress_is_sent_and_its_note_is_logged(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.agent.performs(greet)(lambda asked: asked.progress("page 3"))
    world.handle(request(heartbeat_by=NOW + 9_000))
    assert [reply.outcome for reply in world.replies()] == [Outcome.PROGRESS, Outcome.SUCCEEDED]
    line, _ = logged(capsys)
    assert (line["message"], line["task_id"], line["note"]) == ("progress", "ord-1", "page 3")


def test_outcomes_are_counted_and_the_counts_are_sent(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    ends = iter([None, TransientError("busy"), PermanentError("Rude"), ValueError()])

    @world.agent.performs(greet)
    def greeting(_: StepRequest) -> None:
        if error := next(ends):
            raise error

    world.handle(*[request()] * 4, request(step="other"), request(complete_by=1), "not a request")
    [sent] = [line for line in written(capsys) if "_aws" in line]
    counted = {name: len(cast("list[float]", sent[name])) for name in sent if name[0].isupper()}
    assert counted == {
        "StepAttemptsTransient": 3,
        "StepAttemptsPermanent": 1,
        "StepsWithoutHandler": 1,
        "SilencedReplies": 1,
        "RejectedMessages": 1,
    }


def test_a_reminder_is_logged_and_counted_and_not_answered(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    ends = iter([None, PermanentError("NoSuchAddress")])

    @world.agent.reminds(greet)
    def remind(_: StepRequest) -> None:
        if error := next(ends):
            raise error

    world.handle(request(reminder=1), request(reminder=2), request(step="other", reminder=1))
    assert world.replies() == []
    lines = written(capsys)
    found = [(line["message"], line["reminder"]) for line in lines if "reminder" in line]
    assert found == [("reminded", 1), ("not reminded", 2), ("not reminded", 1)]
    assert [line["error_type"] for line in lines if line.get("message") == "not reminded"] == [
        "NoSuchAddress",
        "NoHandler",
    ]
    [sent] = [line for line in lines if "_aws" in line]
    counted = {name: len(cast("list[float]", sent[name])) for name in sent if name[0].isupper()}
    assert counted == {"RemindersFailed": 2, "StepsWithoutHandler": 1}


class Closed(HeldGuard):
    """Lets nothing through, and counts how often its `publish_alerts` was called."""

    calls = 0

    def publish_alerts(self) -> None:
        self.calls += 1


def test_a_held_attempt_is_answered_logged_and_counted_and_then_alerted(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.agent.performs(greet)(lambda _: "hello")
    guard = Closed("greeter is on hold by anna", NOW + 60_000)
    world.guard = guard
    world.handle(request())
    [reply] = world.replies()
    assert reply.outcome is Outcome.HELD
    assert reply.error is not None
    assert reply.error.message == "greeter is on hold by anna"
    lines = written(capsys)
    [line] = [line for line in lines if line.get("message") == "attempted"]
    assert line["outcome"] == "held"
    [sent] = [line for line in lines if "_aws" in line]
    assert sent["StepAttemptsHeld"] == [1.0]
    assert guard.calls == 1


@pytest.mark.parametrize(("receives", "unknown"), [(1, False), (2, True)])
def test_a_perform_that_was_read_before_may_have_happened_also_where_it_is_held_now(
    world: World, receives: int, *, unknown: bool
) -> None:
    world.agent.performs(greet)(lambda _: "hello")
    world.guard = Closed("greeter is on hold by anna", NOW + 60_000)
    world.handle(request(), receives=receives)
    [reply] = world.replies()
    assert reply.outcome is Outcome.HELD
    assert reply.outcome_unknown is unknown


def test_a_perform_that_was_read_before_is_made_as_one_whose_outcome_is_unknown(
    world: World,
) -> None:
    world.agent.performs(greet)(lambda given: given.outcome_unknown)
    world.handle(request())
    world.handle(request(), receives=2)
    assert [reply.result for reply in world.replies()] == [False, True]


def test_of_an_undo_that_was_read_before_is_known_what_its_request_says(world: World) -> None:
    seen: list[bool] = []
    undoable = replace(greet, compensation=Compensation())
    world.agent.compensates(undoable)(lambda given: seen.append(given.outcome_unknown))
    perform, undo = "ord-1/greet/perform", "ord-1/greet/undo"
    body = request(operation="undo", idempotency_key=undo, perform_key=perform)
    world.handle(body, receives=2)
    assert seen == [False]


def test_what_is_to_be_alerted_is_alerted_also_where_the_reply_cannot_be_sent(world: World) -> None:
    world.agent.performs(greet)(lambda _: "hello")
    guard = Closed("greeter is on hold by anna", NOW + 60_000)
    world.guard = guard
    world.reply_url = world.reply_url.replace("Greeter", "Nobody")
    assert world.handle(request()) == ["m0"]
    assert guard.calls == 1


# ---- batches -----------------------------------------------------------------------------


def test_a_malformed_request_is_set_aside_with_its_reasons_and_its_neighbours_are_answered(
    world: World,
) -> None:
    world.agent.performs(greet)(lambda _: "hello")
    bad = json.dumps({**json.loads(request()), "attempt": "two", "lock": None})
    assert world.handle("not json", request(), bad) == []
    assert len(world.replies()) == 1
    first, second = world.rejected()
    assert (first["queue"], first["body"]) == ("s-GreeterRequestQueue", "not json")
    assert "not JSON" in str(first["reason"])
    assert second["body"] == bad
    paths = [problem["path"] for problem in cast("list[dict[str, str]]", second["problems"])]
    assert sorted(paths) == ["attempt", "lock"]


def test_a_reply_that_cannot_be_sent_brings_the_request_again_without_an_error(
    world: World,
) -> None:
    keys: list[str] = []
    world.agent.performs(greet)(lambda given: keys.append(given.idempotency_key))
    lost = world.reply_url
    world.reply_url = lost.replace("Greeter", "Nobody")
    assert world.handle(request(), request()) == ["m0", "m1"]
    world.reply_url = lost
    assert world.handle(request()) == []
    assert set(keys) == {"ord-1/greet/perform"}


def test_one_request_that_breaks_the_function_does_not_take_its_batch_with_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.agent.performs(greet)(lambda _: "hello")
    answer = world.agent.answer

    def broken(asked: AgentRequest, **more: object) -> object:
        if asked.task_id == "ord-bad":
            raise ZeroDivisionError(CANARY)
        return answer(asked, **more)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setattr(world.agent, "answer", broken)
    again = world.handle(request(task_id="ord-0"), request(task_id="ord-bad"), request())
    assert again == ["m1"]
    assert [reply.task_id for reply in world.replies()] == ["ord-0", "ord-1"]


def test_a_call_that_hangs_leaves_the_rest_of_its_batch_their_part_of_the_time(
    world: World,
) -> None:
    given: list[timedelta] = []

    @world.agent.performs(greet)
    def hang(request: StepRequest) -> None:
        left = request.time_left()
        given.append(left)
        world.clock.now += left // timedelta(milliseconds=1)
        raise TransientError("no answer")

    world.handle(*[request(complete_by=NOW + 300_000)] * 2)
    # 40 s for two: 20 s less 2 s for the reply; then all that is left, less 2 s.
    assert given == [timedelta(seconds=18), timedelta(seconds=20)]
    assert len(world.replies()) == 2


def test_what_ends_the_process_is_not_swallowed(world: World) -> None:
    def leave(_: StepRequest) -> None:
        raise SystemExit(1)

    world.agent.performs(greet)(leave)
    with pytest.raises(SystemExit):
        world.handle(request())


# ---- order contents ----------------------------------------------------------------------


def canaries(value: object, path: str = "") -> object:
    """The same shape with a token in every place, keys included."""
    if isinstance(value, dict):
        return {name: canaries(inner, f"{path}.{name}") for name, inner in value.items()}
    if isinstance(value, list):
        return [canaries(inner, f"{path}[]") for inner in value]
    return f"{CANARY}{path}"


def ends_with(order: object) -> list[Callable[[], object]]:
    """Each way in which a function can end, each with all of the order in it."""

    def chained() -> None:
        try:
            raise KeyError(json.dumps(order))
        except KeyError as cause:
            raise ValueError(f"bad order {order}") from cause

    def transient() -> None:
        raise TransientError(f"bad order {order}")

    def permanent() -> None:
        raise PermanentError("BadOrder", f"bad order {order}")

    return [chained, transient, permanent, lambda: order, lambda: {order: 1}, lambda: [order] * 99]


def test_order_contents_never_reach_the_logs(
    world: World,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order = canaries(ORDER)
    ends = iter(ends_with(order))
    world.agent.performs(greet)(lambda _: next(ends)())
    bodies = [request(input=order) for _ in range(6)]
    bodies += [
        request(input=order, complete_by=NOW),
        request(input=order, step="other"),
        request(input=[order]),
        request(input=order, operation="undo"),
        request(input=order)[:-9],
        json.dumps({**json.loads(request(input=order)), "version": 9, "completeBy": CANARY}),
        json.dumps({**json.loads(request(input=order)), "taskId": CANARY * 20}),
    ]
    assert world.handle(*bodies) == []
    world.reply_url = world.reply_url.replace("Greeter", "Nobody")
    world.agent = Agent("greeter")
    assert world.handle(request(input=order)) == ["m0"]

    output = capfd.readouterr()
    records = [f"{record.__dict__}" for record in caplog.records if record.levelname != "DEBUG"]
    assert len(output.out.splitlines()) >= 12
    assert CANARY not in output.out + output.err + "".join(records)
