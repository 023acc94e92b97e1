"""A hundred items: their record fits in DynamoDB's 400 KB, and a decision about them is quick."""

from dataclasses import replace
from hashlib import shake_256

import pytest

from roundsman.aws.dynamodb.codec import plain_task_item, read_task, task_item
from roundsman.definition.workflow import Undo
from roundsman.engine.history import ROWS_A_DECISION, fitting
from roundsman.model.events import Outcome
from roundsman.model.json import Json
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepError
from tests.support.fan_out_stories import FENCED, lines, pick
from tests.support.item_size import item_size
from tests.support.machine_world import World, begun

MOST = 100
ITEM_LIMIT = 400 * 1024


def one_kb(number: int) -> dict[str, Json]:
    """A result of 1,023 bytes of JSON, of which half stay when it is packed."""
    return {"picked": shake_256(str(number).encode()).hexdigest(504)}


def hundred(*, tolerate: float = 0, result_limit: int = 4_096) -> World:
    picked = replace(pick(tolerate=tolerate, compensation=FENCED), result_limit=result_limit)
    return begun(picked, on_failure=Undo(), order=lines(MOST))


def size(world: World) -> int:
    """The size of the record without compression, which depends on the text."""
    return item_size(plain_task_item(world.task))


def test_a_hundred_items_that_answer_with_a_kilobyte_each_fit_in_one_record() -> None:
    world = hundred()
    assert size(world) < 20_000
    for number in range(MOST):
        world.succeeds(f"pick[{number}]", one_kb(number))
    assert world.task_state() is TaskState.COMPLETED
    assert 50_000 < size(world) < 128_000
    assert read_task(task_item(world.task)) == world.task


@pytest.mark.exhaustive
def test_so_do_the_largest_results_with_the_longest_reasons_for_all_other_items() -> None:
    """200 KiB of results are the most; every item beside them fails in as many words as fit."""
    world = hundred(tolerate=0.99, result_limit=32 * 1024)
    for number in range(6):
        world.succeeds(f"pick[{number}]", "x" * 32_000)
    error = StepError("E" * 200, "m" * 2_000)
    for number in range(6, MOST):
        name = f"pick[{number}]"
        world.reply(name, Outcome.PERMANENT, error=error)
        world.reply(name, Outcome.TRANSIENT, error=error)
    assert size(world) < ITEM_LIMIT


@pytest.mark.exhaustive
def test_the_history_of_a_decision_about_all_items_fits_in_its_transaction() -> None:
    world = hundred()
    for number in range(MOST - 1):
        world.succeeds(f"pick[{number}]")
    decision = world.is_refused(f"pick[{MOST - 1}]")
    assert len(decision.history) == MOST + 1  # it failed, and a hundred undos begin
    assert len(fitting(decision.history)) == ROWS_A_DECISION


def test_every_item_overdue_at_once_is_one_decision() -> None:
    world = hundred(tolerate=0.5)
    world.until_overdue("pick[0]").inspect()
    states = [record.process_state for record in world.task.steps.values()]
    assert states.count(ProcessState.UNDOING) == MOST
    assert len(fitting(world.decisions[-1][2].history)) == ROWS_A_DECISION
