"""A record under 1 KB costs one write unit, and every decision writes the record."""

from dataclasses import replace

from roundsman.aws.dynamodb.codec import task_item
from roundsman.engine.due import with_due_entry, without_owed
from roundsman.model.instants import SECOND
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Owed, Task
from tests.contract.samples import NOW, PLAN, REPLY_TO, born
from tests.support.item_size import item_size, number_size
from tests.support.steps import step_record

WRITE_UNIT = 1024

RESULTS = {
    "reserve_stock": {"reservationId": "res_9f8e7d6c5b4a39281706"},
    "charge_card": {"chargeId": "ch_3MqZlPLkdIwHu7ix0slN3S9y"},
    "create_shipment": {"shipmentId": "shp_8a7b6c5d4e3f2a1b0c9d"},
    "send_confirmation": {"messageId": "msg_0102018c5d4e3f2a1b0c9d8e"},
}


def fulfilled(task: Task) -> Task:
    """Every step processed at its first attempt, a second or so apart."""
    steps = {
        name: step_record(
            process_state=ProcessState.PROCESSED,
            locked_by=f"7f3a-0c1d2e3f4{n}.1",
            complete_by=NOW + 61_234 + n * 1_357,
            started_at=NOW + 1_234 + n * 1_357,
            finished_at=NOW + 2_345 + n * 1_357,
            result=RESULTS[name],
        )
        for n, name in enumerate(PLAN.steps)
    }
    over = replace(
        task,
        version=6,
        state=TaskState.COMPLETED,
        steps=steps,
        ended_at=NOW + 7_777,
        owed=tuple(Owed("status", "completed", 6, NOW + 7_777, "") for _ in "1" if task.reply_to),
    )
    return with_due_entry(over, NOW + 7_777)


def test_a_completed_order_of_four_steps_costs_one_write_unit() -> None:
    task = fulfilled(replace(born("ord-2026-11-21-000123"), retain_for=604_800 * SECOND))
    assert item_size(task_item(task)) < WRITE_UNIT


def test_so_does_one_whose_application_asked_for_statuses_once_they_are_sent() -> None:
    asked = replace(born("ord-1001"), reply_to=REPLY_TO)
    task = without_owed(fulfilled(asked), NOW + 8_000)
    assert item_size(task_item(task)) < WRITE_UNIT


def test_numbers_are_counted_as_dynamodb_counts_them() -> None:
    sizes = {"0": 1, "7": 2, "10": 2, "100": 2, "1790000000123": 8, "-5": 3, "1.5": 2}
    assert {text: number_size(text) for text in sizes} == sizes
