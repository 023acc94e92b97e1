"""Tasks with hundreds of added steps: the limits of their number, and their undo in parts."""

from collections.abc import Iterable
from dataclasses import replace

import pytest

from roundsman.definition.workflow import MOST_ADDED, Archive, Retry, Undo
from roundsman.engine.added_steps import WRONG_THEN
from roundsman.engine.history import few_words
from roundsman.errors import Refused
from roundsman.model.record_limits import (
    ADDED_LIMIT,
    ALL_ADDED_LIMIT,
    MOST_ADDED_UNDOS,
    MOST_OPEN_ADDED,
    MOST_PART,
    MOST_RECORDS,
    MOST_USED_ROUNDS,
)
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import AddedStep, Effect, StepToAdd, idempotency_key
from roundsman_console.facts.audit.stored_order import StandingEffect
from roundsman_testing.invariants.rules import of_effects
from tests.support.fan_out_stories import FENCED, lines, pick
from tests.support.machine_world import World, plan, requests_in, step
from tests.support.steps import step_record

P = ProcessState
ONCE = Retry(max_attempts=1)
LEG = step("leg", compensation=FENCED, retry=ONCE)
NOTE = step("note", retry=ONCE)
FIND = step("find", compensation=FENCED)
ALONE = step("alone", compensation=FENCED)


def trip(most_added: int = MOST_ADDED) -> World:
    """A started order of `find` and, beside it, `alone`, which may add legs and notes."""
    made = plan(FIND, ALONE, may_add=(LEG, NOTE), most_added=most_added, on_failure=Undo())
    world = World(made, order=lines(2))
    world.start()
    return world


def legs(count: int, first: int = 0) -> tuple[StepToAdd, ...]:
    return tuple(StepToAdd(f"leg[n{number}]") for number in range(first, first + count))


def with_legs(world: World, count: int, state: ProcessState = P.PROCESSED) -> list[str]:
    """Give the task so many more legs in this state, added by `find`. Returns their names."""
    task, place = world.task, len(world.task.added)
    names = [f"leg[old{place + number}]" for number in range(count)]
    added = {n: AddedStep("find", place=place + at) for at, n in enumerate(names)}
    one = step_record(process_state=state, started_at=world.now, finished_at=world.now)
    steps = {**task.steps, **dict.fromkeys(names, one)}
    world.task = replace(task, added={**task.added, **added}, steps=steps)
    return names


def error_of(world: World, name: str) -> str:
    """Why the steps of the reply could not be added: nothing of it was taken."""
    found = world.record(name).left_out
    assert found is not None
    kind, _, message = found.why.partition(": ")
    assert (kind, found.lacks_steps) == (WRONG_THEN, True)
    return message


def in_state(world: World, state: ProcessState) -> list[str]:
    """The steps of the task in this state, as the plan has them in order."""
    steps = world.plan.for_task(world.task).steps
    return [name for name in steps if world.state(name) is state]


def succeed(world: World, names: Iterable[str]) -> None:
    for name in [*names]:
        world.succeeds(name)


def refuse(world: World, names: Iterable[str]) -> None:
    for name in [*names]:
        world.is_refused(name)


# --- how many are open ---------------------------------------------------------------------------


@pytest.mark.parametrize("state", [P.PROCESSED, P.SKIPPED, P.UNDONE])
@pytest.mark.parametrize("more", [0, 1])
def test_added_steps_that_are_settled_do_not_count_as_open(state: ProcessState, more: int) -> None:
    world = trip()
    with_legs(world, 300, state)
    world.adds("find", *legs(60))
    world.adds("alone", *legs(MOST_OPEN_ADDED - 60 + more, 60))
    assert len(world.task.added) == 300 + (60 if more else MOST_OPEN_ADDED)
    if more:
        assert error_of(world, "alone") == (
            "alone adds 41 steps, for 101 that are not done; 100 may be open at a time"
        )


@pytest.mark.parametrize("state", [P.PENDING, P.ERROR, P.UNDOING, P.UNDO_ERROR])
def test_added_steps_in_any_other_state_are_open(state: ProcessState) -> None:
    world = trip()
    with_legs(world, 200)
    with_legs(world, 1, state)
    world.adds("find", *legs(MOST_OPEN_ADDED))
    assert error_of(world, "find") == (
        "find adds 100 steps, for 101 that are not done; 100 may be open at a time"
    )


def test_an_adder_is_done_with_its_reply_so_each_open_step_may_add_the_next_one() -> None:
    world = trip()
    world.adds("find", *legs(MOST_OPEN_ADDED))
    world.adds("leg[n0]", StepToAdd("leg[next]"))
    assert "leg[next]" in world.task.added
    world.adds("leg[n1]", StepToAdd("leg[a]"), StepToAdd("leg[b]"))
    assert error_of(world, "leg[n1]") == (
        "leg[n1] adds 2 steps, for 101 that are not done; 100 may be open at a time"
    )


@pytest.mark.parametrize("more", [0, 1])
def test_all_added_steps_count_towards_the_number_that_may_be_added(more: int) -> None:
    world = trip()
    with_legs(world, MOST_ADDED - 2)
    world.adds("find", *legs(2 + more))
    assert len(world.task.added) == (MOST_ADDED - 2 if more else MOST_ADDED)
    if more:
        assert error_of(world, "find") == "find adds 3 steps, 1001 in all; 1000 may be added"


@pytest.mark.parametrize("more", [0, 1])
def test_records_of_added_steps_that_are_settled_are_beside_the_record(more: int) -> None:
    """The record has those of `find`, `alone`, former items, and the legs that are not settled."""
    world = trip()
    with_legs(world, 400)
    former = MOST_RECORDS - 4 + more
    gone = {f"gone[{n}]": step_record(process_state=P.SKIPPED) for n in range(former)}
    world.task = replace(world.task, steps={**world.task.steps, **gone})
    world.adds("find", *legs(2))
    assert len(world.task.added) == (400 if more else 402)
    if more:
        assert error_of(world, "find") == "find adds 2 steps, for 251 in all; 250 fit in one task"


@pytest.mark.parametrize("more", [0, 1])
def test_the_record_of_an_added_step_is_beside_it_once_its_reply_adds_others(more: int) -> None:
    """The record has those of `find`, `alone`, former items, another leg, and what is added."""
    world = trip()
    world.adds("find", *legs(2))
    former = MOST_RECORDS - 4 + more
    gone = {f"gone[{n}]": step_record(process_state=P.SKIPPED) for n in range(former)}
    world.task = replace(world.task, steps={**world.task.steps, **gone})
    world.adds("leg[n0]", StepToAdd("leg[next]"))
    assert ("leg[next]" in world.task.added) is not bool(more)


@pytest.mark.parametrize("more", [0, 1])
def test_items_of_a_fan_out_find_room_beside_added_steps_that_are_settled(more: int) -> None:
    made = plan(FIND, ALONE, pick(ALONE), may_add=(LEG,), on_failure=Undo())
    world = World(made, order=lines(20))
    world.start()
    with_legs(world, 400)
    gone = {f"gone[{n}]": step_record(process_state=P.SKIPPED) for n in range(228 + more)}
    world.task = replace(world.task, steps={**world.task.steps, **gone})
    world.succeeds("alone")
    assert world.task.fan_outs == ({} if more else {"pick": 20})


def test_a_task_moves_with_hundreds_of_added_steps_that_are_settled() -> None:
    world = trip()
    with_legs(world, 400)
    world.move(plan(FIND, ALONE, step("more", ALONE), may_add=(LEG, NOTE), on_failure=Undo()))
    assert len(world.task.added) == 400


# --- how long their names are --------------------------------------------------------------------


def named(name: str, label: str, size: int) -> StepToAdd:
    """A step that makes so many bytes of names: its own, its adder's, and what it comes after."""
    return StepToAdd(name, ("alone", f"leg[{label * (size - len(name) - len('findaloneleg[]'))}]"))


def with_a_long_name(world: World, label: str, size: int, state: ProcessState) -> None:
    """Give the task two legs whose names make so many bytes, the second after the first."""
    many = (size - 2 * len("find")) // 3
    first, rest = f"leg[{label * (many - 5)}]", size - 2 * len("find") - 2 * many
    second = f"leg[{'x' + label * (rest - 6)}]"
    task = world.task
    added = {first: AddedStep("find"), second: AddedStep("find", (first,))}
    one = step_record(process_state=state, started_at=world.now, finished_at=world.now)
    steps = {**task.steps, first: one, second: one}
    world.task = replace(task, added={**task.added, **added}, steps=steps)
    sizes = (len(n) + len(a.adder) + sum(map(len, a.after)) for n, a in added.items())
    assert sum(sizes) == size


NEW = len("leg[n0]find")
"""The size of the names of one new step."""


@pytest.mark.parametrize("more", [0, 1])
def test_the_names_of_added_steps_that_are_not_settled_are_limited(more: int) -> None:
    world = trip()
    with_a_long_name(world, "s", 2 * ADDED_LIMIT, P.PROCESSED)
    with_a_long_name(world, "o", ADDED_LIMIT - NEW + more, P.PENDING)
    world.adds("find", *legs(1))
    assert len(world.task.added) == (4 if more else 5)
    if more:
        assert f"make {ADDED_LIMIT + 1} bytes; {ADDED_LIMIT} fit" in error_of(world, "find")


@pytest.mark.parametrize("more", [0, 1])
def test_the_names_of_all_added_steps_are_limited(more: int) -> None:
    world = trip()
    with_a_long_name(world, "s", ALL_ADDED_LIMIT - 1_000 - NEW + more, P.PROCESSED)
    with_a_long_name(world, "o", 1_000, P.PENDING)
    world.adds("find", *legs(1))
    assert len(world.task.added) == (4 if more else 5)
    if more:
        assert f"make {ALL_ADDED_LIMIT + 1} bytes; {ALL_ADDED_LIMIT} fit" in error_of(world, "find")


# --- undo in parts -------------------------------------------------------------------------------


def undoing(count: int, *, failed: int = 0) -> tuple[World, list[str], list[str]]:
    """A task that is being undone since `alone` was refused.

    Returns it with the names of the legs that were settled, and of those that had failed.
    """
    world = trip()
    world.succeeds("find")
    settled, others = with_legs(world, count), with_legs(world, failed, P.ERROR)
    world.is_refused("alone", effect=Effect.NONE)
    succeed(world, ["alone"])
    assert world.state("alone") is P.UNDONE
    return world, settled, others


def later_words(names: list[str]) -> str:
    return (
        f"{few_words(names)}: to be undone after the undos of other added steps, of which "
        f"{MOST_ADDED_UNDOS} are in progress or have failed"
    )


def test_so_many_undos_of_settled_added_steps_begin_and_then_one_for_each_that_is_made() -> None:
    world, settled, _ = undoing(MOST_ADDED_UNDOS + 12)
    first, rest = settled[:MOST_ADDED_UNDOS], settled[MOST_ADDED_UNDOS:]
    assert in_state(world, P.UNDOING) == first
    decision = world.succeeds(settled[7])
    assert requests_in(decision) == [rest[0]]
    assert later_words(rest[1:]) in decision.reason
    assert in_state(world, P.PROCESSED) == ["find", *rest[1:]]
    while world.task_state() is TaskState.UNDOING:
        assert len(in_state(world, P.UNDOING)) <= MOST_ADDED_UNDOS
        succeed(world, in_state(world, P.UNDOING)[:1])
    assert world.task_state() is TaskState.UNDONE
    assert in_state(world, P.UNDONE) == [*world.plan.for_task(world.task).steps]


def test_if_all_undos_find_room_the_reason_does_not_name_any() -> None:
    world, settled, _ = undoing(MOST_ADDED_UNDOS)
    assert in_state(world, P.UNDOING) == settled
    assert not any("to be undone after" in decision.reason for _, _, decision in world.decisions)


def test_undos_of_added_steps_that_were_not_settled_begin_without_regard_to_the_room() -> None:
    world, settled, failed = undoing(MOST_ADDED_UNDOS + 1, failed=MOST_ADDED_UNDOS + 5)
    assert in_state(world, P.UNDOING) == [*settled[:MOST_ADDED_UNDOS], *failed]
    assert in_state(world, P.PROCESSED) == ["find", settled[-1]]
    succeed(world, [*settled[:5], *failed[:50]])
    assert world.state(settled[-1]) is P.PROCESSED, "50 are still in progress"
    assert requests_in(world.succeeds(failed[50])) == [settled[-1]]


def test_undos_that_have_failed_take_room_and_the_task_ends_when_none_is_left() -> None:
    world, settled, _ = undoing(MOST_ADDED_UNDOS + 3)
    refuse(world, settled[: MOST_ADDED_UNDOS - 1])
    assert world.task_state() is TaskState.UNDOING, "one undo is in progress"
    world.is_refused(settled[MOST_ADDED_UNDOS - 1])
    assert world.task_state() is TaskState.ARCHIVED
    assert in_state(world, P.PROCESSED) == ["find", *settled[MOST_ADDED_UNDOS:]]


def test_the_task_does_not_end_while_the_undos_that_fill_the_room_wait_for_their_agent() -> None:
    world = trip()
    world.succeeds("find")
    settled = with_legs(world, MOST_ADDED_UNDOS + 1)
    world.hold("worker", 3_600).is_refused("alone", effect=Effect.NONE)
    assert in_state(world, P.UNDOING) == [*settled[:-1], "alone"]
    assert not any(world.record(name).under_way for name in settled)
    assert world.task_state() is TaskState.UNDOING


def test_the_task_does_not_end_while_an_undo_that_needs_no_room_is_in_progress() -> None:
    world, settled, failed = undoing(MOST_ADDED_UNDOS + 3, failed=1)
    refuse(world, settled[:MOST_ADDED_UNDOS])
    assert world.task_state() is TaskState.UNDOING
    succeed(world, failed)
    assert world.task_state() is TaskState.ARCHIVED


def test_a_step_of_the_definition_is_undone_before_the_task_ends_though_there_is_no_room() -> None:
    world, settled, _ = undoing(MOST_ADDED_UNDOS)
    refuse(world, settled)
    assert (world.task_state(), world.state("find")) == (TaskState.UNDOING, P.UNDOING)
    world.succeeds("find")
    assert world.task_state() is TaskState.ARCHIVED


def archived() -> tuple[World, list[str]]:
    """A task that is archived with 50 undos that have failed, three legs left to undo, and find."""
    world, settled, _ = undoing(MOST_ADDED_UNDOS + 3)
    refuse(world, settled[:MOST_ADDED_UNDOS])
    assert world.task_state() is TaskState.ARCHIVED
    return world, settled


def test_a_person_resubmits_the_failed_undos_and_the_others_go_on_to_the_end() -> None:
    world, settled = archived()
    world.resubmit()
    world.start()
    assert in_state(world, P.UNDOING) == settled[:MOST_ADDED_UNDOS]
    while undos := in_state(world, P.UNDOING):
        succeed(world, undos)
    assert world.task_state() is TaskState.UNDONE


def test_a_person_resolves_one_failed_undo_and_the_others_follow_one_by_one() -> None:
    world, settled = archived()
    world.resolve(settled[3])
    assert world.task_state() is TaskState.UNDOING
    world.start()
    for name in (*settled[MOST_ADDED_UNDOS:], "find"):
        assert in_state(world, P.UNDOING) == [name]
        world.succeeds(name)
    assert world.task_state() is TaskState.ARCHIVED, "49 undos have failed"
    for name in in_state(world, P.UNDO_ERROR):
        world.resolve(name)
    assert world.task_state() is TaskState.UNDONE


def test_a_person_resubmits_one_failed_undo_and_the_others_follow_once_it_is_made() -> None:
    world, settled = archived()
    world.resubmit(settled[0])
    world.start()
    assert in_state(world, P.UNDOING) == [settled[0]]
    assert requests_in(world.succeeds(settled[0])) == [settled[MOST_ADDED_UNDOS]]


def test_an_archived_task_with_steps_left_to_undo_does_not_begin_again() -> None:
    world, _ = archived()
    world.cancel(undo=False)
    assert world.task_state() is TaskState.CANCELLED
    with pytest.raises(Refused, match="and 44 more may stand and would happen twice"):
        world.resubmit(again=True)


def test_a_part_of_a_completed_task_is_undone_in_parts_as_well() -> None:
    world = trip()
    settled = with_legs(world, MOST_ADDED_UNDOS + 10)
    succeed(world, ["find", "alone"])
    assert world.task_state() is TaskState.COMPLETED
    world.ask_undo(*settled)
    world.start()
    assert in_state(world, P.UNDOING) == settled[:MOST_ADDED_UNDOS]
    while undos := in_state(world, P.UNDOING):
        succeed(world, undos)
    assert world.task_state() is TaskState.COMPLETED
    assert in_state(world, P.UNDONE) == settled


def test_a_part_that_is_archived_for_want_of_room_leaves_the_other_steps_alone() -> None:
    world = trip()
    settled = with_legs(world, MOST_ADDED_UNDOS + 2)
    succeed(world, ["find", "alone"])
    world.ask_undo(*settled)
    world.start()
    refuse(world, in_state(world, P.UNDOING))
    assert world.task_state() is TaskState.ARCHIVED
    assert in_state(world, P.PROCESSED) == ["find", *settled[MOST_ADDED_UNDOS:], "alone"]


def test_a_part_has_at_most_so_many_steps() -> None:
    world = trip()
    settled = with_legs(world, MOST_PART + 1)
    succeed(world, ["find", "alone"])
    with pytest.raises(Refused, match="the part has 201 steps; 200 fit: undo the whole task"):
        world.ask_undo(*settled)
    world.ask_undo(*settled[1:])
    assert world.task_state() is TaskState.UNDOING


def test_steps_that_were_undone_before_count_as_steps_of_the_part() -> None:
    world = trip()
    settled = with_legs(world, MOST_PART + 1)
    succeed(world, ["find", "alone"])
    world.ask_undo(*settled[:2])
    world.start()
    succeed(world, settled[:2])
    with pytest.raises(Refused, match="the part has 201 steps"):
        world.ask_undo(*settled[2:])


# --- keys of former runs -------------------------------------------------------------------------


def run_and_undo(world: World, *names: str) -> list[str]:
    """Let `find` add these steps, which succeed, and undo all. Returns the keys that were used."""
    world.adds("find", *map(StepToAdd, names))
    keys = [idempotency_key("ord-1", name, "perform", world.record(name)) for name in names]
    succeed(world, names)
    world.is_refused("alone", effect=Effect.NONE)
    while undos := in_state(world, P.UNDOING):
        succeed(world, undos)
    assert world.task_state() is TaskState.UNDONE
    return keys


def again(world: World) -> World:
    world.resubmit(again=True)
    world.start()
    return world


def test_no_key_of_an_added_step_is_used_in_two_runs_whatever_they_add() -> None:
    world = trip()
    keys = run_and_undo(world, "leg[a]", "note[x]")
    assert again(world).task.used_rounds == {"leg": 1, "note": 1}
    keys += run_and_undo(world, "leg[b]")
    assert again(world).task.used_rounds == {"leg": 2, "note": 1}
    keys += run_and_undo(world, "leg[a]", "leg[b]", "note[x]", "note[y]")
    assert again(world).task.used_rounds == {"leg": 3, "note": 2}
    assert keys == [
        "ord-1/leg[a]/perform",
        "ord-1/note[x]/perform",
        "ord-1/leg[b]/perform/2",
        "ord-1/leg[a]/perform/3",
        "ord-1/leg[b]/perform/3",
        "ord-1/note[x]/perform/2",
        "ord-1/note[y]/perform/2",
    ]


def test_a_task_of_any_number_of_added_steps_begins_again() -> None:
    world = trip()
    with_legs(world, MOST_USED_ROUNDS + 100, P.UNDONE)
    succeed(world, ["find"])
    world.is_refused("alone", effect=Effect.NONE)
    while undos := in_state(world, P.UNDOING):
        succeed(world, undos)
    assert again(world).task.used_rounds == {"leg": 1}


@pytest.mark.parametrize("used", [MOST_USED_ROUNDS - 1, MOST_USED_ROUNDS])
def test_a_task_with_too_many_used_rounds_does_not_begin_again(used: int) -> None:
    world = trip()
    run_and_undo(world, "leg[a]")
    gone = {f"gone{number}": 1 for number in range(used)}
    world.task = replace(world.task, used_rounds=gone)
    if used < MOST_USED_ROUNDS:
        assert len(again(world).task.used_rounds) == MOST_USED_ROUNDS
        return
    with pytest.raises(Refused, match="201 steps, or kinds of added steps, of former runs"):
        world.resubmit(again=True)


@pytest.mark.parametrize(("of_name", "of_kind"), [(1, 4), (4, 1)])
def test_an_added_step_begins_after_the_last_round_of_its_name_and_of_its_kind(
    of_name: int, of_kind: int
) -> None:
    world = trip()
    used = {"leg[a]": of_name, "leg": of_kind}
    assert replace(world.task, used_rounds=used).untouched("leg[a]").round == 5


def test_effects_without_compensation_that_stand_from_a_former_run_are_explained() -> None:
    world = trip()
    [key, _] = run_and_undo(world, "note[x]", "leg[a]")
    stands = [StandingEffect("note[x]", key, 1)]
    again(world)
    rounds = {"note[x]": 2}
    assert not [*of_effects(world.plan, world.task, stands, rounds)]
    world.adds("find", StepToAdd("note[x]"))
    world.succeeds("note[x]")
    stands += [StandingEffect("note[x]", "ord-1/note[x]/perform/2", 1)]
    stands += [StandingEffect("find", "ord-1/find/perform/2", 1)]
    assert not [*of_effects(world.plan, world.task, stands, rounds)]
    other = plan(FIND, ALONE, on_failure=Archive())
    kept = [*of_effects(other, replace(world.task, added={}), stands[:1], rounds)]
    assert not any("note[x]" in one.what for one in kept), "a plan without its kind"
