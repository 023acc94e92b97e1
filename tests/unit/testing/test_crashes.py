"""The function that crashes and fails every call of a story, and what it says where that hurts."""

import pytest

from roundsman.scheduler import owed
from roundsman_testing import (
    Fault,
    Faults,
    ProcessingOptions,
    StoryBroken,
    TaskState,
    World,
    crash_everywhere,
)
from roundsman_testing.faults import CONDITIONAL_WRITES, MESSAGES, READS
from roundsman_testing.world.crashes import applies
from tests.unit.testing.samples import SHOP


def make(faults: Faults) -> World:
    return World(SHOP, faults=faults)


def well(world: World) -> None:
    order_id = world.submit(options=ProcessingOptions(reply_to="https://queue.example/replies"))
    world.run()
    assert world.task(order_id).state is TaskState.COMPLETED
    assert world.standing(order_id) == ["reserve", "charge", "mail"]


@pytest.mark.verify
def test_a_story_runs_once_for_each_call_and_each_fault_that_passes() -> None:
    crashes = crash_everywhere(well, make)
    passing = set(Fault) - {Fault.REFUSED}
    assert crashes.calls.count("save") == 4
    assert crashes.runs == sum(applies(fault, call) for call in crashes.calls for fault in passing)
    assert crashes.runs > 4 * len(crashes.calls) - len(READS)


@pytest.mark.verify
def test_faults_that_were_asked_for_are_the_only_ones() -> None:
    crashes = crash_everywhere(well, make, faults=[Fault.CRASH_AFTER])
    assert crashes.runs == len(crashes.calls)
    assert crash_everywhere(well, make, faults=[Fault.CRASH_AFTER], then=(1, 4)).runs == (
        2 * len(crashes.calls)
    )


def test_a_read_has_no_effect_that_could_be_unknown_and_only_messages_are_lost() -> None:
    assert not applies(Fault.UNKNOWN, "load")
    assert applies(Fault.UNKNOWN, "save")
    assert [call for call in (*READS, *MESSAGES) if applies(Fault.SWALLOWED, call)] == [*MESSAGES]
    assert all(applies(Fault.ANSWER_LOST, call) for call in CONDITIONAL_WRITES)


@pytest.mark.verify
def test_what_breaks_is_named_by_its_call_its_fault_and_all_that_happened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What another handler decided is never sent by the next one: a status can be lost."""
    monkeypatch.setattr(owed, "START_WITHIN", 10**12)
    with pytest.raises(StoryBroken) as caught:
        crash_everywhere(well, make)
    message = str(caught.value)
    hit = caught.value.world.faults.happened[0]
    assert f"At the call {hit.name!r}, {hit.fault}" in message
    assert f"Faults().at({hit.number}, Fault.{hit.fault.name})" in message
    assert f"call {hit.number}, {hit.name}: {hit.fault}" in str(caught.value.world.trace), "when"


@pytest.mark.verify
def test_a_story_that_says_more_than_the_kit_fails_with_its_own_words() -> None:
    def strict(world: World) -> None:
        well(world)
        assert world.task("ord-1").step("charge").failure_count == 0, "an attempt was spent"

    with pytest.raises(StoryBroken, match=r"(?s)an attempt was spent.*the whole trace: ") as caught:
        crash_everywhere(strict, make)
    assert isinstance(caught.value.__cause__, AssertionError)


def test_a_story_that_fails_without_faults_fails_as_it_is() -> None:
    def wrong(world: World) -> None:
        assert world.standing("ord-1"), "nothing was sent"

    with pytest.raises(AssertionError, match="nothing was sent") as caught:
        crash_everywhere(wrong, make)
    assert not isinstance(caught.value, StoryBroken)


def test_what_a_story_leaves_undone_is_run_to_its_end() -> None:
    crash_everywhere(lambda world: world.submit(), make, faults=[Fault.NOT_DONE])


def test_a_story_must_be_the_same_each_time() -> None:
    runs: list[str] = []

    def other(world: World) -> None:
        runs.append("once")
        for _ in runs[1:]:
            return
        world.submit()

    with pytest.raises(StoryBroken, match="the story is not the same twice"):
        crash_everywhere(other, make)


def test_a_dead_letter_is_an_end_that_is_none() -> None:
    def order(world: World) -> None:
        world.faults.on("put_plan", Fault.CRASH_BEFORE)
        world.submit()

    with pytest.raises(AssertionError, match="dead letters: message-1 of orders"):
        crash_everywhere(order, make)
