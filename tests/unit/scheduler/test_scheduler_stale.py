"""The scheduler's first read need not be the latest: what it may then do, and what it may not."""

import pytest

from roundsman.engine.new_task import ProcessingOptions
from roundsman.model.events import Outcome
from roundsman_testing import Fault, Faults
from tests.support.crash_stories import STORIES
from tests.support.crash_story import run_story
from tests.support.shell_world import Shells
from tests.support.supervision_world import LINE
from tests.unit.scheduler.test_crash_everywhere import check, task_without, world_of


def line() -> Shells:
    shells = Shells(LINE, options=ProcessingOptions())  # no statuses: each write is a decision
    shells.submit()
    return shells


def stale() -> Faults:
    return Faults().on("load_eventually", Fault.STALE)


def test_a_task_that_was_just_made_is_found() -> None:
    shells, faults = line(), stale()
    shells.start(faults=faults)
    assert faults.calls[:2] == ["load_eventually", "load"]
    assert len(shells.requests()) == 1


def test_a_reply_that_a_stale_record_does_not_wait_for_is_taken() -> None:
    """Before its last write the second step was Pending: there, nobody's attempt has failed."""
    shells, faults = line(), stale()
    shells.start()
    shells.reply("first")
    shells.reply("second", Outcome.TRANSIENT, faults=faults)
    assert faults.calls[:4] == ["load_eventually", "plan", "load", "plan"]
    assert shells.task().step("second").failure_count == 1


def test_a_write_on_a_stale_record_loses_and_is_decided_anew() -> None:
    shells, faults = line(), stale()
    shells.start("m-1")
    # For the record before the first claim there is something to start.
    shells.start("m-2", faults)
    assert faults.calls.count("save") == 1, "refused, since the version that was seen is over"
    assert len(shells.requests()) == 1, "the step is claimed once"


@pytest.mark.parametrize("name", STORIES)
def test_every_order_comes_to_its_end_where_each_read_that_may_be_stale_is(name: str) -> None:
    story, faults = STORIES[name], stale()
    world = world_of(story, faults)
    run_story(story, world)
    assert faults.count.get(Fault.STALE, 0) == faults.calls.count("load_eventually")
    check(story, world, task_without(name))
