"""Whole orders on the template's stack with a fault at every single call to AWS of any function.

For each scenario one run without faults lists the calls: those of submission, scheduler, agents
(marks, circuits, rates, holds, replies) and supervisor. `make verify` lets each call meet one
fault, and the faults take turns; `make long` lets each call meet each fault. (In memory, each call
to a port meets each fault: tests/world.) A failure says how to repeat its run alone:

    CRASH_ONLY=17:dies-after pytest tests/crash -m long -k an-undo
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

import pytest

from roundsman.aws.dynamodb import settled, tasks
from roundsman.model.task import Task
from tests.crash.conftest import COUNTED, Open
from tests.crash.runs import FAULTS, Run, Stage, runs_in_turn, runs_of
from tests.crash.scenarios import SCENARIOS, Scenario

Record = Callable[[str, object], None]

DIVIDED = [name for name in SCENARIOS if name != "a permanent fault of the first step"]
"""In these, a step settles before the end, so a row is written."""

ENGINE = {"SubmissionFunction", "SchedulerFunction", "SupervisorFunction"}
DEATHS = ("dies-before", "dies-after")
FAILURES = ("broken", "in-conflict")
MENDED = ("throttled-once", "answer-lost")  # botocore tries again, and finds or makes it done
SHOWN = 20  # of the failures; more say no more


def failures_of(stage: Stage, scenario: Scenario, chosen: list[Run]) -> list[str]:
    """What came out otherwise than without faults, each with the run that shows it."""
    expected, failures = stage.play(scenario), list[str]()
    for run in chosen:
        try:
            outcome = stage.play(scenario, run.strike())
            assert outcome == expected
            check_attempts(scenario, run, outcome.failures, expected.failures)
        except AssertionError as error:
            failures.append(f"{run}\n    {error}")
    return failures


def check_attempts(
    scenario: Scenario, run: Run, found: Mapping[str, int], plain: Mapping[str, int]
) -> None:
    """One fault costs at most one attempt, and none where the engine has time for redelivery."""
    of_an_agent = run.call.function not in ENGINE
    for step, count in found.items():
        spare = 1 if of_an_agent or not scenario.patient else 0
        assert count <= plain.get(step, 0) + spare, f"{step} failed {count} times"


def chosen(runs: list[Run]) -> list[Run]:
    """All, or those that CRASH_ONLY names, such as `*:dies-before:SchedulerFunction`."""
    only = os.environ.get("CRASH_ONLY", "")
    return [run for run in runs if fnmatchcase(run.name, f"{only}*")]


def crash_everywhere(
    open_stage: Open,
    record_property: Record,
    name: str,
    faults: Sequence[str],
    turns: int | None = None,
    every: int = 1,
) -> None:
    """Carry the scenario's order once for each call and fault.

    With `turns`, each call meets one fault: the first call the fault with that number, and so on.
    `every` 7 leaves out all runs but each seventh.
    """
    scenario, began = SCENARIOS[name], time.process_time()
    with open_stage(scenario) as stage:
        plain = stage.play(scenario)
        assert (plain.state, plain.effects) == (scenario.end, scenario.effects)
        assert plain.statuses == scenario.statuses
        assert plain.alerts == frozenset(scenario.alerts)
        calls = list(stage.stack.calls)
        assert {call.function for call in calls} >= ENGINE
        runs = list(runs_of(calls, faults) if turns is None else runs_in_turn(calls, faults, turns))
        runs = chosen(runs[::every])
        assert runs or os.environ.get("CRASH_ONLY"), "nothing was tried"
        failures = failures_of(stage, scenario, runs)
    seconds = time.process_time() - began
    counts = f"{len(calls)} calls, {len(runs)} runs of {' and '.join(faults)}"
    record_property("runs", len(runs))
    record_property(COUNTED, f"{name}, {counts}, {seconds:.1f} s")
    assert not failures, f"{len(failures)} of {len(runs)} runs of {name!r} fail:\n" + "\n".join(
        failures[:SHOWN]
    )


@pytest.fixture
def divided(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each settled step is moved to a row of its own at once, as those of long tasks are."""
    for name in ("FEW_STEPS", "ROW_FROM", "ROW_UP_TO"):
        monkeypatch.setattr(settled, name, 0)
    rows = []

    def divide(task: Task) -> settled.Division:
        division = settled.divide(task)
        rows.append(division.added)
        return division

    monkeypatch.setattr(tasks, "divide", divide)
    yield
    assert any(rows), "no row was ever written"


def id_of(name: str) -> str:
    return name.replace(" ", "-")


@pytest.mark.verify
@pytest.mark.parametrize("name", SCENARIOS, ids=id_of)
def test_every_order_comes_to_its_end_whatever_call_to_aws_fails(
    open_stage: Open, record_property: Record, name: str
) -> None:
    faults = [*DEATHS, *FAILURES]
    crash_everywhere(open_stage, record_property, name, faults, turns=list(SCENARIOS).index(name))


@pytest.mark.verify
@pytest.mark.usefixtures("divided")
@pytest.mark.parametrize("name", DIVIDED, ids=id_of)
def test_every_divided_order_comes_to_its_end_whatever_call_to_aws_fails(
    open_stage: Open, record_property: Record, name: str
) -> None:
    faults = [*DEATHS, *FAILURES]
    turns = list(SCENARIOS).index(name) + 1
    crash_everywhere(open_stage, record_property, name, faults, turns=turns)


@pytest.mark.long
@pytest.mark.parametrize("name", SCENARIOS, ids=id_of)
@pytest.mark.parametrize("fault", [*DEATHS, *FAILURES])
def test_every_order_comes_to_its_end_whatever_call_meets_whatever_fault(
    open_stage: Open, record_property: Record, name: str, fault: str
) -> None:
    crash_everywhere(open_stage, record_property, name, [fault])


@pytest.mark.long
@pytest.mark.parametrize("name", SCENARIOS, ids=id_of)
@pytest.mark.parametrize("fault", MENDED)
def test_every_order_comes_to_its_end_whatever_call_is_made_twice(
    open_stage: Open, record_property: Record, name: str, fault: str
) -> None:
    crash_everywhere(open_stage, record_property, name, [fault])


def test_each_fault_is_met_by_every_scenario() -> None:
    assert {*DEATHS, *FAILURES, *MENDED} == set(FAULTS)


@pytest.mark.parametrize(
    "every",
    [
        29,
        pytest.param(7, marks=pytest.mark.exhaustive),
        pytest.param(1, marks=pytest.mark.verify),
    ],
)
def test_an_order_that_is_refused_comes_to_its_end_wherever_a_process_dies(
    open_stage: Open, record_property: Record, every: int
) -> None:
    """The shortest of the scenarios, and the two worst of the faults, which take turns."""
    name = "a permanent fault of the first step"
    crash_everywhere(open_stage, record_property, name, DEATHS, turns=0, every=every)


@pytest.mark.usefixtures("divided")
@pytest.mark.verify
@pytest.mark.parametrize("every", [7, 1])
def test_a_divided_order_is_undone_wherever_a_process_dies(
    open_stage: Open, record_property: Record, every: int
) -> None:
    name = "an undo"
    crash_everywhere(open_stage, record_property, name, DEATHS, turns=0, every=every)
