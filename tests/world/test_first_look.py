"""The shop of the first look, on a clock that the test moves."""

from datetime import timedelta

import pytest

from roundsman.model.instants import MINUTE
from roundsman.model.states import TaskState
from roundsman_testing.first_look.guide import ShopGuide
from roundsman_testing.first_look.shop import BETWEEN_NEW_ORDERS, PAST, Shop
from roundsman_testing.world.world import MORNING


class Clock:
    """The clock of the machine, as the test moves it."""

    def __init__(self) -> None:
        self.now = MORNING

    def __call__(self) -> int:
        return self.now


def opened() -> tuple[Shop, Clock, list[str]]:
    clock, alerts = Clock(), list[str]()
    return Shop(clock, alerts.append), clock, alerts


def pass_time(shop: Shop, clock: Clock, milliseconds: int) -> None:
    """Let the shop go on as its thread does."""
    end = clock.now + milliseconds
    while clock.now < end:
        clock.now += 500
        shop.go_on()


def states(shop: Shop) -> dict[str, TaskState]:
    return {task.task_id: task.state for task in shop.world.processes.store.tasks()}


def test_the_past_ends_now_with_orders_that_completed_and_some_that_failed_for_one_cause() -> None:
    shop, clock, alerts = opened()
    assert shop.world.now == clock.now
    tasks = shop.world.processes.store.tasks()
    assert min(task.created_at for task in tasks) >= MORNING - PAST
    failed = shop.failed()
    assert len(failed) > 5
    assert len(set(failed.values())) == 1
    others = {order for order in states(shop) if order not in failed}
    assert sorted(shop.completed(others)) == sorted(others)
    assert len(others) > 20
    assert not alerts, "the alerts of the past are not shown"
    assert shop.world.post.alerts


@pytest.mark.verify
def test_orders_go_on_coming_and_fail_until_payment_is_held_and_repaired() -> None:
    shop, clock, _ = opened()
    before, failed = states(shop), shop.failed()
    pass_time(shop, clock, 4 * BETWEEN_NEW_ORDERS)
    assert len(states(shop)) - len(before) == 4
    assert shop.failed().keys() > failed.keys()
    shop.world.hold("payment", timedelta(minutes=30))
    assert shop.is_held
    pass_time(shop, clock, BETWEEN_NEW_ORDERS)
    failed = shop.failed()
    pass_time(shop, clock, 4 * BETWEEN_NEW_ORDERS)
    assert shop.failed() == failed, "what needs a held agent waits"
    shop.repair()
    shop.world.release("payment")
    pass_time(shop, clock, 2 * MINUTE)
    assert shop.failed() == failed, "what has failed waits for a person"
    for order in failed:
        shop.world.operator.resubmit(order)
    pass_time(shop, clock, MINUTE)
    assert not shop.failed()
    assert sorted(shop.completed(failed)) == sorted(failed)


@pytest.mark.verify
def test_each_sentence_is_done_when_the_data_say_so() -> None:
    shop, clock, _ = opened()
    guide = ShopGuide(shop)

    def done() -> list[bool]:
        return [step.done for step in guide.steps()]

    assert done() == [False, False, False]
    shop.world.hold("mail", timedelta(minutes=30))
    assert done() == [False, False, False]
    shop.world.hold("payment", timedelta(minutes=30))
    assert done() == [True, False, False]
    guide.press()
    assert done() == [True, True, False]
    failed = shop.failed()
    for order in failed:
        shop.world.operator.resubmit(order)
    pass_time(shop, clock, MINUTE)
    assert not shop.failed()
    assert done() == [True, True, False], "they wait for the agent, which is held"
    shop.world.release("mail")
    shop.world.release("payment")
    for order in failed:
        shop.world.operator.run_now(order)
    pass_time(shop, clock, MINUTE)
    assert done() == [True, True, True]
    assert guide.ending().startswith(f"Of the {len(failed)} orders that failed, {len(failed)} are")


@pytest.mark.verify
def test_an_order_that_fails_later_belongs_to_the_last_sentence_too() -> None:
    shop, clock, _ = opened()
    guide = ShopGuide(shop)
    guide.steps()
    pass_time(shop, clock, 3 * BETWEEN_NEW_ORDERS)
    guide.steps()
    guide.press()
    later = sorted(shop.failed())[-1]
    for order in shop.failed():
        if order != later:
            shop.world.operator.resubmit(order)
    pass_time(shop, clock, MINUTE)
    assert list(shop.failed()) == [later]
    assert not guide.steps()[2].done
    shop.world.operator.undo(later)
    pass_time(shop, clock, MINUTE)
    assert guide.steps()[2].done
    assert "effect once" in guide.ending()


def test_the_supervisor_passes_although_nothing_is_to_be_done() -> None:
    shop, clock, _ = opened()
    before = shop.world.processes.leases.read()
    pass_time(shop, clock, MINUTE)
    assert shop.world.processes.leases.read() != before


@pytest.mark.verify
def test_an_alert_of_the_present_is_handed_on() -> None:
    shop, clock, alerts = opened()
    pass_time(shop, clock, 5 * MINUTE)
    assert alerts
    assert alerts == [alert.subject for alert in shop.world.post.alerts[-len(alerts) :]]
