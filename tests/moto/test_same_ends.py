"""A story has the same ends in a world in memory and on the template's functions on moto.

Both are looked at while the story goes on, too: a test in memory that says Undone for an order that
the deployed stack still holds in Retry would be worth nothing.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman import Compensation, Retry, Step, Undo, Workflow
from roundsman.model.bulk_run import Terms
from roundsman_testing.stack import Clock, Services, Stack
from roundsman_testing.world.guards import Circuit
from tests.moto.two_sides import AGENTS, InMemory, OnMoto, Side, View
from tests.project import deployed_project, of_each_agent
from workflows.order_fulfilment import charge_card, order_fulfilment, reserve_stock

SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)

# A step that waits for an answer, and is asked twice at most.
book_carrier = Step(
    name="create_shipment",
    agent="shipping",
    after=(charge_card,),
    complete_within=MINUTE,
    retry=Retry(max_attempts=2, first_delay=10 * SECOND),
    compensation=Compensation(fences_late_performs=True),
)
with_answers = Workflow(
    name="with_answers",
    input=order_fulfilment.input,
    steps=(reserve_stock, charge_card, book_carrier),
    complete_within=8 * HOUR,
    on_failure=Undo(),
    retain_for=timedelta(days=7),
)

# One attempt a step, so that an order is undone if a single timeout counts.
once = Retry(max_attempts=1)
reserve_once = replace(reserve_stock, retry=once)
charge_once = replace(charge_card, after=(reserve_once,), complete_within=30 * SECOND, retry=once)
ship_once = replace(book_carrier, after=(charge_once,), complete_within=30 * SECOND, retry=once)
with_one_attempt = replace(
    with_answers, name="with_one_attempt", steps=(reserve_once, charge_once, ship_once)
)

with_deadline = replace(order_fulfilment, name="with_deadline", deadline=10 * MINUTE)

reserve_line = Step(
    name="reserve_stock",
    agent="inventory",
    for_each="input.lines",
    complete_within=MINUTE,
    compensation=Compensation(fences_late_performs=True),
)
charge_large = Step(
    name="charge_card",
    agent="payment",
    after=(reserve_line,),
    when="input.total > `100`",
    complete_within=MINUTE,
    compensation=Compensation(fences_late_performs=True),
)
ship_lines = replace(book_carrier, after=(charge_large,))
with_lines = replace(
    with_answers, name="with_lines", steps=(reserve_line, charge_large, ship_lines)
)

Story = Callable[[Side], list[View]]


def watched(side: Side, order_id: str, *waits: timedelta) -> list[View]:
    """What is seen of an order after each of these times."""
    seen = []
    for wait in waits:
        side.run(wait)
        seen.append(side.view(order_id))
    return seen


def an_order_completes(side: Side) -> list[View]:
    side.submit("ord-1")
    return watched(side, "ord-1", MINUTE)


def a_card_is_declined(side: Side) -> list[View]:
    side.service_refuses("payment", "CardDeclined")
    side.submit("ord-1")
    return watched(side, "ord-1", 5 * MINUTE)


def an_outage(agent: str, lasts: timedelta) -> Story:
    def story(side: Side) -> list[View]:
        side.service_is_down(agent)
        side.submit("ord-1")
        seen = watched(side, "ord-1", MINUTE, 4 * MINUTE, lasts - 5 * MINUTE)
        side.services_are_up()
        return seen + watched(side, "ord-1", 10 * MINUTE)

    return story


def an_outage_while_orders_come(side: Side) -> list[View]:
    side.service_is_down("payment")
    side.submit("ord-1", "ord-2", "ord-3")
    side.run(MINUTE)
    side.submit("ord-4")
    seen = watched(side, "ord-4", 10 * MINUTE)
    side.services_are_up()
    side.run(10 * MINUTE)
    return [*seen, *(side.view(f"ord-{number}") for number in range(1, 5))]


def a_hold(side: Side) -> list[View]:
    side.hold("shipping", HOUR)
    side.submit("ord-1")
    return watched(side, "ord-1", MINUTE, 50 * MINUTE, 20 * MINUTE)


def a_held_order_is_cancelled(side: Side) -> list[View]:
    side.hold("shipping", HOUR)
    side.submit("ord-1")
    side.run(MINUTE)
    side.cancel("ord-1")
    return watched(side, "ord-1", 5 * MINUTE)


def an_order_is_cancelled_midway(side: Side) -> list[View]:
    side.service_is_down("shipping")
    side.submit("ord-1")
    seen = watched(side, "ord-1", MINUTE)
    side.cancel("ord-1")
    seen += watched(side, "ord-1", 5 * MINUTE)
    side.services_are_up()
    return seen + watched(side, "ord-1", 10 * MINUTE)


def an_agent_dies(agent: str) -> Story:
    def story(side: Side) -> list[View]:
        side.agent_dies(agent)
        side.submit("ord-1")
        return watched(side, "ord-1", SECOND, 10 * MINUTE)

    return story


def the_scheduler_is_down(side: Side) -> list[View]:
    side.submit("ord-1")
    side.scheduler_is_down(3 * HOUR)
    side.submit("ord-2")
    return [*watched(side, "ord-1", 10 * MINUTE), *watched(side, "ord-2", SECOND)]


def the_tables_are_down(lasts: timedelta) -> Story:
    def story(side: Side) -> list[View]:
        side.submit("ord-1")
        side.tables_are_down(lasts)  # ends between two deliveries, which are a minute apart
        seen = watched(side, "ord-1", SECOND, 10 * MINUTE)
        side.redrive()
        return seen + watched(side, "ord-1", 10 * MINUTE)

    return story


def the_tables_are_restored(side: Side) -> list[View]:
    side.hold("shipping", HOUR)
    side.submit("ord-1")
    seen = watched(side, "ord-1", MINUTE)
    side.backup()
    side.run(10 * MINUTE)
    side.cancel("ord-1")
    seen += watched(side, "ord-1", 10 * MINUTE)
    side.restore()
    seen += watched(side, "ord-1", SECOND)
    return seen + watched(side, "ord-1", 2 * HOUR)


def an_answer_comes(side: Side) -> list[View]:
    side.follow(with_answers)
    side.asks("shipping", HOUR)
    side.submit("ord-1")
    seen = watched(side, "ord-1", MINUTE, 5 * MINUTE)
    side.answer("ord-1", "shipping")
    return seen + watched(side, "ord-1", MINUTE)


def an_answer_to_the_first_attempt_comes_during_the_second(side: Side) -> list[View]:
    side.follow(with_answers)
    side.asks("shipping", 4 * MINUTE)
    side.submit("ord-1")
    seen = watched(side, "ord-1", 3 * MINUTE, 3 * MINUTE)
    side.answer("ord-1", "shipping", asked=1)
    return seen + watched(side, "ord-1", MINUTE, 5 * MINUTE)


def an_answer_comes_when_the_order_is_undone(side: Side) -> list[View]:
    side.follow(with_answers)
    side.asks("shipping", 4 * MINUTE)
    side.submit("ord-1")
    seen = watched(side, "ord-1", 6 * MINUTE, 6 * MINUTE)
    side.answer("ord-1", "shipping", asked=2)
    return seen + watched(side, "ord-1", 5 * MINUTE)


def archived_orders_are_resubmitted(mended: bool) -> Story:
    def story(side: Side) -> list[View]:
        orders = [f"ord-{number}" for number in range(1, 6)]
        side.service_refuses("mail", "AddressUnknown")
        side.submit(*orders)
        seen = watched(side, "ord-1", MINUTE)
        if mended:
            side.services_are_up()
        side.resubmit_in_bulk(orders, Terms(canary=2))
        side.run(4 * MINUTE)
        return [*seen, side.bulk_view(), *map(side.view, orders)]

    return story


def a_deadline_and_an_outage(lasts: timedelta) -> Story:
    def story(side: Side) -> list[View]:
        side.follow(with_deadline)
        side.service_is_down("shipping")
        side.submit("ord-1")
        seen = watched(side, "ord-1", lasts)
        side.services_are_up()
        return seen + watched(side, "ord-1", 10 * MINUTE)

    return story


def a_deadline_passes_during_a_hold(side: Side) -> list[View]:
    side.follow(with_deadline)
    side.hold("shipping", 20 * MINUTE)
    side.submit("ord-1")
    return watched(side, "ord-1", 9 * MINUTE, 5 * MINUTE, 10 * MINUTE)


def the_scheduler_is_behind(side: Side) -> list[View]:
    """A reply waits for 48 s, and a step has 30: no order is undone for it."""
    orders = [f"ord-{number}" for number in range(1, 13)]
    side.scheduler_takes(4 * SECOND)
    side.follow(with_one_attempt)
    side.submit(*orders)
    seen = watched(side, "ord-1", MINUTE, MINUTE)
    side.run(8 * MINUTE)
    ends = [side.view(order_id) for order_id in orders]
    assert all(end["state"] == "Completed" for end in ends), ends
    return seen + ends


def lines_and_a_condition_are_undone(side: Side) -> list[View]:
    side.follow(with_lines)
    side.hold("shipping", 2 * MINUTE)
    side.service_refuses("shipping", "AddressUndeliverable")
    side.submit("small", prices=("9.90", "19.90", "29.90"))
    side.submit("large", prices=("99.90", "19.90"))
    seen = [*watched(side, "small", MINUTE), *watched(side, "large", SECOND)]
    return [*seen, *watched(side, "small", 5 * MINUTE), *watched(side, "large", SECOND)]


@pytest.mark.parametrize(
    "story",
    [
        an_order_completes,
        a_card_is_declined,
        a_hold,
        a_held_order_is_cancelled,
        pytest.param(an_outage("payment", 10 * MINUTE), id="a service is down for ten minutes"),
        an_order_is_cancelled_midway,
        an_answer_comes,
        pytest.param(
            an_answer_to_the_first_attempt_comes_during_the_second, marks=pytest.mark.verify
        ),
        pytest.param(an_answer_comes_when_the_order_is_undone, marks=pytest.mark.verify),
        pytest.param(
            archived_orders_are_resubmitted(mended=True),
            id="archived orders are resubmitted",
            marks=pytest.mark.verify,
        ),
        pytest.param(
            archived_orders_are_resubmitted(mended=False),
            id="archived orders are resubmitted, and the canary fails again",
            marks=pytest.mark.verify,
        ),
        a_deadline_passes_during_a_hold,
        pytest.param(
            a_deadline_and_an_outage(6 * MINUTE),
            id="a deadline does not pass",
            marks=pytest.mark.verify,
        ),
        pytest.param(
            a_deadline_and_an_outage(12 * MINUTE),
            id="a deadline passes",
            marks=pytest.mark.verify,
        ),
        pytest.param(the_scheduler_is_behind, marks=pytest.mark.verify),
        lines_and_a_condition_are_undone,
        pytest.param(the_tables_are_down(10.5 * MINUTE), id="the tables are down for ten minutes"),
        pytest.param(
            the_tables_are_down(4 * HOUR),
            id="the tables are down for longer than messages are delivered",
            marks=pytest.mark.verify,
        ),
        pytest.param(the_scheduler_is_down, marks=pytest.mark.verify),
        pytest.param(the_tables_are_restored, marks=pytest.mark.verify),
        *(
            pytest.param(
                an_agent_dies(agent),
                id=f"the agent {agent} dies with its answer",
                marks=pytest.mark.verify,
            )
            for agent in AGENTS
        ),
        pytest.param(an_outage_while_orders_come, marks=pytest.mark.verify),
    ],
)
def test_a_story_has_the_same_ends_in_memory_and_on_moto(
    story: Story, world: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert story(InMemory()) == story(OnMoto(world, monkeypatch))


@pytest.fixture
def world_of_slow_circuits(roundsman_services: Services, roundsman_clock: Clock) -> Iterator[Stack]:
    """One that tries a service which is down every five minutes: hours of it cost little."""
    parameters = {
        **of_each_agent("BreakerRecoverySeconds", "300"),
        "Engine.SupervisorIntervalSeconds": "300",
        "Engine.DueShards": "1",
    }
    with deployed_project(roundsman_services, roundsman_clock, parameters) as made:
        yield made


@pytest.mark.parametrize("agent", [pytest.param(one, marks=pytest.mark.verify) for one in AGENTS])
def test_an_order_whose_service_is_down_for_three_hours_has_the_same_ends(
    agent: str, world_of_slow_circuits: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = an_outage(agent, 3 * HOUR)
    in_memory = InMemory(Circuit(recovers_after=5 * MINUTE), interval=5 * MINUTE)
    assert story(in_memory) == story(OnMoto(world_of_slow_circuits, monkeypatch))
