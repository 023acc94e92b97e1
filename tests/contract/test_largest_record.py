"""The largest record that the limits allow is stored: DynamoDB's own limit is not reached."""

import random
from collections.abc import Callable
from dataclasses import fields, replace

import pytest

from roundsman.aws.dynamodb.codec import Item, plain_task_item, task_item
from roundsman.aws.dynamodb.packed import item_bytes
from roundsman.aws.dynamodb.settled import MOST_ROWS
from roundsman.model.record_limits import RECORD_LIMIT
from roundsman.model.task import StepRecord
from roundsman.ports import Created, Saved
from tests.contract.samples import NOW, born, order_row
from tests.contract.worlds import World
from tests.support.item_size import item_size
from tests.support.largest_record import (
    Text,
    control_characters,
    full_step,
    ideographs,
    largest_task,
    letters,
)
from tests.support.steps import stored_step

KINDS = [control_characters, ideographs, letters]


@pytest.fixture
def dice() -> random.Random:
    return random.Random(7)  # noqa: S311 - the same at every run


@pytest.mark.parametrize("kind", KINDS)
def test_the_largest_record_is_far_below_the_limit_however_little_its_text_is_compressed(
    kind: Callable[[random.Random], Text], dice: random.Random
) -> None:
    task = largest_task(kind(dice))
    stored = task_item(task)
    rows: Item = {"Settled": {"L": [{"S": str(task.version)}] * (MOST_ROWS + 1)}}
    # What is left is room for new fields: docs/reference/records.md says why it is enough.
    assert item_size({**stored, **rows}) < RECORD_LIMIT * 7 // 8
    assert item_bytes(stored) <= item_size(plain_task_item(task))


@pytest.mark.parametrize(
    "kind", [KINDS[0], *(pytest.param(kind, marks=pytest.mark.exhaustive) for kind in KINDS[1:])]
)
def test_the_largest_record_is_stored_and_read_back(
    kind: Callable[[random.Random], Text], dice: random.Random, world: World
) -> None:
    task = largest_task(kind(dice))
    assert world.store.create(order_row(task.task_id), born(task.task_id)) == Created()
    assert world.store.save(task, seen=1) == Saved()
    found = world.store.load(task.task_id, NOW)
    assert found is not None
    assert replace(found, order_expires=True) == task


def test_the_largest_record_has_every_field_of_a_step(dice: random.Random) -> None:
    full, empty = full_step(letters(dice)), StepRecord()
    unset = set[str]()
    for one, other in (
        (stored_step(full), stored_step(empty)),
        (full, empty),
        (full.retry_window, empty.retry_window),
    ):
        names = (field.name for field in fields(one))
        unset |= {name for name in names if getattr(one, name) == getattr(other, name)}
    assert unset == {
        "operation",
        *("result", "error"),  # largest_task sets these
        # No step under way has these, and only such a step has the most others.
        *("wait_ended_at", "asleep_since", "awaits_since", "signal", "held_for"),
        "awaits_result",
        *(
            "not_before",
            "held_since",
            "heartbeat_by",
        ),  # no step that waits for a callback has these
    }
