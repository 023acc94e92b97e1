"""Simulates a scheduler that is behind, or down, or whose supervisor is down.

The whole of Roundsman runs in a `World`, with the real submission, scheduler, supervisor and
agents. The scheduler has a capacity: so many instances read so many messages at once, and each
message takes its time. Calls to services are quick and succeed, so every order is healthy: one that
does not complete has failed because of the backlog.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta

from roundsman.definition.workflow import Compensation, Retry, Step, Undo, Workflow
from roundsman.model.states import TaskState
from roundsman.wire.commands import read_command
from roundsman_testing import FOR_EVER, Capacity, World
from roundsman_testing.world.capacity import SCHEDULER
from roundsman_testing.world.queues import COMMANDS, REPLIES

AGENT = "worker"
ORDERS_LAST = timedelta(days=1)
CALL_TAKES = timedelta(seconds=2)
STEADY_FOR = timedelta(minutes=5)
ENOUGH = 3
"""A run ends when the scheduler has read this many times the ideal, since it feeds its backlog."""
CHECK_EVERY = 10_000


@dataclass(frozen=True)
class Cell:
    """The parameters of one simulation."""

    within: int = 30
    """The steps' time limit (`complete_within`) in s."""
    times: float = 1
    """The orders that arrive, in multiples of those that the scheduler handles in a minute."""
    steady: bool = False
    """Whether `times` as many arrive in each of five minutes; otherwise all at once."""
    instances: int = 1
    batch: int = 1
    takes: float = 0.5
    """The time of one message, in s."""
    max_attempts: int = 3
    fenced: bool = True
    steps: int = 3
    limited: str = SCHEDULER
    """The function that has the capacity."""
    down: tuple[str, ...] = ()
    """The functions that are down for `minutes`, when half of the orders are under way."""
    minutes: int = 0

    @property
    def orders(self) -> int:
        read = 1 + self.steps if self.limited == SCHEDULER else 1
        a_minute = 60 * self.instances / self.takes / read
        return round(a_minute * self.times * (STEADY_FOR.seconds / 60 if self.steady else 1))

    @property
    def capacity(self) -> Capacity:
        return Capacity(self.instances, timedelta(seconds=self.takes * self.batch), self.batch)

    @property
    def workflow(self) -> Workflow:
        steps: list[Step] = []
        for number in range(self.steps):
            step = Step(
                name=f"s{number}",
                agent=AGENT,
                after=tuple(steps[-1:]),
                complete_within=timedelta(seconds=self.within),
                retry=Retry(max_attempts=self.max_attempts),
                compensation=Compensation(fences_late_performs=self.fenced),
            )
            steps.append(step)
        return Workflow(
            name="behind", steps=tuple(steps), complete_within=ORDERS_LAST, on_failure=Undo()
        )


@dataclass(slots=True)
class Found:
    """The results of a cell."""

    orders: int
    steps: int
    completed: int = 0
    counted: int = 0
    """The number of attempts that were counted as failed."""
    requests: int = 0
    """The requests that were sent; each step needs one."""
    read: int = 0
    """The messages that the scheduler read: its invocations, if each reads one."""
    waiting: Counter[str] = field(default_factory=Counter)
    """The messages that waited for the scheduler at the end of an outage, by kind."""
    open: int = 0
    """The orders that were open at that time."""

    @property
    def failed(self) -> int:
        return self.orders - self.completed

    @property
    def ideal(self) -> int:
        """The messages that the scheduler needs: one for each order, and one for each step."""
        return (1 + self.steps) * self.orders

    @property
    def effort(self) -> float:
        """The messages that the scheduler read, in multiples of the ideal."""
        return self.read / self.ideal


def simulated(cell: Cell) -> Found:
    """Simulate a cell until its orders have ended, or the backlog feeds itself without end."""
    world = World(cell.workflow, capacity={cell.limited: cell.capacity})
    world.check_every = CHECK_EVERY
    found = Found(cell.orders, cell.steps)
    sent = list[str]()
    watch, read = world.processes.watch, world.functions.read
    if cell.down:
        for number in range(cell.steps):
            world.on(f"s{number}").takes(CALL_TAKES, FOR_EVER)
        sent += _arrive(world, cell.orders // 2, timedelta(seconds=5))
        _go_down(world, cell, found, sent)
    else:
        span = STEADY_FOR if cell.steady else timedelta()
        sent += _arrive(world, cell.orders, span)
    world.run(
        until=lambda: (
            (len(watch.tasks) == cell.orders and not watch.due)
            or read[SCHEDULER] > ENOUGH * found.ideal
        )
    )
    found.completed = sum(
        order in watch.tasks and watch.tasks[order].state is TaskState.COMPLETED for order in sent
    )
    found.counted = sum(
        row.kind in ("failed", "requeued") for order in sent for row in world.history(order)
    )
    found.read, found.requests = read[SCHEDULER], read[AGENT]
    return found


def _arrive(world: World, orders: int, span: timedelta) -> Iterator[str]:
    for _ in range(orders):
        yield world.submit()
        if span:
            world.run(for_=span / orders)


def _go_down(world: World, cell: Cell, found: Found, sent: list[str]) -> None:
    """Let functions be down, while the other half of the orders arrives."""
    lasts = timedelta(minutes=cell.minutes)
    for function in cell.down:
        world.down(function, lasts)
    span = lasts / 2
    sent += _arrive(world, cell.orders - len(sent), span)
    world.run(for_=lasts - span - timedelta(seconds=1))
    found.open = len(world.processes.watch.open_tasks())
    found.waiting = Counter(
        read_command(mail.body).kind if mail.queue == COMMANDS else mail.queue
        for mail in world.queues.visible()
        if mail.queue in (COMMANDS, REPLIES)
    )
