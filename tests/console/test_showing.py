"""What `roundsman show` and `roundsman ls` print of tasks that met trouble, by their real ends."""

import pytest

from tests.console.operators import DECLINED, Operator
from tests.moto.orders import MOTO_SENDER, order

UNDONE = {**order("ord-1"), **DECLINED}


def test_show_prints_the_history_newest_last_and_what_was_undone(operator: Operator) -> None:
    operator.world.submit(UNDONE)
    operator.world.run()
    lines = [line.rstrip() for line in operator.types("show", "ord-1").stdout.splitlines()]
    assert lines[0] == "ord-1  order_fulfilment  Undone"
    assert "Undone 2027-01-15T08:00:00Z: reserve_stock, charge_card" in lines
    assert not any(line.startswith(("Undo failed", "Cannot be undone")) for line in lines)
    heading = next(index for index, line in enumerate(lines) if line.startswith("At "))
    assert lines[heading].split() == ["At", "What", "Why"]
    rows = [line.split(maxsplit=2)[1:] for line in lines[heading + 1 :] if line.startswith("2027-")]
    assert rows == [
        ["failed", "charge_card: failed for good: CardDeclined: POST answered 402"],
        ["undo", "charge_card: its undo begins"],
        ["undone", "charge_card: undone"],
        ["undo", "reserve_stock: its undo begins"],
        ["undone", "reserve_stock: undone"],
    ]


@pytest.mark.exhaustive
def test_show_as_json_has_the_history_the_ending_and_each_steps_undo(operator: Operator) -> None:
    operator.world.submit(UNDONE)
    operator.world.run()
    shown = operator.reads("show", "ord-1")
    assert shown["ending"] == {
        "how": "Undone",
        "why": "charge_card: failed for good: CardDeclined: POST answered 402",
        "step": "charge_card",
        "undo": True,
        "part": [],
    }
    assert (shown["undone"], shown["undoFailed"], shown["withoutCompensation"]) == (
        ["reserve_stock", "charge_card"],
        [],
        [],
    )
    history = shown["history"]
    assert isinstance(history, list)
    assert history[0] == {
        "seq": 4000,
        "at": "2027-01-15T08:00:00.000Z",
        "kind": "failed",
        "step": "charge_card",
        "attempt": 1,
        "by": None,
        "sender": None,
        "commandId": None,
        "reason": "charge_card: failed for good: CardDeclined: POST answered 402",
        "signal": None,
    }
    assert [row["kind"] for row in history] == ["failed", "undo", "undone", "undo", "undone"]
    steps = shown["steps"]
    assert isinstance(steps, list)
    found = {
        step["name"]: (step["processState"], step["operation"], step["outcomeUnknown"])
        for step in steps
    }
    assert found["reserve_stock"] == ("Undone", "undo", False)
    assert found["charge_card"] == ("Undone", "undo", True)
    assert found["create_shipment"] == ("Pending", "perform", False)
    assert steps[1]["maxAttempts"] is None, "its undo is retried for a time"
    assert steps[3]["maxAttempts"] == 3
    assert (steps[1]["retryUntil"], steps[1]["unexpectedSince"]) == (None, None)
    assert steps[1]["round"] == 1


@pytest.mark.exhaustive
def test_show_prints_an_undo_that_failed(operator: Operator) -> None:
    operator.world.faults({"operation": "DELETE /reservations", "status": 422})
    operator.world.submit(UNDONE)
    operator.world.run()
    shown = operator.types("show", "ord-1").stdout
    assert "May stand: reserve_stock\nUndone 2027-01-15T08:00:00Z: charge_card\n" in shown
    assert "Undo failed: reserve_stock\n" in shown
    assert operator.reads("show", "ord-1")["undoFailed"] == ["reserve_stock"]


@pytest.mark.exhaustive
def test_show_prints_what_nothing_undoes(operator: Operator) -> None:
    operator.world.faults({"operation": "POST /messages", "status": 422})
    operator.world.submit(order("ord-1"))
    operator.world.run()
    assert operator.asks("undo", "ord-1").exit_code == 0
    shown = operator.types("show", "ord-1").stdout
    assert "Cannot be undone: send_confirmation\n" in shown
    document = operator.reads("show", "ord-1")
    assert document["withoutCompensation"] == ["send_confirmation"]
    assert document["mayHaveHappened"] == ["send_confirmation"]


def test_show_prints_who_asked_and_what_was_refused(operator: Operator) -> None:
    operator.world.submit(order("ord-1", processIn=3600))
    operator.world.run()
    assert operator.asks("extend", "ord-1", "--by", "1m").exit_code == 0
    command = '{"version": 1, "kind": "undo", "taskId": "ord-1", "commandId": "c-1", "by": "amy"}'
    operator.world.send("SchedulerQueue", command)
    operator.world.run()
    lines = [line.rstrip() for line in operator.types("show", "ord-1").stdout.splitlines()]
    heading = next(index for index, line in enumerate(lines) if line.startswith("At "))
    assert lines[heading].split() == ["At", "What", "By", "Sender", "Why"]
    asked = ["extend", "ops", MOTO_SENDER, "extend by ops: routine"]
    assert lines[heading + 1].split(maxsplit=4)[1:] == asked
    assert lines[heading + 2].split(maxsplit=4)[1:4] == ["refused", "amy", MOTO_SENDER]


def test_show_of_a_healthy_order_has_no_history_and_no_empty_columns(operator: Operator) -> None:
    operator.world.submit(order("ord-1"))
    operator.world.run()
    shown = operator.types("show", "ord-1").stdout
    assert "Why" not in shown
    assert "Last error" not in shown
    assert operator.reads("show", "ord-1")["history"] == []
    assert operator.reads("show", "ord-1")["ending"] is None


def test_show_of_an_unknown_order_is_one_sentence(operator: Operator) -> None:
    result = operator.types("show", "ord-9", "--json")
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith(
        "There is no order ord-9 in roundsman. Its event may have been rejected, or still be in "
        "the SubmissionQueue."
    )


@pytest.mark.exhaustive
def test_ls_lists_undoing_undone_and_cancelled_tasks_each_by_its_state(operator: Operator) -> None:
    world = operator.world
    world.submit(UNDONE, order("ord-2", processIn=3600))
    world.run()
    assert operator.asks("cancel", "ord-2").exit_code == 0
    world.faults({"operation": "POST /refunds", "status": 503, "retryAfter": 600})
    world.submit({**order("ord-3"), **DECLINED})
    world.run()
    found = {
        state: [task["orderId"] for task in _tasks(operator, "--state", state)]
        for state in ("Undone", "Cancelled", "Undoing", "Archived")
    }
    assert found == {
        "Undone": ["ord-1"],
        "Cancelled": ["ord-2"],
        "Undoing": ["ord-3"],
        "Archived": [],
    }
    listed = operator.types("ls").stdout
    assert "cancelled by ops: routine" in " ".join(listed.split())
    assert _tasks(operator)[0]["state"] == "Undoing"


def _tasks(operator: Operator, *arguments: str) -> list[dict[str, object]]:
    tasks = operator.reads("ls", *arguments)["tasks"]
    assert isinstance(tasks, list)
    return tasks
