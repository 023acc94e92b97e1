"""Every state of small configurations: no invariant is broken, and their number is as recorded.

`states.json` has the numbers. A change of the engine that changes them is seen there; after it was
looked at, EXPLORATION_RECORD=1 writes the new numbers of the tests that run.
"""

import json
import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from roundsman.engine.agent_holds import CHECK_SPREAD, CHECKED_EVERY
from roundsman.model.instants import MINUTE, SECOND
from tests.exploration.configurations import EVERY, SMALL, VERIFY
from tests.exploration.explorer import explore
from tests.exploration.model import TaskModel

Record = Callable[[str, object], None]

log = logging.getLogger(__name__)
RECORDED = Path(__file__).with_name("states.json")
RECORDS_ANEW = "EXPLORATION_RECORD"
AT_MOST = 1_000_000
FEW = 3_000
"""Transitions: of SMALL, `make check` explores the configurations with at most so many, and
`make verify` the others."""
LONGEST = 10 * MINUTE
"""ms from any state to the task's end, once faults stop: what a person would not call stuck."""


def check(name: str, record: Record) -> None:
    model = TaskModel(EVERY[name])
    found = explore(model, at_most=AT_MOST)
    log.info(
        "%s: %d states, %d transitions, %.1f s; the end at most %d s after faults stop",
        name,
        found.states,
        found.transitions,
        found.seconds,
        model.course.longest // SECOND,
    )
    record("states", found.states)
    record("transitions", found.transitions)
    assert found.violation is None, f"{name}: {found.violation}"
    # The end of a hold wakes what waits for it; if that is lost, a check of its own finds it.
    alone = CHECKED_EVERY + CHECK_SPREAD if EVERY[name].held else 0
    assert model.course.longest <= LONGEST + EVERY[name].waits + alone
    numbers = {"states": found.states, "transitions": found.transitions}
    recorded = json.loads(RECORDED.read_text())
    if os.environ.get(RECORDS_ANEW):
        recorded[name] = numbers
        RECORDED.write_text(json.dumps(recorded, indent=2, sort_keys=True) + "\n")
    assert recorded.get(name) == numbers, f"the state space has changed; see {__doc__}"


def sized(name: str) -> ParameterSet:
    """The name, marked where its last exploration had more than a few transitions."""
    recorded = json.loads(RECORDED.read_text()).get(name, {"transitions": 0})
    return pytest.param(name, marks=pytest.mark.verify if recorded["transitions"] > FEW else ())


@pytest.mark.parametrize("name", [sized(name) for name in SMALL])
def test_no_state_breaks_an_invariant(name: str, record_property: Record) -> None:
    check(name, record_property)


@pytest.mark.verify
@pytest.mark.parametrize("name", VERIFY)
def test_no_state_of_a_larger_configuration_breaks_an_invariant(
    name: str, record_property: Record
) -> None:
    check(name, record_property)
