"""Simulates a scheduler that is behind, or down, or whose supervisor is down.

The whole of Roundsman runs in a `World`, with the real submission, scheduler, supervisor and
agents. The scheduler has a capacity: so many instances read so many messages at once, and each
message takes its time. Calls to services are quick and succeed, so every order is healthy: one that
does not complete has failed because of the backlog.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import cycle, product
from pathlib import Path

from benchmarks.plot import Bar, stacked
from benchmarks.report import Table, amount
from roundsman.model.json import Json
from roundsman.model.states import TaskState
from roundsman.model.workflow import Compensation, Retry, Step, Undo, Workflow
from roundsman.testing import FOR_EVER, Capacity, World
from roundsman.testing.world.capacity import SCHEDULER, SUBMISSION, SUPERVISOR
from roundsman.testing.world.queues import COMMANDS, REPLIES
from roundsman.wire.commands import INSPECT, START, read_command

AGENT = "worker"
ORDERS_LAST = timedelta(days=1)
CALL_TAKES = timedelta(seconds=2)
STEADY_FOR = timedelta(minutes=5)
ENOUGH = 3
"""A run ends when the scheduler has read this many times the ideal, since it feeds its backlog."""
CHECK_EVERY = 10_000
MOST_ORDERS = 500
"""Larger cells are left out: they take long, and wait no longer."""
PLOT = Path(__file__).parents[1] / "results" / "behind.svg"
TITLE = "Orders whose scheduler is behind or down: a step may take 10, 30 and 300 s"
HEADINGS = (
    *("what happens", "orders", "failed", "attempts counted", "requests of the ideal"),
    *("messages of the ideal", "at most"),
)
DOWN_TITLE = "What waits at the end of the outage, for each open order"
DOWN_HEADINGS = ("what happens", "open orders", "Starts", "Inspects", "replies")


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


SIZES = [(1, 1, 0.5), (1, 1, 0.1), (4, 1, 0.5), (10, 1, 1.0), (1, 10, 0.5), (10, 10, 1.0)]
VARIANTS = [(1, True, 3), (3, True, 4), (1, False, 4), (3, False, 3)]
OUTAGES = [
    ((SCHEDULER,), 10),
    ((SCHEDULER,), 60),
    ((SUPERVISOR,), 60),
    ((SCHEDULER, SUPERVISOR), 60),
]


def kinds() -> Iterator[tuple[str, list[Cell]]]:
    """Yield the simulations by what happens to the scheduler."""
    variants = cycle(VARIANTS)
    for (times, steady), within in product(
        [(1, False), (3, False), (10, False), (1.5, True)], (10, 30, 300)
    ):
        cells = [
            Cell(within, times, steady, *size, *variant)
            for size, variant in zip(SIZES, variants, strict=False)
        ]
        how = f"{times} a minute's, {'steady' if steady else 'at once'}, {within} s"
        yield how, [cell for cell in cells if cell.orders <= MOST_ORDERS]
    slow = [Cell(within, 3, takes=0.2, limited=SUBMISSION) for within in (10, 30, 300)]
    yield "submission, 3 a minute's", slow
    for down, minutes in OUTAGES:
        quick = Cell(times=0.5, instances=4, takes=0.5, down=down, minutes=minutes)
        cells = [replace(quick, within=within) for within in (10, 30, 300)]
        cells = [
            replace(cell, max_attempts=most, fenced=fenced, steps=steps)
            for cell in cells
            for most, fenced, steps in VARIANTS[:2]
        ]
        yield f"{down[0] if len(down) == 1 else 'both'} down, {minutes} min", cells


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


def measure(say: Callable[[str], None]) -> tuple[list[Table], dict[str, Json]]:
    """Simulate all; return the tables of all and of what waits after an outage, and a document.

    Writes the plot.
    """
    rows, after, document = list[list[str]](), list[list[str]](), dict[str, Json]()
    for name, cells in kinds():
        say(f"overload: {name}")
        found = [simulated(cell) for cell in cells]
        rows.append([name, *_row(found)])
        document[name] = dict(zip(HEADINGS[1:], rows[-1][1:], strict=True))
        if open_then := sum(each.open for each in found):
            waiting = sum((each.waiting for each in found), Counter[str]())
            shares = (waiting[kind] / open_then for kind in (START, INSPECT, REPLIES))
            after.append([name, amount(open_then), *(f"{share:.2f}" for share in shares)])
    PLOT.write_text(plot(document), encoding="utf-8")
    return [Table(TITLE, HEADINGS, rows), Table(DOWN_TITLE, DOWN_HEADINGS, after)], document


def _row(found: Sequence[Found]) -> list[str]:
    orders = sum(each.orders for each in found)
    steps = sum(each.orders * each.steps for each in found)
    return [
        amount(orders),
        amount(sum(each.failed for each in found)),
        amount(sum(each.counted for each in found)),
        f"{sum(each.requests for each in found) / steps:.2f}",
        f"{sum(each.read for each in found) / sum(each.ideal for each in found):.2f}",
        f"{max(each.effort for each in found):.2f}",
    ]


def plot(results: Mapping[str, Json]) -> str:
    """Return a plot of the messages that the scheduler reads, for each kind of backlog."""
    part = "messages of the ideal"
    bars = [
        Bar(name, {part: float(str(row[part]))})
        for name, row in results.items()
        if isinstance(row, Mapping)
    ]
    return stacked("Messages that a scheduler which is behind reads: 1 is one and the steps", bars)
