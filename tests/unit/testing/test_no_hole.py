"""Bugs that no promise was broken by, in the eyes of worlds and soaks, until these were planted."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.plan import Plan, plan_of
from roundsman.definition.workflow import Archive, Workflow
from roundsman.engine import task_state
from roundsman.errors import InvalidMessage
from roundsman.model.failure import Group
from roundsman.model.states import ProcessState
from roundsman.model.task import StepRecord, Task, Termination
from roundsman.wire.alert import Alert
from roundsman.wire.messages import Reply, read_reply
from roundsman_testing import Invariant, InvariantBroken, TaskState, World
from roundsman_testing.invariants.rules import of_change
from roundsman_testing.memory import MemoryGroups, MemoryStore
from roundsman_testing.world import processes
from roundsman_testing.world.outbox import WorldOutbox
from roundsman_testing.world.queues import REPLIES
from tests.unit.testing.samples import SHOP
from tests.world.shop import deliver
from tools.soak import run_stories

Patch = pytest.MonkeyPatch

ARCHIVES = Workflow(
    name="archives",
    steps=SHOP.steps,
    complete_within=timedelta(hours=1),
    on_failure=Archive(),
    retain_for=timedelta(days=1),
)


def test_an_order_that_is_cancelled_with_undo_and_keeps_an_effect_is_found(
    monkeypatch: Patch,
) -> None:
    def unfinished(_plan: Plan | None, task: Task, _ending: Termination) -> bool:
        return any(record.under_way for record in task.steps.values())

    world = World(SHOP)
    world.on("charge").hangs()
    order_id = world.submit()
    world.run(until=lambda: bool(world.standing(order_id)))
    world.run(for_=timedelta(seconds=1))
    assert world.standing(order_id) == ["reserve"]
    monkeypatch.setattr(task_state, "_is_unfinished", unfinished)
    monkeypatch.setattr("roundsman.engine.compensation.ready_to_undo", lambda _: [])
    world.cancel(order_id)
    with pytest.raises(InvariantBroken) as found:
        world.run()
    assert Invariant.UNDONE in {broken.invariant for broken in found.value.broken}


def test_an_order_that_fails_into_a_group_that_is_not_open_is_found(monkeypatch: Patch) -> None:
    opens = MemoryGroups.open

    def of_one_step(self: MemoryGroups, group: Group) -> Group | None:
        return opens(self, group) if group.step == "charge" else replace(group, opened_by="else")

    monkeypatch.setattr(MemoryGroups, "open", of_one_step)
    world = World(ARCHIVES)
    world.on("charge").refuses("CardDeclined", times=1)
    world.submit()
    world.run()
    world.on("mail").refuses("NoSuchAddress")
    world.submit()
    with pytest.raises(InvariantBroken, match="is not open"):
        world.run()


def test_an_all_clear_while_an_order_stands_failed_is_found(monkeypatch: Patch) -> None:
    monkeypatch.setattr(MemoryStore, "members", lambda *_, **__: iter(()))
    world = World(ARCHIVES)
    world.on("charge").refuses("CardDeclined")
    world.submit()
    world.run()
    with pytest.raises(InvariantBroken, match="is reported as cleared"):
        world.run(for_=timedelta(hours=1))


def test_a_group_that_is_opened_once_more_without_an_alert_is_found(monkeypatch: Patch) -> None:
    publish = WorldOutbox.publish

    def once(self: WorldOutbox, alert: Alert) -> None:
        if not self.alerts:
            publish(self, alert)

    monkeypatch.setattr(WorldOutbox, "publish", once)
    world = World(ARCHIVES)
    world.on("charge").refuses("CardDeclined", times=1)
    order_id = world.submit()
    world.run()
    world.operator.resubmit(order_id)
    world.run(for_=timedelta(hours=1))
    assert world.processes.groups.groups() == []
    world.on("charge").refuses("CardDeclined")
    world.submit()
    with pytest.raises(InvariantBroken, match="no alert was sent"):
        world.run()


def test_an_alert_that_was_not_sent_is_found(monkeypatch: Patch) -> None:
    monkeypatch.setattr(WorldOutbox, "publish", lambda *_: None)
    world = World(ARCHIVES)
    world.on("charge").refuses("CardDeclined")
    world.submit()
    with pytest.raises(InvariantBroken, match="no alert was sent"):
        world.run()


def test_an_order_that_is_completed_with_a_step_never_begun_is_found() -> None:
    world = World(SHOP)
    order_id = world.submit()
    world.run()
    whole = world.task(order_id)
    lacking = replace(whole, steps=without(whole.steps, "mail"))
    assert lacking.state is TaskState.COMPLETED
    assert names_of(whole) == set()
    assert names_of(lacking) == {Invariant.COMPLETED}


def without(steps: Mapping[str, StepRecord], name: str) -> dict[str, StepRecord]:
    assert steps[name].process_state is ProcessState.PROCESSED
    return {other: record for other, record in steps.items() if other != name}


def names_of(task: Task) -> set[Invariant]:
    return {broken.invariant for broken in of_change(plan_of(SHOP), None, task, task.due_at)}


@pytest.mark.verify
def test_a_soak_finds_that_good_messages_are_put_aside(monkeypatch: Patch) -> None:
    def rejects(body: str) -> Reply:
        reply = read_reply(body)
        if reply.error is not None:
            raise InvalidMessage([])
        return reply

    monkeypatch.setattr(processes, "read_reply", rejects)
    found = run_stories(range(10))
    assert found.broken
    assert all("put aside: a message of replies" in why for _, why in found.broken)


def test_an_all_clear_was_right_though_an_order_fails_alike_a_moment_later() -> None:
    """An alert is judged by what is stored when it is published."""
    waits = replace(SHOP.steps[1], after=(), complete_within=timedelta(minutes=15))
    world = World(replace(ARCHIVES, name="waits", steps=(waits,)))
    world.on("charge").refuses("CardDeclined", times=1)
    first = world.submit()
    world.run()
    world.operator.resubmit(first)
    world.run(until=lambda: world.task(first).state is TaskState.COMPLETED)
    world.on("charge").refuses("CardDeclined", times=1)
    world.mail(REPLIES, "CardDeclined").is_late(by=timedelta(minutes=14))
    second = world.submit()
    alerts: list[str] = []

    def fails_alike(call: str) -> None:
        if call == "remove_group" and not alerts:
            alerts.extend(alert.subject for alert in world.post.alerts)
            late = next(mail for mail in world.queues.waiting if "CardDeclined" in mail.body)
            deliver(world, late)

    world.faults.before_each(fails_alike)
    world.run(for_=timedelta(minutes=13))
    assert "clear" in alerts[-1].lower(), alerts
    assert world.task(second).state is TaskState.ARCHIVED
