"""Alerts: what an operator needs, in a form that SNS takes, without order contents."""

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from roundsman.alerts.group import AlertKind, Census, census_of, opened
from roundsman.alerts.group_alert import group_alert
from roundsman.alerts.reporter import agent_of_step, unreadable_failure
from roundsman.alerts.samples import Sample
from roundsman.definition.workflow import Archive, Compensation, Retry, Undo, Wait
from roundsman.model.events import Agents, AgentView, HoldView
from roundsman.model.failure import Failure, Group, failure_of
from roundsman.model.instants import MINUTE
from roundsman.model.json import Json
from roundsman.ports import Member
from roundsman.wire.alert import Alert, breaker_closed_alert, breaker_opened_alert, subject
from roundsman.wire.alert_chat import chat_fields
from roundsman.wire.alert_email import sanitize
from tests.console.schemas import assert_schema
from tests.support.machine_world import T0, World, begun, plan, step

ORDER: Json = {"paymentToken": "tok_secret", "shippingAddress": {"name": "A. Reader"}}


def group_of(world: World, sample: Sample) -> Group:
    failure = failure_of(world.task)
    assert failure is not None
    assert world.task.ended_at is not None
    return opened(
        failure,
        agent=agent_of_step(failure, sample),
        task_id=world.task.task_id,
        since=world.task.ended_at,
        now=world.now,
    )


def alert_of(
    world: World,
    *,
    with_plan: bool = True,
    news: AlertKind = AlertKind.FIRST,
    census: Census | None = None,
    agents: Agents | None = None,
) -> tuple[Alert, dict[str, Any]]:
    sample = Sample(world.task, world.plan if with_plan else None)
    group = group_of(world, sample)
    member = Member(world.task.task_id, group.since, world.task.complete_by)
    known = {} if agents is None else agents
    alert = group_alert(news, group, census or census_of([member]), [sample], known, world.now)
    document = json.loads(alert.body)
    assert_schema("alert-message", document)
    return alert, document


def failed() -> World:
    a = step("a")
    b = step("b", a, on_failure=Archive(), retry=Retry(max_attempts=2))
    world = begun(a, b, step("c", b), order=ORDER)
    world.succeeds("a", {"secret": "r-1"})
    world.fails("b")
    world.wait(60).start()
    world.fails("b")
    return world


def test_an_alert_says_what_failed_and_why_how_many_are_hit_and_what_to_do() -> None:
    alert, body = alert_of(failed())
    group = body.pop("group")
    [sample] = body.pop("samples")
    chat = {name: body.pop(name) for name in ("version", "source", "content", "metadata")}
    assert chat == chat_fields(
        "task_archived", group, title=alert.subject, summary=alert.sms, text=alert.text
    )
    assert body == {
        "alert": "task_archived",
        "news": "first",
        "severity": "error",
        "summary": "1 order of story failed at b and is archived: Unavailable: 503",
        "workflow": "story",
        "step": "b",
        "how": "archived",
        "error": {"type": "Unavailable", "message": "*"},
        "count": 1,
        "moreThanCount": False,
        "firstSeen": "2027-01-15T08:01:00.000Z",
        "lastSeen": "2027-01-15T08:01:00.000Z",
        "oldestCompleteBy": "2027-01-15T09:00:00.000Z",
        "at": "2027-01-15T08:01:00.000Z",
        "agents": [{"agent": "worker", "takesWork": True, "why": None, "heldUntil": None}],
        "overSamples": {
            "samples": 1,
            "mayHaveHappened": {"a": 1, "b": 1},
            "undone": {},
            "undoFailed": {},
        },
        "do": {
            "look": [
                f"roundsman groups show {group}",
                "roundsman show ord-1",
                f"roundsman ui {group}",
            ],
            "hold": "roundsman hold worker --for 30m --reason '...'",
            "resubmit": f"roundsman resubmit --group {group} --reason '...'",
        },
    }
    assert sample == {
        "orderId": "ord-1",
        "state": "Archived",
        "failedAt": "2027-01-15T08:01:00.000Z",
        "submittedAt": "2027-01-15T08:00:00.000Z",
        "reason": "b: attempt 2 of 2 failed: Unavailable: 503",
        "step": "b",
        "attempts": 2,
        "lastError": {"type": "Unavailable", "message": "503"},
        "steps": {"a": "Processed", "b": "Error", "c": "Pending"},
        "mayHaveHappened": ["a", "b"],
        "undone": [],
        "undoFailed": [],
    }
    assert alert.subject == "Roundsman: story/b fails: Unavailable (1 order)"
    assert alert.attributes == {
        "kind": "task_archived",
        "workflow": "story",
        "step": "b",
        "severity": "error",
        "group": group,
        "agent": "worker",
        "news": "first",
    }


def test_the_words_of_an_alert_are_read_in_half_a_minute() -> None:
    alert, body = alert_of(failed())
    group = body["group"]
    assert alert.text == (
        "1 order of story failed at b and is archived: Unavailable: 503\n"
        "\n"
        f"group              {group} (error)\n"
        "orders             1\n"
        "first failure      2027-01-15T08:01:00.000Z\n"
        "last failure       2027-01-15T08:01:00.000Z\n"
        "first complete-by  2027-01-15T09:00:00.000Z\n"
        "agent              worker: accepts work\n"
        "effect may remain  a, b\n"
        "undone             none\n"
        "undo failed        none\n"
        "\n"
        "To see the details:\n"
        f"    roundsman groups show {group}\n"
        "    roundsman show ord-1\n"
        f"    roundsman ui {group}\n"
        "\n"
        "To stop calls to the service for 30 minutes:\n"
        "    roundsman hold worker --for 30m --reason '...'\n"
        "\n"
        "To resubmit the orders after the cause is repaired:\n"
        f"    roundsman resubmit --group {group} --reason '...'\n"
        "\n"
        "Sample orders:\n"
        "    ord-1  Archived, tried 2 times: b: attempt 2 of 2 failed: Unavailable: 503\n"
    )
    assert alert.sms == body["summary"]


def test_an_update_says_how_many_there_are_by_now() -> None:
    census = Census(count=16_000, more=True, first_at=T0, last_at=T0 + MINUTE, samples=("ord-1",))
    alert, body = alert_of(failed(), news=AlertKind.UPDATE, census=census)
    assert alert.subject == "Roundsman: story/b fails: Unavailable (more than 16000 orders now)"
    assert (body["count"], body["moreThanCount"]) == (16_000, True)
    assert body["summary"].startswith("more than 16000 orders of story failed at b and are archi")


def test_an_all_clear_is_of_its_group_and_asks_for_nothing() -> None:
    alert, body = alert_of(failed(), news=AlertKind.CLEAR, census=Census())
    assert alert.subject == "Roundsman: all clear: story/b: Unavailable"
    assert (body["severity"], body["count"], body["news"]) == ("info", 0, "clear")
    assert body["do"] == {"look": ["roundsman ls --workflow story --state Archived"]}
    assert "samples" not in body
    assert "resubmit" not in alert.text


def test_the_alert_names_an_agent_that_takes_no_work() -> None:
    held = {"worker/normal": AgentView(agent_hold=HoldView(T0 + MINUTE, "its circuit is open"))}
    alert, body = alert_of(failed(), agents=held)
    assert body["agents"] == [
        {
            "agent": "worker",
            "takesWork": False,
            "why": "its circuit is open",
            "heldUntil": "2027-01-15T08:01:00.000Z",
        }
    ]
    assert "agent              worker: its circuit is open\n" in alert.text


def test_where_nothing_is_known_of_the_agents_an_alert_says_so() -> None:
    world = failed()
    sample = Sample(world.task, world.plan)
    alert = group_alert(
        AlertKind.FIRST, group_of(world, sample), Census(count=1), [sample], None, T0
    )
    assert json.loads(alert.body)["agents"][0]["takesWork"] is None
    assert "worker: its state is not known" in alert.text


def test_an_alert_carries_no_order_contents_and_no_results() -> None:
    alert, _ = alert_of(failed())
    for content in ("tok_secret", "A. Reader", "r-1"):
        assert content not in repr(alert)


def test_an_undo_that_failed_is_critical_and_says_what_stands_and_what_is_undone() -> None:
    undone = Compensation(fences_late_performs=True, retry=Retry(max_attempts=1))
    a = step("a", compensation=undone)
    b = step("b", a, compensation=undone)
    world = begun(a, b, step("c", b, on_failure=Undo()))
    world.succeeds("a")
    world.succeeds("b")
    world.is_refused("c")
    world.succeeds("b")
    world.is_refused("a")
    alert, body = alert_of(world)
    assert (body["severity"], alert.attributes["severity"]) == ("critical", "critical")
    [sample] = body["samples"]
    assert (sample["undone"], sample["undoFailed"]) == (["b"], ["a"])
    assert sample["mayHaveHappened"] == ["a", "c"]
    world.task = replace(world.task, used_rounds={"gone": 1})
    [sample] = alert_of(world)[1]["samples"]
    assert sample["mayHaveHappened"] == ["a", "c", "gone"]
    [sample] = body["samples"]
    assert sample["steps"] == {"a": "UndoError", "b": "Undone", "c": "Error"}
    assert sample["reason"] == "c: failed for good: CardDeclined: insufficient funds"
    assert body["summary"].startswith("1 order of story: the undo of a failed, so its effect may")


def test_undone_orders_are_a_warning_and_are_begun_again_only_on_purpose() -> None:
    a = step("a", compensation=Compensation(fences_late_performs=True), on_failure=Undo())
    world = begun(a)
    world.is_refused("a")
    world.succeeds("a")
    census = Census(count=25, first_at=T0, last_at=T0, samples=("ord-1",))
    alert, body = alert_of(world, census=census)
    assert (body["alert"], body["severity"]) == ("orders_undone", "warning")
    assert body["summary"] == (
        "25 orders of story failed at a and were undone in the last 10 min: "
        "CardDeclined: insufficient funds"
    )
    assert body["do"]["resubmit"].endswith("--again --reason '...'")
    assert alert.subject == "Roundsman: story/a fails, orders are undone: CardDeclined (25 orders)"


def test_a_refusal_is_an_attempt_too() -> None:
    world = begun(step("a"))
    world.fails("a")
    world.wait(60).start()
    world.is_refused("a")
    assert Sample(world.task, world.plan).attempts == 2
    waits = Wait(timedelta(minutes=1), 1, then=Archive())
    waited = begun(step("a", retry=Retry(max_attempts=1), on_failure=waits))
    waited.fails("a")
    waited.wait(60).start()
    waited.is_refused("a")
    assert Sample(waited.task, waited.plan).attempts == 2


def test_a_step_that_was_never_claimed_was_tried_no_times() -> None:
    world = begun(step("a", when="abs(input.paymentToken)"), order=ORDER)
    alert, body = alert_of(world)
    [sample] = body["samples"]
    assert (sample["step"], sample["attempts"], sample["mayHaveHappened"]) == ("a", 0, [])
    assert "tok_secret" not in repr(alert)


def test_a_task_that_ran_out_of_time_names_no_step() -> None:
    world = World(plan(step("a")))
    world.wait(3_600).start()
    alert, body = alert_of(world)
    [sample] = body["samples"]
    assert (sample["step"], sample["attempts"], sample["lastError"]) == (None, None, None)
    assert (alert.attributes["step"], alert.attributes["agent"]) == ("none", "none")
    assert "hold" not in body["do"]


def test_a_task_whose_plan_is_missing_has_an_alert_too() -> None:
    world = begun(step("a"))
    world.stored_plan = False
    world.overdue("a")
    _, body = alert_of(world, with_plan=False)
    [sample] = body["samples"]
    assert sample["steps"] == {"a": "Error"}
    assert "is not stored" in sample["reason"]


# ---- records that cannot be handled, and texts that mean harm ------------------------------


def unreadable(task_id: str) -> Alert:
    failure = unreadable_failure(KeyError("x"))
    group = opened(failure, agent="", task_id=task_id, since=T0, now=T0)
    census = census_of([Member(task_id, T0, 0)])
    alert = group_alert(AlertKind.FIRST, group, census, [], {}, T0)
    assert_schema("alert-message", json.loads(alert.body))
    return alert


def test_a_record_that_cannot_be_handled_has_an_alert_of_its_kind() -> None:
    alert = unreadable("ord-1")
    body = json.loads(alert.body)
    assert body["alert"] == "task_unreadable"
    assert (body["severity"], body["samples"]) == ("critical", ["ord-1"])
    assert body["do"] == {
        "look": [
            f"roundsman groups show {body['group']}",
            "roundsman show ord-1",
            f"roundsman ui {body['group']}",
        ]
    }
    assert alert.attributes["severity"] == "critical"


def test_an_alert_of_a_strange_record_goes_out_without_it() -> None:
    world = failed()
    sample = Sample(world.task, plan(step("other")))
    alert = group_alert(AlertKind.FIRST, group_of(world, sample), Census(count=1), [sample], {}, T0)
    assert json.loads(alert.body)["samples"] == []


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


def test_an_id_of_any_length_and_script_has_an_alert_that_sns_takes() -> None:
    for task_id in ("ö" * 128, "a\r\nb", "x" * 128):
        alert = unreadable(task_id)
        assert len(alert.subject) < 100
        assert alert.subject.isascii()
        assert alert.subject.isprintable()
        assert f"roundsman show {sanitize(task_id)}" in alert.text.replace("'", "")


def test_nothing_from_outside_moves_a_cursor_hides_a_line_or_turns_the_writing_round() -> None:
    evil = "\x1b[2J\u202egnp.exe\u2028\r\nTo go on:\n    rm -rf /\x00"
    failure = Failure("story", "a", "archived", evil, evil)
    group = opened(failure, agent="worker", task_id="ord-1", since=T0, now=T0)
    alert = group_alert(AlertKind.FIRST, group, Census(count=1), [], {}, T0)
    assert all(line.isprintable() for line in alert.text.split("\n"))
    assert "\n    rm -rf" not in alert.text
    assert alert.sms.isprintable()
    assert json.loads(alert.body)["error"]["message"] == evil, "programs get it as it is"


def test_an_order_id_is_quoted_where_a_shell_would_act_on_it() -> None:
    look = json.loads(unreadable("a; rm -rf /").body)["do"]["look"]
    assert look[1] == "roundsman show 'a; rm -rf /'"


# ---- agents --------------------------------------------------------------------------------


def test_the_alert_of_an_open_circuit_has_what_happens_and_what_to_do() -> None:
    alert = breaker_opened_alert("payment", "5 calls in a row failed", opened_at=T0, until=T0)
    body = json.loads(alert.body)
    assert body["do"]["hold"] == "roundsman hold payment --for 30m --reason '...'"
    assert alert.text.startswith("The circuit of agent payment is open: 5 calls in a row failed; i")
    assert "    roundsman agents\n" in alert.text
    assert alert.attributes["agent"] == "payment"


def test_the_alert_of_a_closed_circuit_has_how_long_it_was_open() -> None:
    alert = breaker_closed_alert("payment", since=T0, now=T0 + 3 * MINUTE)
    assert alert.sms == (
        "The service of agent payment answers again after 3 min; "
        "the agent's steps continue automatically"
    )
    assert json.loads(alert.body)["openFor"] == 3 * MINUTE


def test_every_owed_alert_has_the_seq_of_its_decision() -> None:
    world = failed()
    [owed] = [owed for owed in world.task.owed if owed.kind == "alert"]
    assert (owed.name, owed.seq, owed.at) == ("task_archived", world.task.version, world.now)
