"""An order sleeps for days: what fails meanwhile, what it costs, and what ends its sleep."""

from collections import Counter
from datetime import timedelta

from roundsman.definition.workflow import Archive, Sleep, SleepUntil
from roundsman_testing import TaskState, World
from tests.world.shop import FENCED, MINUTE, a_step, a_workflow, since_morning

MONTH = timedelta(days=30)
begin = a_step("begin", compensation=FENCED)
trial = Sleep(name="trial", for_=MONTH, after=(begin,))
charge = a_step("charge", trial, compensation=FENCED)
SUBSCRIPTION = a_workflow(begin, trial, charge, complete_within=timedelta(days=40))


def asleep(world: World) -> bool:
    try:
        return world.task("ord-1").step("trial").situation_name == "asleep"
    except LookupError:
        return False


def sleeping() -> World:
    """An order that has begun its sleep."""
    world = World(SUBSCRIPTION)
    world.submit()
    return world.run(until=lambda: asleep(world))


def test_an_order_sleeps_for_thirty_days_and_goes_on_within_a_minute() -> None:
    world = sleeping().run()
    assert world.task("ord-1").state is TaskState.COMPLETED
    assert MONTH <= since_morning(world) < MONTH + 3 * MINUTE
    assert not world.history("ord-1")


def test_thirty_days_of_sleep_are_four_write_units() -> None:
    """Its begin is stored with the reply before it; its end is one unit; the supervisor finds the
    due entry of the last attempt and moves it, which is three."""
    world, writes = sleeping(), Counter[str]()
    world.faults.before_each(lambda call: writes.update([call]))
    world.run(until=lambda: not asleep(world))
    assert (writes["save"], writes["rearm"]) == (1, 1)


def test_an_order_that_fails_beside_its_sleep_is_undone_now() -> None:
    other = a_step("other")
    world = World(a_workflow(begin, trial, charge, other, complete_within=timedelta(days=40)))
    world.on("other").refuses()
    world.submit()
    world.run()
    assert world.task("ord-1").state is TaskState.UNDONE
    assert not world.standing("ord-1")
    assert since_morning(world) < timedelta(minutes=10)


def test_a_sleeping_order_that_is_cancelled_is_undone_now() -> None:
    world = sleeping()
    world.cancel("ord-1")
    world.run()
    assert world.task("ord-1").state is TaskState.CANCELLED
    assert not world.standing("ord-1")
    assert since_morning(world) < timedelta(minutes=10)


def test_a_person_ends_a_sleep() -> None:
    world = sleeping()
    world.operator.resolve("ord-1", "trial", did=True)
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED
    assert since_morning(world) < timedelta(minutes=10)


def test_a_person_lets_an_order_sleep_longer() -> None:
    world = sleeping()
    world.operator.extend("ord-1", timedelta(days=1), "trial")
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED
    assert since_morning(world) >= MONTH + timedelta(days=1)


def test_an_order_whose_instant_is_wrong_is_corrected_and_sleeps() -> None:
    eve = SleepUntil("input.remindAt", name="eve", after=(begin,))
    quiet = a_workflow(begin, eve, complete_within=MONTH, on_failure=Archive())
    world = World(quiet)
    world.submit({"remindAt": "soon"})
    world.run()
    assert world.task("ord-1").state is TaskState.ARCHIVED
    world.operator.resolve("ord-1", "eve", did=True)
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED


def test_a_held_order_sleeps_and_its_next_step_waits_for_the_hold() -> None:
    world = sleeping()
    world.hold("charge", for_=MONTH + timedelta(hours=1))
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED
    assert since_morning(world) >= MONTH + timedelta(hours=1)


def test_a_supervisor_that_is_down_ends_the_sleep_late_and_no_order_fails() -> None:
    world = World(SUBSCRIPTION)
    world.submit()
    world.run(until=lambda: asleep(world))
    world.down("supervisor", MONTH + timedelta(days=1))
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED
    assert since_morning(world) >= MONTH + timedelta(days=1)


def test_a_restored_order_sleeps_until_the_instant_that_it_had() -> None:
    world = sleeping()
    backup = world.backup()
    world.run(for_=timedelta(days=20))
    world.restore(backup)
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED
    assert MONTH <= since_morning(world) < MONTH + timedelta(minutes=10)


def test_a_sleep_until_an_instant_of_the_order_ends_then() -> None:
    eve = SleepUntil("input.remindAt", name="eve", after=(begin,))
    remind = a_step("remind", eve)
    world = World(a_workflow(begin, eve, remind, complete_within=MONTH, on_failure=Archive()))
    world.submit({"remindAt": "2027-01-20T08:00:00Z"})
    world.run()
    assert world.task("ord-1").state is TaskState.COMPLETED
    assert timedelta(days=5) <= since_morning(world) < timedelta(days=5) + 3 * MINUTE
