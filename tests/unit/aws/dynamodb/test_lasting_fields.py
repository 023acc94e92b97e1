"""The lasting fields of a step are declared once: what is declared is stored, kept and reset."""

from dataclasses import dataclass, fields, replace
from typing import Annotated

import pytest

from roundsman.aws.dynamodb import codec, stored_step
from roundsman.engine import decision_builder
from roundsman.engine.decision_builder import DecisionBuilder
from roundsman.engine.step_values import StepValues
from roundsman.engine.transitions import StepEvent
from roundsman.model.field_table import Stored
from roundsman.model.polling import Polling
from roundsman.model.retry_window import RetryWindow
from roundsman.model.situations import Ready
from roundsman.model.task import (
    SCHEMA,
    AfterUndo,
    Effect,
    LeftOut,
    StepError,
    StepRecord,
    Task,
)
from tests.contract.samples import NOW, born

APART = ("operation", "situation", "retry_window", "polling")
"""The fields of a record that have tables of their own."""
SAMPLES = {
    "agent": "other",
    "tried": ("first",),
    "effect": Effect.STANDS,
    "outcome_unknown": True,
    "result": {"id": "r-1"},
    "left_out": LeftOut("too large", 9),
    "signal": "pay-1",
    "unanswered": True,
    "error": StepError("Busy", "503"),
    "after_undo": AfterUndo.SKIPPED,
    "retry_window": RetryWindow(until=NOW, unexpected_since=NOW - 1, waits=2),
    "polling": Polling(count=3, since=NOW - 1, until=NOW),
}
"""A value of each lasting field; of any other one it is a number."""
LASTING = [one.name for one in fields(StepRecord) if one.name not in ("operation", "situation")]


def one_step(step: StepRecord) -> Task:
    return replace(born(), steps={"a": step})


def sample(name: str) -> StepRecord:
    """A step that waits to be claimed, with a value of this field."""
    values = StepValues({name: SAMPLES.get(name, 7)})
    return values.of(StepRecord(situation=Ready(claim_by=NOW)))


@pytest.mark.parametrize("name", LASTING)
def test_each_lasting_field_is_stored_and_read(name: str) -> None:
    task = one_step(sample(name))
    assert codec.read_task(codec.task_item(task)) == task


@pytest.mark.parametrize("name", LASTING)
def test_each_lasting_field_outlives_an_event_and_is_reset_when_the_step_begins_anew(
    name: str,
) -> None:
    decision = DecisionBuilder(one_step(sample(name)), NOW)
    before = getattr(decision.step("a"), name)
    decision.move("a", StepEvent.UNCLAIMED, Ready(claim_by=NOW + 1))
    # Such a wait is over, and an answer may come again, once the step is to be claimed.
    reset = {"wait_ended_at": None, "unanswered": False}
    assert getattr(decision.step("a"), name) == reset.get(name, before)
    decision.begin_anew("a")
    again = decision.step("a")
    assert again == StepRecord(round=again.round), "used keys stay used"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewerRecord(StepRecord):
    """A record with one field more."""

    last_seen: Annotated[int | None, Stored(since=SCHEMA + 1)] = None


def test_a_field_that_is_declared_is_in_the_record_its_row_and_its_decisions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    newer = codec.table_of(NewerRecord, NewerRecord, without=APART)
    monkeypatch.setattr(codec, "LASTING", newer)
    monkeypatch.setattr(codec, "SCHEMA", SCHEMA + 1)
    for module in (stored_step, decision_builder):
        monkeypatch.setattr(module, "StepRecord", NewerRecord)

    def stored(task: Task) -> Task:
        item = codec.task_item(task)
        assert item["Schema"] == {"N": str(SCHEMA + 1)}
        assert item["Steps"]["M"]["a"]["M"]["LastSeen"] == {"N": str(NOW)}
        return codec.read_task(item)

    task = one_step(NewerRecord(situation=Ready(claim_by=NOW), started_at=NOW))
    decision = DecisionBuilder(task, NOW)
    decision.change("a", StepValues({"last_seen": NOW}))
    decision.requeue("a", StepEvent.UNCLAIMED)
    changed = replace(task, steps=decision.steps)
    assert stored(changed) == changed
    decision.begin_anew("a")
    assert decision.step("a") == NewerRecord(round=2)
