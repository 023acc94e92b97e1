"""The invariants of signals: what they find if a signal is lost, counts twice or counts wrongly."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Signal
from roundsman.engine.new_task import ProcessingOptions, new_task
from roundsman.model.json import Json
from roundsman.model.situations import AwaitsSignal, End, Ended
from roundsman.model.states import TaskState
from roundsman.model.task import StepRecord, Task, UnreadSignal
from roundsman_testing.invariants.rules import of_change
from tests.support.machine_world import T0, plan

PLAN = plan(
    Signal("paid", name="deposit", within=timedelta(minutes=10)),
    Signal("paid", name="rest", within=timedelta(minutes=10)),
)
WAITS = StepRecord(situation=AwaitsSignal(until=T0 + 600_000, since=T0))
ONE, TWO = UnreadSignal("pay-1", "paid", T0, 1), UnreadSignal("pay-2", "paid", T0, 2)


def task(version: int, *signals: UnreadSignal, **steps: StepRecord) -> Task:
    made = new_task(PLAN, "ord-1", ProcessingOptions(), T0, shards=16)
    return replace(made, state=TaskState.PENDING, version=version, signals=signals, steps=steps)


def done(signal: str | None, result: Json) -> StepRecord:
    ended = Ended(how=End.SUCCEEDED)
    return StepRecord(situation=ended, finished_at=T0, signal=signal, result=result)


BEFORE = task(2, ONE, TWO, deposit=WAITS, rest=WAITS)


def found(after: Task, before: Task = BEFORE) -> list[str]:
    words = ("signal", "lost")
    broken = (one.what for one in of_change(PLAN, before, after, T0))
    return [what for what in broken if any(word in what for word in words)]


@pytest.mark.parametrize(
    ("after", "what"),
    [
        (task(3, TWO, deposit=done("pay-1", 1), rest=WAITS), []),
        (task(3, TWO, deposit=WAITS, rest=WAITS), ["the signals ['pay-1'] are lost"]),
        (
            task(3, ONE, TWO, deposit=done("pay-1", 1), rest=WAITS),
            ["a signal has ended two steps, or is kept"],
        ),
        (
            task(3, TWO, deposit=done("pay-1", 7), rest=WAITS),
            ["deposit is Processed by a signal paid, or has other data"],
        ),
        (
            task(3, ONE, deposit=done("pay-2", 2), rest=WAITS),
            ["deposit is Processed by a signal before which another came"],
        ),
        (
            task(3, ONE, TWO, deposit=done(None, None), rest=WAITS),
            ["deposit is Processed, and no signal has come"],
        ),
        (
            task(3, ONE, TWO, deposit=done("pay-9", None), rest=WAITS),
            ["deposit is Processed, and no signal has come"],
        ),
    ],
)
def test_a_signal_that_counts_wrongly_is_found(after: Task, what: Sequence[str]) -> None:
    assert found(after) == what


def test_a_signal_of_another_name_ends_no_step() -> None:
    other = replace(ONE, name="shipped")
    before = task(2, other, deposit=WAITS, rest=WAITS)
    after = task(3, deposit=done("pay-1", 1), rest=WAITS)
    assert found(after, before) == ["deposit is Processed by a signal shipped, or has other data"]


@pytest.mark.parametrize(("signal", "ids"), [(None, ("c-1",)), ("pay-9", ("pay-9",))])
def test_a_person_or_a_signal_that_has_just_come_ends_a_step(
    signal: str | None, ids: tuple[str, ...]
) -> None:
    after = task(3, ONE, TWO, deposit=done(signal, 5), rest=WAITS)
    assert found(replace(after, command_ids=ids)) == []
