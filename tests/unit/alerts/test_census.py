"""One alert for a failure group: who sends it, when again, and that none is lost or repeated."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.alerts.census import MOST_A_SHARD, MOST_LOOKS
from roundsman.alerts.group import CLEAR_FOR, MOST_OPEN, SENDING_LEASE, opened
from roundsman.alerts.reporter import KNOWN_FOR, TOO_MANY_KINDS, Reporter
from roundsman.definition.workflow import Archive, Compensation, Retry, Step, Undo, Workflow
from roundsman.model.events import Outcome
from roundsman.model.failure import Failure, Group, failure_of
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.states import TaskState
from roundsman.wire.alert import Alert
from roundsman_testing import World
from roundsman_testing.faults import Crash, Fault, Faults
from roundsman_testing.memory import MemoryGroups
from roundsman_testing.world.crashes import crash_everywhere
from tests.support.machine_world import T0, plan, step
from tests.support.shell_world import ORDER_ID, Shells

ONE = plan(step("first"), on_failure=Archive())
AGENT_TIME = timedelta(seconds=30)
THRICE = Retry(max_attempts=3)


def news(world: World) -> list[str]:
    return [alert.attributes["news"] for alert in world.post.alerts]


def shop(*, undoes: bool = False) -> Workflow:
    reserve = Step(
        name="reserve",
        agent="stock",
        complete_within=AGENT_TIME,
        retry=THRICE,
        compensation=Compensation(fences_late_performs=True),
    )
    charge = Step(
        name="charge", agent="bank", after=(reserve,), complete_within=AGENT_TIME, retry=THRICE
    )
    return Workflow(
        name="shop",
        steps=(reserve, charge),
        complete_within=timedelta(hours=1),
        on_failure=Undo() if undoes else Archive(),
        retain_for=timedelta(days=1),
    )


def declined(orders: int, *, undoes: bool = False) -> World:
    world = World(shop(undoes=undoes))
    world.on("charge").refuses("CardDeclined")
    for _ in range(orders):
        world.submit()
    return world


# ---- the alert of many ---------------------------------------------------------------------


def test_forty_orders_that_fail_alike_make_an_alert_an_update_and_an_all_clear() -> None:
    world = declined(40)
    world.run()
    assert news(world) == ["first"]
    world.run(for_=timedelta(minutes=30))
    assert news(world) == ["first", "update"]
    update = world.post.alerts[-1]
    assert "(40 orders now)" in update.subject
    assert update.text.count("  Archived, tried 1 time: ") == 3, "three sample orders"
    world.on("charge").is_up()
    for task in list(world.processes.watch.tasks):
        world.operator.resubmit(task)
    world.run()
    assert all(
        world.task(task).state is TaskState.COMPLETED for task in world.processes.watch.tasks
    )
    world.run(for_=timedelta(minutes=30))
    assert news(world) == ["first", "update", "clear"]
    assert world.processes.groups.groups() == []


def test_each_cause_has_a_group_of_its_own() -> None:
    world = declined(1)
    world.run()
    world.on("charge").is_up().refuses("CardExpired")
    world.submit()
    world.run()
    assert [alert.attributes["group"] for alert in world.post.alerts] == [
        group.id for group in world.processes.groups.groups()
    ]
    assert news(world) == ["first", "first"]


def test_an_order_that_fails_once_more_is_counted_and_not_alerted_again() -> None:
    world = declined(1)
    order_id = world.submit()
    world.run()
    world.operator.resubmit(order_id)
    world.run()
    assert world.task(order_id).state is TaskState.ARCHIVED
    assert news(world) == ["first"]
    world.run(for_=timedelta(hours=8))
    assert news(world) == ["first", "update"], "after hours, that there are two"


def test_undone_orders_wake_nobody_until_many_are_undone_at_once() -> None:
    world = declined(19, undoes=True)
    world.run()
    world.run(for_=timedelta(minutes=5))
    assert news(world) == []
    world.submit()
    world.run(for_=timedelta(minutes=3))
    assert news(world) == ["first"]
    assert world.post.alerts[0].attributes["severity"] == "warning"
    world.run(for_=timedelta(minutes=40))
    assert news(world) == ["first", "clear"], "they have calmed down"
    assert world.processes.groups.groups() == []


def test_a_few_undone_now_and_then_keep_no_all_clear_back() -> None:
    world = declined(30, undoes=True)
    world.run()
    world.run(for_=timedelta(minutes=3))
    assert news(world) == ["first"]
    for _ in range(20):
        world.submit()
        world.run(for_=timedelta(minutes=2))
    assert news(world) == ["first", "clear"]


def test_an_order_that_a_person_had_undone_is_in_no_group() -> None:
    world = declined(1)
    world.run()
    [order_id] = world.processes.watch.tasks
    world.operator.undo(order_id)
    world.run()
    assert world.task(order_id).state is TaskState.UNDONE
    assert world.task(order_id).failure is None
    assert [group.how for group in world.processes.groups.groups()] == ["archived"]


# ---- nothing is lost -----------------------------------------------------------------------


@pytest.mark.exhaustive
def test_a_failure_is_alerted_whatever_call_on_its_way_fails_or_dies() -> None:
    def story(world: World) -> None:
        world.on("charge").refuses("CardDeclined")
        order_id = world.submit()
        world.run()
        assert world.task(order_id).state is TaskState.ARCHIVED
        assert set(news(world)) == {"first"}

    crashes = crash_everywhere(story, lambda faults: World(shop(), faults=faults))
    assert {"read_groups", "open_group", "publish", "change_group"} <= set(crashes.calls)


def test_an_all_clear_is_sent_whatever_call_on_its_way_fails_or_dies() -> None:
    calls = ("read_groups", "members", "change_group", "publish", "remove_group")
    for call in calls:
        for fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.NOT_DONE, Fault.UNKNOWN):
            faults = Faults()
            world = World(shop(), faults=faults)
            world.on("charge").refuses("CardDeclined", times=1)
            order_id = world.submit()
            world.run()
            world.operator.resubmit(order_id)
            world.run()
            world.run(for_=timedelta(milliseconds=CLEAR_FOR))
            faults.on(call, fault, nth=1)
            world.run(for_=timedelta(minutes=30))
            assert news(world)[:1] == ["first"]
            assert set(news(world)[1:]) == {"clear"}, f"{call}: {fault}"
            assert world.processes.groups.groups() == []


def archived(faults: Faults) -> Shells:
    shells = Shells(ONE)
    shells.submit()
    shells.start()
    shells.outbox.sent.clear()
    try:
        shells.reply("first", Outcome.PERMANENT, faults=faults)
    except Crash:
        assert faults.happened
    return shells


def test_a_group_whose_opener_dies_is_alerted_by_the_next_pass_once_it_may_be() -> None:
    shells = archived(Faults().on("publish", Fault.CRASH_BEFORE))
    assert shells.alerts() == []
    shells.wait(SENDING_LEASE / SECOND - 1).make_pass()
    assert shells.alerts() == [], "it may still be about to"
    shells.wait(1).make_pass()
    assert shells.alerts() == ["task_archived"]
    shells.wait(60).make_pass()
    assert shells.alerts() == ["task_archived"]


def test_of_two_passes_that_see_one_unreported_group_one_alerts() -> None:
    shells = archived(Faults().on("publish", Fault.CRASH_BEFORE))
    shells.wait(60)
    faults = Faults()

    def rival(call: str) -> None:
        if call == "change_group":
            faults.before_each(lambda _: None)
            shells.supervisor(instance="u2").make_pass(stop_at=shells.now + MINUTE)

    shells.supervisor(faults.before_each(rival)).make_pass(stop_at=shells.now + MINUTE)
    assert shells.alerts() == ["task_archived"]


def test_what_fails_into_a_calm_group_takes_its_calm_back_so_it_is_not_closed_under_it() -> None:
    shells = archived(Faults())
    [group] = shells.groups.groups()
    calm = replace(group, clear_since=shells.now, version=group.version + 1)
    assert shells.groups.change(calm, seen=group.version)
    shells.wait(1)
    reporter(shells).failed(shells.task(), ONE)
    [after] = shells.groups.groups()
    assert (after.clear_since, after.version) == (None, calm.version + 1)


def test_what_fails_into_a_group_that_was_just_closed_opens_it_anew_and_alerts() -> None:
    shells = archived(Faults())
    [group] = shells.groups.groups()
    closed = replace(group, clear_since=T0, closed_at=shells.now, version=group.version + 1)
    assert shells.groups.change(closed, seen=group.version)
    reporter(shells).failed(shells.task(), ONE)
    [after] = shells.groups.groups()
    assert after.closed_at is None
    assert after.version > closed.version
    assert shells.alerts() == ["task_archived"] * 2


def closed_before_its_all_clear() -> Shells:
    """A group that is over, whose supervisor died before it could say so."""
    shells = archived(Faults())
    [group] = shells.groups.groups()
    closed = replace(group, clear_since=T0, closed_at=shells.now, version=group.version + 1)
    assert shells.groups.change(closed, seen=group.version)
    shells.outbox.sent.clear()
    return shells.wait(60)


def news_of(shells: Shells) -> list[str]:
    return [sent.attributes["news"] for sent in shells.outbox.sent if isinstance(sent, Alert)]


@pytest.mark.parametrize("at", ["change_group", "publish"])
def test_of_two_passes_that_see_one_closed_group_one_reports_its_end(at: str) -> None:
    shells, faults = closed_before_its_all_clear(), Faults()

    def rival(call: str) -> None:
        if call == at:
            faults.before_each(lambda _: None)
            shells.supervisor(instance="u2").make_pass(stop_at=shells.now + MINUTE)

    shells.supervisor(faults.before_each(rival)).make_pass(stop_at=shells.now + MINUTE)
    assert news_of(shells) == ["clear"]
    assert shells.groups.groups() == []


def test_no_all_clear_is_sent_for_a_closed_group_that_is_opened_again_meanwhile() -> None:
    shells, faults = closed_before_its_all_clear(), Faults()

    def fails_again(call: str) -> None:
        if call in ("change_group", "publish"):
            faults.before_each(lambda _: None)
            reporter(shells).failed(shells.task(), ONE)

    shells.supervisor(faults.before_each(fails_again)).make_pass(stop_at=shells.now + MINUTE)
    assert news_of(shells) == ["first"]


# ---- what it costs -------------------------------------------------------------------------


def reporter(shells: Shells, groups: MemoryGroups | None = None) -> Reporter:
    return Reporter(
        groups=groups or shells.groups,
        outbox=shells.outbox,
        board=shells.board,
        clock=shells.clock,
    )


class Counting(MemoryGroups):
    """Counts the reads and the writes."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = self.writes = 0

    def groups(self) -> list[Group]:
        self.reads += 1
        return super().groups()

    def open(self, group: Group) -> Group | None:
        self.writes += 1
        return super().open(group)

    def change(self, group: Group, *, seen: int) -> bool:
        self.writes += 1
        return super().change(group, seen=seen)


@pytest.mark.exhaustive
def test_ten_thousand_failures_alike_cost_one_instance_a_read_every_few_seconds() -> None:
    shells = archived(Faults())
    groups = Counting()
    one = reporter(shells, groups)
    for number in range(10_000):
        shells.now = T0 + number * 10 * SECOND // 10_000
        one.failed(replace(shells.task(), task_id=f"ord-{number}"), ONE)
    assert groups.writes == 2, "opened, and alerted"
    assert groups.reads == 2
    shells.now += KNOWN_FOR
    one.failed(shells.task(), ONE)
    assert (groups.reads, groups.writes) == (3, 2)


def test_a_pass_reads_the_groups_once_and_counts_a_bounded_number_of_them() -> None:
    shells = Shells(ONE)
    for number in range(30):
        failure = failure_named(f"Kind{number}")
        group = opened(failure, agent="", task_id=ORDER_ID, since=T0, now=T0)
        shells.groups.open(replace(group, alerted_at=T0, alerted_count=1))
    shells.wait(60)
    faults = Faults()
    report = shells.supervisor(faults).make_pass(stop_at=shells.now + MINUTE)
    assert faults.calls.count("read_groups") == 1
    assert (report.groups.open, report.groups.looked_at) == (30, MOST_LOOKS)
    assert faults.calls.count("members") == MOST_LOOKS * 4, "one query a shard"
    seen = {group.id for group in shells.groups.groups() if group.looked_at == shells.now}
    shells.wait(1).make_pass()
    again = {group.id for group in shells.groups.groups() if group.looked_at == shells.now}
    assert len(again) == MOST_LOOKS
    assert not seen & again, "each in its turn"


def test_a_pass_with_no_group_open_costs_one_read() -> None:
    shells, faults = Shells(ONE), Faults()
    shells.supervisor(faults).make_pass(stop_at=shells.now + MINUTE)
    about_groups = [call for call in faults.calls if "group" in call or call == "members"]
    assert about_groups == ["read_groups"]


def test_where_there_are_more_than_are_counted_the_alert_says_more_than() -> None:
    shells = archived(Faults())
    task = shells.task()
    for number in range(MOST_A_SHARD + 5):
        other = replace(task, task_id=f"more-{number}", ended_at=T0 + number)
        shells.store.put(other)
    shells.wait(60).make_pass()
    [alert] = [each for each in shells.outbox.sent[-1:] if isinstance(each, Alert)]
    assert f"more than {MOST_A_SHARD}" in alert.subject
    assert "2027-01-15T08:00:01.004Z" in alert.text, "the newest, though it was not counted"


# ---- too many kinds ------------------------------------------------------------------------


def failure_named(name: str) -> Failure:
    return Failure("other", "x", "archived", name, "")


def test_beyond_a_hundred_kinds_the_rest_are_one_group_and_say_so_in_their_records() -> None:
    shells = Shells(ONE)
    for number in range(MOST_OPEN):
        failure = failure_named(f"Kind{number}")
        shells.groups.open(opened(failure, agent="", task_id="x", since=T0, now=T0))
    shells.submit()
    shells.start()
    shells.reply("first", Outcome.PERMANENT)
    task = shells.task()
    assert task.owed == ()
    [over] = [group for group in shells.groups.groups() if group.overflow]
    own = failure_of(task)
    assert own is not None
    assert task.failure == over.id != own.group
    assert over.error_type == TOO_MANY_KINDS
    assert [each.task_id for each in shells.store.members(over.id, task.shard)] == [ORDER_ID]
    alert = next(each for each in shells.outbox.sent if isinstance(each, Alert))
    assert f"roundsman groups show {over.id}" in alert.text


@pytest.mark.parametrize("fault", [Fault.NOT_DONE, Fault.REFUSED])
def test_an_undone_order_that_cannot_be_noted_is_undone_all_the_same(fault: Fault) -> None:
    world = World(shop(undoes=True), faults=Faults().on("open_group", fault))
    world.on("charge").refuses("CardDeclined")
    order_id = world.submit()
    world.run()
    assert world.task(order_id).state is TaskState.UNDONE
    assert world.task(order_id).owed == ()
