"""When a run of a world is taken for endless, and what the end of a failed run says."""

from datetime import timedelta
from pathlib import Path

import pytest

from roundsman.model.instants import DAY, MINUTE
from roundsman_testing import FOR_EVER, Invariant, InvariantBroken, TaskState, World
from roundsman_testing.invariants.rules import Blame
from roundsman_testing.world import endless
from roundsman_testing.world.endless import CROWDED, DUE_FOR, LEAST_APART, QUIET_FOR, EndlessCheck
from roundsman_testing.world.processes import Processes
from tests.world.shop import a_step, a_workflow

charge = a_step("charge")
LONG = a_workflow(charge, complete_within=timedelta(days=3))


def whole_trace(broken: InvariantBroken) -> str:
    named = str(broken).rpartition("the whole trace: ")[2]
    return Path(named).read_text(encoding="utf-8")


@pytest.mark.verify
def test_an_order_may_be_polled_each_five_minutes_for_two_days() -> None:
    world = World(LONG)
    world.check_every = 10
    days = timedelta(days=2)
    world.on("charge").is_not_done(timedelta(minutes=5), days, times=570)
    order = world.submit()
    world.run()
    assert world.task(order).state is TaskState.COMPLETED


@pytest.mark.verify
def test_events_without_time_between_them_end_a_run_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    handle = Processes.handle

    def answers_itself(self: Processes, mail: object, post: object, run: object) -> str:
        done = handle(self, mail, post, run)  # type: ignore[arg-type]
        if mail.queue == "replies":  # type: ignore[attr-defined]
            post.post("replies", mail.body, 0)  # type: ignore[attr-defined]
        return done

    monkeypatch.setattr(Processes, "handle", answers_itself)
    world = World(a_workflow(charge))
    order = world.submit()
    with pytest.raises(InvariantBroken) as found:
        world.run()
    assert found.value.broken[0].invariant is Invariant.ENDS
    assert found.value.broken[0].blame is Blame.APPLICATION_OR_ENGINE
    assert world.events < 10_000
    said = str(found.value)
    assert len(said.splitlines()) <= 10
    assert f"order: {order} of story, Completed, begun " in said
    assert "message-6000 of replies" in whole_trace(found.value)


def test_the_end_names_the_open_step_its_calls_and_what_the_last_one_raised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(a_workflow(charge))
    world.on("charge").fails(times=FOR_EVER)
    order = world.submit()
    monkeypatch.setattr(endless, "MOST_EVENTS", 7)
    with pytest.raises(InvariantBroken) as found:
        world.run()
    lines = str(found.value).splitlines()
    assert len(lines) <= 10
    assert lines[1].startswith(f"order: {order} of story, ")
    assert lines[2].startswith("open step: charge, ")
    assert lines[2].endswith(": 5 calls, 1 failed attempt"), "it calls again within an attempt"
    assert lines[3].startswith("last error: TransientError: ")
    assert lines[4] == f"whose mistake it may be: {Blame.KIT}"


def test_a_test_whose_world_fails_shows_its_own_line_and_few_more(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        from datetime import timedelta
        from roundsman import Step, Workflow
        from roundsman_testing.world import endless

        greet = Step(name="greet", agent="greeter", complete_within=timedelta(seconds=5))
        hello = Workflow(name="hello", steps=(greet,), complete_within=timedelta(minutes=1))

        def test_it(roundsman_world, monkeypatch):
            monkeypatch.setattr(endless, "MOST_EVENTS", 2)
            world = roundsman_world(hello)
            world.submit({})
            world.run()
        """
    )
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(failed=1)
    assert len(result.outlines) < 45
    assert any("world.run()" in line for line in result.outlines)
    assert not any("def _check" in line for line in result.outlines)
    [path] = {
        line.rpartition("the whole trace: ")[2]
        for line in result.outlines
        if line.startswith("E") and "the whole trace: " in line
    }
    assert Path(path).is_file()


def judged(events: int, took: int) -> object:
    check = EndlessCheck(0)
    for number in range(events):
        assert check.crowded(1) == (number >= 2 * CROWDED)
    return check.judged(took)


def test_many_events_are_too_many_only_if_hardly_any_time_passes() -> None:
    many = 2 * CROWDED + 1
    assert judged(many, many * LEAST_APART - 1) is not None
    assert judged(many, many * LEAST_APART) is None


@pytest.mark.parametrize("due", [True, False])
def test_time_counts_only_while_events_write_nothing(due: bool) -> None:
    check, bound = EndlessCheck(0), DUE_FOR if due else QUIET_FOR
    since = 0 if due else None
    for at in range(0, bound + 1, MINUTE):
        assert check.after(at, decisions=1, needed_since=since, ended=0) is None
    found = check.after(bound + MINUTE, decisions=1, needed_since=since, ended=0)
    assert found is not None
    assert found.blame is Blame.ENGINE
    assert check.after(bound + 2 * MINUTE, decisions=2, needed_since=since, ended=0) is None


def test_an_order_that_sleeps_is_not_still() -> None:
    check = EndlessCheck(0)
    for days in range(0, 400, 40):
        assert check.after(days * DAY, decisions=1, needed_since=None, ended=0) is None
