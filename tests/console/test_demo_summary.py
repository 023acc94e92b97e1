"""The demo's summary: it passes on facts alone, and each kind of deviation makes it fail."""

import json
from dataclasses import replace

import pytest

from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Owed
from roundsman.ports import OrderRow
from roundsman_console.base.result import document_of
from tests.console.demo_samples import (
    SENT,
    changed,
    good_facts,
    sent_of,
    step,
    task,
    with_task,
)
from tests.console.schemas import assert_schema
from tools.demo.facts import (
    AlertSeen,
    DemoFacts,
    LedgerEffect,
    QueueDepth,
    SeenRejection,
)
from tools.demo.report import report_of
from tools.demo.scenario import CASES
from tools.demo.summary import perform_key, summarise, undo_key


def differences(facts: DemoFacts) -> list[str]:
    summary = summarise(SENT, facts)
    assert summary.ok is not bool(summary.all_differences())
    return summary.all_differences()


def only_difference(facts: DemoFacts) -> str:
    found = differences(facts)
    assert len(found) == 1, found
    return found[0]


def without_effect(facts: DemoFacts, key: str) -> DemoFacts:
    return replace(facts, effects=[e for e in facts.effects if e.key != key])


def test_a_run_whose_facts_are_as_expected_is_ok() -> None:
    assert differences(good_facts()) == []


def test_a_run_of_which_nothing_is_known_fails_for_every_message() -> None:
    summary = summarise(SENT, DemoFacts())
    assert not summary.ok
    assert [verdict.case.event for verdict in summary.verdicts if verdict.ok] == []


def test_an_order_that_ended_in_another_state_is_named_with_the_reason() -> None:
    facts = good_facts()
    archived = replace(
        facts.tasks["ord-1009"], task_id="ord-1001", steps=facts.tasks["ord-1001"].steps
    )
    difference = only_difference(with_task(facts, archived))
    assert difference.startswith("good.json (ord-1001): it is Archived, not Completed: send_conf")


def test_an_order_that_should_fail_and_did_not_is_named() -> None:
    facts = good_facts()
    completed = replace(facts.tasks["ord-1009"], state=TaskState.COMPLETED, ending=None)
    assert "it is Completed, not Archived" in only_difference(with_task(facts, completed))


@pytest.mark.parametrize("order_id", ["ord-1005", "ord-1008"])
def test_an_order_that_should_be_undone_and_was_archived_is_named(order_id: str) -> None:
    facts = good_facts()
    archived = replace(facts.tasks[order_id], state=TaskState.ARCHIVED)
    assert "it is Archived, not Undone" in only_difference(with_task(facts, archived))


def test_an_order_that_was_cancelled_by_somebody_else_is_named_twice() -> None:
    facts = good_facts()
    found = facts.tasks["ord-1010"]
    assert found.ending is not None
    other = replace(found, ending=replace(found.ending, why="cancelled by operator"))
    difference = differences(with_task(facts, other))
    assert [line.partition(":")[0] for line in difference] == [
        "later.json (ord-1010)",
        "later.json (ord-1010)",
        "cancel.json (ord-1010)",
    ]


def test_an_effect_that_still_stands_though_it_should_be_undone_is_named() -> None:
    facts = good_facts()
    key = perform_key("ord-1008", "charge_card")
    stands = [replace(e, undone=False) if e.key == key else e for e in facts.effects]
    difference = only_difference(replace(facts, effects=stands))
    assert difference == "undeliverable.json (ord-1008): the effect of charge_card still stands"


def test_an_effect_that_was_undone_for_nothing_is_named() -> None:
    facts = good_facts()
    key = perform_key("ord-1001", "charge_card")
    undone = [replace(e, undone=True) if e.key == key else e for e in facts.effects]
    difference = only_difference(replace(facts, effects=undone))
    assert difference == "good.json (ord-1001): the effect of charge_card was undone"


@pytest.mark.parametrize(("times", "words"), [(0, "not at all"), (2, "twice")])
def test_an_undo_that_did_not_happen_once_is_named(times: int, words: str) -> None:
    facts = good_facts()
    key = undo_key("ord-1005", "reserve_stock")
    counted = [replace(e, effects=times) if e.key == key else e for e in facts.effects]
    difference = only_difference(replace(facts, effects=counted))
    assert difference.endswith(f"the effect of reserve_stock was undone {words}, not once")


def test_an_undo_that_was_never_made_again_is_named() -> None:
    facts = good_facts()
    key = undo_key("ord-1008", "charge_card")
    once = [replace(e, calls=1) if e.key == key else e for e in facts.effects]
    difference = only_difference(replace(facts, effects=once))
    assert difference.endswith("the undo of charge_card was not called again with the same key")


def test_an_order_without_a_task_is_named() -> None:
    facts = good_facts()
    tasks = {name: found for name, found in facts.tasks.items() if name != "ord-1007"}
    assert only_difference(replace(facts, tasks=tasks)).endswith("there is no task")


@pytest.mark.parametrize(
    ("order_id", "word"), [("ord-1009", "NoSuchMailbox"), ("ord-1005", "Card")]
)
def test_a_task_that_ended_for_another_reason_is_named(order_id: str, word: str) -> None:
    facts = good_facts()
    found = facts.tasks[order_id]
    assert found.ending is not None
    why = found.ending.why.replace(word, "")
    other = replace(found, ending=replace(found.ending, why=why))
    assert "its reason does not contain" in only_difference(with_task(facts, other))


def test_a_task_that_still_owes_an_alert_is_named() -> None:
    facts = good_facts()
    owing = replace(facts.tasks["ord-1001"], owed=(Owed("alert", "task_archived", 3, 0, ""),))
    assert "it has not sent task_archived" in only_difference(with_task(facts, owing))


@pytest.mark.parametrize(
    ("order_id", "name", "failures", "wanted"),
    [
        ("ord-1001", "charge_card", 1, "is 1, not 0"),
        ("ord-1002", "charge_card", 0, "is 0, not 1"),
        ("ord-1003", "charge_card", 1, "is 1, not 0"),
        ("ord-1004", "reserve_stock", 2, "is 2, not 0 to 1"),
    ],
)
def test_a_failure_count_that_is_not_as_expected_is_named(
    order_id: str, name: str, failures: int, wanted: str
) -> None:
    facts = changed(good_facts(), order_id, **{name: step(failures=failures)})
    assert only_difference(facts).endswith(f"the FailureCount of {name} {wanted}")


def test_an_effect_that_happened_twice_is_named() -> None:
    facts = good_facts()
    key = perform_key("ord-1003", "charge_card")
    twice = [replace(e, effects=2) if e.key == key else e for e in facts.effects]
    difference = only_difference(replace(facts, effects=twice))
    assert difference.endswith("the effect of charge_card happened twice, not once")


def test_an_effect_that_never_happened_is_named() -> None:
    facts = without_effect(good_facts(), perform_key("ord-1001", "send_confirmation"))
    assert "send_confirmation happened not at all, not once" in only_difference(facts)


@pytest.mark.parametrize(
    "key",
    [
        perform_key("ord-1005", "charge_card"),
        perform_key("ord-1006", "reserve_stock"),
        "ord-1001/charge_card/perform/2",
        "ord-1001/charge_card/undo",
    ],
)
def test_an_effect_that_nothing_asked_for_is_named(key: str) -> None:
    facts = without_effect(good_facts(), key)
    stray = LedgerEffect(key, key.split("/", maxsplit=1)[0], "payment", effects=1, calls=1)
    difference = only_difference(replace(facts, effects=[*facts.effects, stray]))
    assert difference == f"an unexpected effect happened: {key}, once"


def test_a_retry_that_was_never_made_is_named() -> None:
    facts = good_facts()
    key = perform_key("ord-1002", "charge_card")
    once = [replace(e, calls=1) if e.key == key else e for e in facts.effects]
    difference = only_difference(replace(facts, effects=once))
    assert difference.endswith("charge_card was not called again with the same key")


@pytest.mark.parametrize(
    ("struck", "order_id"), [((0, 1, 1, 1, 1), "1002"), ((1, 1, 1, 1), "1009")]
)
def test_a_fault_that_never_struck_is_named(struck: tuple[int, ...], order_id: str) -> None:
    difference = only_difference(replace(good_facts(), struck=struck))
    assert order_id in difference
    assert difference.endswith("its fault was never applied")


def test_a_missing_alert_is_named() -> None:
    difference = only_difference(replace(good_facts(), alerts=()))
    assert difference == "no-mail.json (ord-1009): there was no alert about it"


def test_an_alert_about_a_healthy_order_is_named() -> None:
    facts = good_facts()
    stray = AlertSeen(order_id="ord-1001", subject="archived", reason="no reason")
    difference = only_difference(replace(facts, alerts=[*facts.alerts, stray]))
    assert difference == "there was an unexpected alert: archived (no reason)"


def test_an_alert_that_comes_twice_is_delivery_at_least_once() -> None:
    facts = good_facts()
    assert differences(replace(facts, alerts=[*facts.alerts, *facts.alerts])) == []


def test_an_alarm_of_the_stack_is_about_no_order() -> None:
    facts = good_facts()
    alarm = AlertSeen(subject="ALARM: archived tasks", reason="Threshold crossed")
    assert differences(replace(facts, alerts=[*facts.alerts, alarm])) == []


@pytest.mark.parametrize("dead_letters", [True, False])
def test_a_message_left_in_a_queue_is_named(dead_letters: bool) -> None:
    left = QueueDepth("PaymentRequestDeadLetterQueue", 1, dead_letters)
    difference = only_difference(replace(good_facts(), queues=[left]))
    assert difference == "PaymentRequestDeadLetterQueue still holds 1 message"


def test_a_run_whose_queues_were_not_looked_at_fails() -> None:
    assert only_difference(replace(good_facts(), queues=())) == "no queue was checked"


def test_a_call_that_still_hangs_is_named() -> None:
    difference = only_difference(replace(good_facts(), hanging=1))
    assert difference == "at the end, 1 call hangs at the remote services"


def test_a_malformed_event_that_was_not_rejected_is_named() -> None:
    facts = good_facts()
    kept = [r for r in facts.rejections if r.body != sent_of("malformed.json").body]
    difference = only_difference(replace(facts, rejections=kept))
    assert difference == "malformed.json (ord-1006): it is not in the RejectedQueue"


def test_a_problem_that_the_rejection_does_not_name_is_named() -> None:
    facts = good_facts()
    cut = [replace(r, problems=r.problems[:1]) for r in facts.rejections]
    found = differences(replace(facts, rejections=cut))
    assert len(found) == 7
    assert found[0].endswith("the problem at lines[0].quantity is not named")


def test_a_rejection_for_another_reason_is_named() -> None:
    facts = good_facts()
    body = sent_of("conflicting.json").body
    other = SeenRejection(body, (("lines", "are too many"),))
    found = differences(
        replace(facts, rejections=[other, *(r for r in facts.rejections if r.body != body)])
    )
    assert len(found) == 2
    assert "an unexpected problem is named: lines: are too many" in found[1]


def test_a_good_order_that_was_rejected_is_named() -> None:
    facts = good_facts()
    refused = SeenRejection(sent_of("urgent.json").body, (("currency", "is wrong"),))
    difference = only_difference(replace(facts, rejections=[*facts.rejections, refused]))
    assert difference.endswith("it was rejected: currency: is wrong")


def test_a_rejected_message_that_the_demo_did_not_send_is_named() -> None:
    facts = good_facts()
    stray = SeenRejection("{}", (("version", "missing"),))
    difference = only_difference(replace(facts, rejections=[*facts.rejections, stray]))
    assert difference.startswith("a message that the demo did not send was rejected: version")


def test_a_duplicate_that_changed_the_order_is_named() -> None:
    facts = good_facts()
    row = OrderRow("ord-1001", {"orderId": "ord-1001", "total": "0"}, "b" * 64, 1_000)
    difference = only_difference(replace(facts, rows={**facts.rows, "ord-1001": row}))
    assert difference.startswith("duplicate.json (ord-1001): the order's row is not what it was")


def test_a_task_and_an_order_that_nobody_sent_are_named() -> None:
    facts = good_facts()
    stray = task("ord-1006", {}, TaskState.COMPLETED)
    row = OrderRow("ord-1006", {}, "c" * 64, 1_000)
    found = differences(replace(with_task(facts, stray), rows={**facts.rows, "ord-1006": row}))
    assert found == [
        "there is an unexpected task ord-1006",
        "there is an unexpected order row ord-1006",
    ]


def test_what_was_still_open_at_the_end_of_the_time_fails_the_run() -> None:
    summary = summarise(SENT, good_facts(), still_open=["after 300 s ord-1001 is open"])
    assert not summary.ok
    assert summary.all_differences() == ["after 300 s ord-1001 is open"]


def test_the_json_has_an_entry_for_every_message_with_its_end() -> None:
    facts = changed(good_facts(), "ord-1001", charge_card=step(ProcessState.PROCESSED, 3))
    found = json.loads(json.dumps(document_of(report_of(summarise(SENT, facts, seconds=61.26)))))
    assert_schema("make-demo", found)
    assert found["ok"] is False
    assert found["seconds"] == 61.3
    assert [order["event"] for order in found["orders"]] == [case.event for case in CASES]
    first, hangs = found["orders"][0], found["orders"][3]
    assert first["failureCounts"] == {"charge_card": 3}
    assert first["ok"] is False
    assert first["detail"] == "the FailureCount of charge_card is 3, not 0"
    assert (hangs["expected"], hangs["actual"], hangs["ok"]) == ("Completed", "Completed", True)
    assert hangs["failureCounts"] == {"reserve_stock": 1}
    assert found["alerts"][0]["orderId"] == "ord-1009"
    assert found["queues"] == {"lookedAt": 2, "messages": 0}
    assert {"key", "orderId", "service", "effects", "calls", "undone"} == set(found["effects"][0])
