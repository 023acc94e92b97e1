"""The configurations that are explored: a plan each, and what may go wrong with it, how often.

Times are 30 s each, the engine's own START_WITHIN, and each operation has two attempts: more of
either makes more of the same states. Every configuration has all orders of all messages and of all
that becomes due.
"""

from dataclasses import replace
from datetime import timedelta

from roundsman.events import Asked, Cancel, OperatorEvent, Resubmit, RunNow, UndoAsked
from roundsman.plan import Plan, plan_of
from roundsman.workflow import (
    Archive,
    Compensation,
    Retry,
    Step,
    Strategy,
    Undo,
    Wait,
    Workflow,
)
from tests.exploration.model import Configuration

HALF_A_MINUTE = timedelta(seconds=30)
TWICE = Retry(max_attempts=2, first_delay=2 * HALF_A_MINUTE)  # half of it, with the model's jitter
FEWER = ("done", "answer lost", "refused")
UNDO_FEWER = ("done", "answer lost")


def step(name: str, *after: Step, fenced: bool = True, on_failure: Strategy | None = None) -> Step:
    return Step(
        name=name,
        agent="worker",
        after=after,
        complete_within=HALF_A_MINUTE,
        retry=TWICE,
        compensation=Compensation(retry=TWICE, fences_late_performs=fenced),
        on_failure=on_failure,
    )


def plan(*steps: Step, on_failure: Strategy | None = None) -> Plan:
    """A plan whose own complete-by and retention are never reached."""
    return plan_of(
        Workflow(
            name="story",
            steps=steps,
            complete_within=timedelta(days=1000),
            on_failure=on_failure or Undo(),
            retain_for=timedelta(days=100),
        )
    )


def asked(*names: str) -> dict[str, OperatorEvent]:
    """What a person may ask, by the name of the command."""
    every: dict[str, OperatorEvent] = {
        "resubmit": Resubmit(Asked("resubmit", "ann")),
        "resubmit --again": Resubmit(Asked("again", "ann"), again=True),
        "run": RunNow(Asked("run", "ann")),
        "undo": UndoAsked(Asked("undo", "ann")),
        "cancel": Cancel(Asked("cancel", "ann")),
        "cancel --no-undo": Cancel(Asked("stop", "ann"), undo=False),
    }
    return {name: every[name] for name in names}


one = step("a")
bare = replace(one, compensation=None)
unfenced = step("a", fenced=False)
pair = (step("a"), step("b"))
joined = step("c", *pair)
row = (one, two := step("b", one), step("c", two))
unfenced_row = (unfenced, step("b", unfenced, fenced=False))
kept = plan(one, on_failure=Archive())
waits = step("a", on_failure=Wait(4 * HALF_A_MINUTE, times=1, then=Undo()))

SMALL: dict[str, Configuration] = {
    "one step, archived": Configuration(plan=kept),
    "one step, undone": Configuration(plan=plan(one)),
    "one step that waits, or is told to run": Configuration(
        plan=plan(waits), commands=asked("run")
    ),
    "one step, a crash": Configuration(plan=plan(one), crashes=1),
    "one step, a repeated message": Configuration(plan=plan(one), repeats=1),
    "one step, two supervisors": Configuration(plan=plan(one), supervisors=2),
    "one step, two schedulers": Configuration(plan=plan(one), schedulers=2),
    "one step, resubmitted": Configuration(plan=kept, commands=asked("resubmit")),
    "one step, cancelled": Configuration(plan=plan(one), commands=asked("cancel")),
    "one unfenced step, a repeated message": Configuration(plan=plan(unfenced), repeats=1),
    "two steps in a row, undone": Configuration(plan=plan(*row[:2])),
    "two steps in a row, the first for good": Configuration(plan=plan(bare, step("b", bare))),
}
VERIFY: dict[str, Configuration] = {
    "two parallel steps, undone": Configuration(plan=plan(*pair)),
    "two parallel steps and one after both, undone": Configuration(plan=plan(*pair, joined)),
    "three steps in a row, none unavailable": Configuration(
        plan=plan(*row), endings=FEWER, undo_endings=UNDO_FEWER
    ),
}
EVERY = SMALL | VERIFY
