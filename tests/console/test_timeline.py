"""What `roundsman timeline` prints of orders, by their real ends."""

from dataclasses import replace

import pytest

from roundsman.model.events import HistoryRow
from roundsman.model.states import ProcessState
from roundsman_console.facts.order.order_facts import OrderFacts
from roundsman_console.facts.order.timeline import NO_HISTORY, happenings, not_known
from tests.console.operators import DECLINED, Operator
from tests.console.schemas import assert_schema
from tests.console.shelves import archived, open_task
from tests.console.step_samples import AT, facts, plan
from tests.moto.orders import MOTO_SENDER, order
from tests.support.steps import step_record


@pytest.mark.exhaustive
def test_an_order_is_shown_from_its_record_and_history_with_what_is_not_known(
    operator: Operator,
) -> None:
    operator.world.submit(order("ord-1"))
    operator.world.run()
    printed = operator.reads("timeline", "ord-1")
    assert_schema("timeline", printed)
    assert printed["notKnown"] == [NO_HISTORY]
    happened = printed["happened"]
    assert isinstance(happened, list)
    assert [(one["what"], one["step"]) for one in happened] == [
        ("submitted", None),
        ("started", "reserve_stock"),
        ("finished", "reserve_stock"),
        ("started", "charge_card"),
        ("finished", "charge_card"),
        ("started", "create_shipment"),
        ("finished", "create_shipment"),
        ("started", "send_confirmation"),
        ("finished", "send_confirmation"),
        ("ended", None),
    ]

    operator.world.submit({**order("ord-2"), **DECLINED})
    operator.world.run()
    assert operator.asks("resubmit", "ord-2", "--again").exit_code == 0
    lines = operator.types("timeline", "ord-2").stdout.splitlines()
    assert lines[0] == "ord-2  order_fulfilment  Undone"
    assert lines[1].split() == ["At", "Later", "What", "By", "Sender", "Why"]
    text = " ".join(" ".join(lines).split())
    assert "submitted" in text
    assert "failed charge_card: failed for good: CardDeclined" in text
    assert f"resubmit ops {MOTO_SENDER} resubmit by ops: routine" in text
    assert "has the start of the undo instead of the start of the step" in text


def test_what_is_ahead_is_not_listed() -> None:
    task = open_task("ord-1", AT)
    happened = happenings(OrderFacts(task, plan(), at=AT - 1))
    assert happened == []
    assert [one.what for one in happenings(facts(task))] == ["submitted"]
    assert not_known(facts(task)) == []


def test_a_time_limit_that_a_command_starts_again_is_no_start_that_was_waited_for() -> None:
    task = replace(open_task("ord-1", AT), created_at=AT - 9, start_at=AT)
    row = HistoryRow(1_000, AT, "resubmit", None, None, "resubmit by ops: routine", "ops", "c-1")
    assert [one.what for one in happenings(facts(task))] == ["submitted", "time has come"]
    listed = [one.what for one in happenings(replace(facts(task), history=[row]))]
    assert listed == ["submitted", "retried", "resubmit"]


def test_a_failure_that_the_history_has_is_not_listed_twice() -> None:
    task = archived("ord-1", AT)
    record = step_record(process_state=ProcessState.ERROR, started_at=AT - 1, finished_at=AT)
    task = replace(task, steps={"charge": record})
    row = HistoryRow(1_000, AT, "failed", "charge", 1, "charge: failed for good")
    assert [one.what for one in happenings(replace(facts(task), history=[row]))][1:] == [
        "started",
        "failed",
        "ended",
    ]
    assert [one.what for one in happenings(facts(task))][1:] == [
        "started",
        "finished",
        "ended",
    ]


def test_a_step_that_is_heard_of_and_one_that_waits_for_a_callback_say_so() -> None:
    record = step_record(
        process_state=ProcessState.PROCESSING, started_at=AT - 9, heard_at=AT - 5, waiting=True
    )
    happened = happenings(facts(open_task("ord-1", AT - 10, {"charge": record})))
    assert [(one.what, one.why) for one in happened][-1] == (
        "heard of",
        "charge: waits for a callback",
    )
