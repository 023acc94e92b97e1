"""Alerts: what an operator needs, in a form that SNS takes, without order contents."""

import json
from datetime import timedelta
from typing import Any

import pytest

from roundsman.alerts import Alert, subject, task_alert, trouble_alert
from roundsman.task import Owed
from roundsman.values import Json
from roundsman.workflow import Archive, Compensation, Retry, Undo, Wait
from tests.unit.machine_world import T0, World, plan, step

ORDER: Json = {"paymentToken": "tok_secret", "shippingAddress": {"name": "A. Reader"}}


def alert_of(world: World, *, with_plan: bool = True) -> tuple[Alert, dict[str, Any]]:
    owed = next(owed for owed in world.task.owed if owed.kind == "alert")
    alert = task_alert(world.task, world.plan if with_plan else None, owed)
    return alert, json.loads(alert.body)


def failed() -> World:
    a = step("a")
    b = step("b", a, on_failure=Archive(), retry=Retry(max_attempts=2))
    world = World(plan(a, b, step("c", b)), order=ORDER)
    world.start()
    world.succeeds("a", {"secret": "r-1"})
    world.fails("b")
    world.wait(60).start()
    world.fails("b")
    return world


def test_an_alert_says_what_failed_since_when_how_often_and_what_may_stand() -> None:
    alert, body = alert_of(failed())
    assert body == {
        "alert": "task_archived",
        "severity": "error",
        "taskId": "ord-1",
        "workflow": "story",
        "state": "Archived",
        "reason": "b: attempt 2 of 2 failed: Unavailable: 503",
        "since": "2027-01-15T08:01:00.000Z",
        "submittedAt": "2027-01-15T08:00:00.000Z",
        "step": "b",
        "attempts": 2,
        "lastError": {"type": "Unavailable", "message": "503"},
        "steps": {"a": "Processed", "b": "Error", "c": "Pending"},
        "mayHaveHappened": ["a", "b"],
        "undone": [],
        "undoFailed": [],
        "look": "roundsman show ord-1",
        "resubmit": "roundsman resubmit ord-1 --reason '...'",
    }
    assert alert.subject == "Roundsman: story ord-1 archived"
    assert alert.attributes == {
        "kind": "task_archived",
        "workflow": "story",
        "step": "b",
        "severity": "error",
    }


def test_an_alert_carries_no_order_contents_and_no_results() -> None:
    alert, _ = alert_of(failed())
    for content in ("tok_secret", "A. Reader", "r-1"):
        assert content not in repr(alert)


def test_an_undo_that_failed_is_critical_and_says_what_stands_and_what_is_undone() -> None:
    undone = Compensation(fences_late_performs=True, retry=Retry(max_attempts=1))
    a = step("a", compensation=undone)
    b = step("b", a, compensation=undone)
    world = World(plan(a, b, step("c", b, on_failure=Undo())))
    world.start()
    world.succeeds("a")
    world.succeeds("b")
    world.is_refused("c")
    world.succeeds("b")
    world.is_refused("a")
    alert, body = alert_of(world)
    assert (body["severity"], alert.attributes["severity"]) == ("critical", "critical")
    assert (body["undone"], body["undoFailed"]) == (["b"], ["a"])
    assert body["mayHaveHappened"] == ["a", "c"]
    assert body["steps"] == {"a": "UndoError", "b": "Undone", "c": "Error"}
    assert body["reason"] == "c: failed for good: CardDeclined: insufficient funds"


def test_a_refusal_is_an_attempt_too() -> None:
    world = World(plan(step("a")))
    world.start()
    world.fails("a")
    world.wait(60).start()
    world.is_refused("a")
    assert alert_of(world)[1]["attempts"] == 2
    waits = Wait(timedelta(minutes=1), 1, then=Archive())
    waited = World(plan(step("a", retry=Retry(max_attempts=1), on_failure=waits)))
    waited.start()
    waited.fails("a")
    waited.wait(60).start()
    waited.is_refused("a")
    assert alert_of(waited)[1]["attempts"] == 2


def test_a_step_that_was_never_claimed_was_tried_no_times() -> None:
    world = World(plan(step("a", when="abs(input.paymentToken)")), order=ORDER)
    world.start()
    alert, body = alert_of(world)
    assert (body["step"], body["attempts"], body["mayHaveHappened"]) == ("a", 0, [])
    assert "tok_secret" not in repr(alert)


def test_a_task_that_ran_out_of_time_names_no_step() -> None:
    world = World(plan(step("a")))
    world.wait(3_600).start()
    alert, body = alert_of(world)
    assert (body["step"], body["attempts"], body["lastError"]) == (None, None, None)
    assert alert.attributes["step"] == "none"


def test_a_task_whose_plan_is_missing_has_an_alert_too() -> None:
    world = World(plan(step("a")))
    world.start()
    world.stored_plan = False
    world.overdue("a")
    _, body = alert_of(world, with_plan=False)
    assert body["steps"] == {"a": "Error"}
    assert "is not stored" in body["reason"]


def test_a_record_that_cannot_be_handled_has_an_alert_of_its_own() -> None:
    alert = trouble_alert("ord-1", "NoTransition: x", T0)
    assert json.loads(alert.body) == {
        "alert": "task_unreadable",
        "severity": "critical",
        "taskId": "ord-1",
        "reason": "NoTransition: x",
        "since": "2027-01-15T08:00:00.000Z",
        "look": "roundsman show ord-1",
    }
    assert set(alert.attributes) == {"kind", "workflow", "step", "severity"}
    assert alert.attributes["severity"] == "critical"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("Größe\n\t\x7f", "Gr??e???"),
        ("x" * 99, "x" * 99),
        ("x" * 100, "x" * 96 + "..."),
    ],
)
def test_a_subject_is_printable_ascii_of_under_a_hundred_characters(
    text: str, expected: str
) -> None:
    assert subject(text) == expected
    assert len(subject(text)) < 100


def test_an_id_of_any_length_and_script_has_a_subject_that_sns_takes() -> None:
    for task_id in ("ö" * 128, "a\r\nb", "x" * 128):
        alert = trouble_alert(task_id, "x", T0)
        assert len(alert.subject) < 100
        assert alert.subject.isascii()
        assert alert.subject.isprintable()


def test_every_owed_alert_has_the_seq_of_its_decision() -> None:
    world = failed()
    owed = [owed for owed in world.task.owed if owed.kind == "alert"]
    assert owed == [Owed("alert", "task_archived", world.task.version, world.now, owed[0].detail)]
