"""Simulates a stack in an account whose quota is smaller than the sum of the stack's caps.

The whole of Roundsman runs in a `World`. Each event source mapping reads messages for as many
instances as its cap allows, and Lambda refuses each call beyond the quota of the account. A
message whose call was refused is hidden for the whole visibility timeout of its queue, and counts
as received, which is the worst that Lambda does: it tries again within that time.
"""

from dataclasses import dataclass
from datetime import timedelta

from roundsman.definition.workflow import Compensation, Retry, Step, Undo, Workflow
from roundsman.model.states import TaskState
from roundsman_testing import FOR_EVER, Capacity, World
from roundsman_testing.world.capacity import SCHEDULER, SUBMISSION, SUPERVISOR

AGENTS = ("inventory", "payment", "shipping", "mail")
NEW_ACCOUNT = 10
"""The quota of a new account."""
LEAST = 2
"""The least cap that Lambda allows for an event source mapping."""
CHECK_EVERY = 10_000


@dataclass(frozen=True)
class Cell:
    """The parameters of one simulation."""

    orders: int
    apart: float = 0
    """The time between two orders, in s."""
    quota: int = NEW_ACCOUNT
    cap: int = LEAST
    """The cap of each event source mapping."""
    call: float = 2
    """The time of a call of a service, in s."""
    within: int = 30
    """The steps' time limit (`complete_within`) in s."""
    attempts: int | None = None
    """How often a step is tried; None for the default, 15 minutes at least."""
    cold: float = 0.5
    """The time of an invocation of the engine, in s."""


@dataclass(frozen=True)
class Found:
    """The results of a cell."""

    completed: int
    counted: int
    """The number of attempts that were counted as failed."""
    throttled: int
    dead: int
    """The number of dead letters."""
    took: timedelta


def caps_of(cell: Cell) -> dict[str, Capacity]:
    """The capacity of each function: the sum of the caps of its event source mappings."""
    takes = timedelta(seconds=cell.cold)
    return {
        SUBMISSION: Capacity(cell.cap, takes, 10),
        SCHEDULER: Capacity(cell.cap * (1 + len(AGENTS)), takes, 10),
        SUPERVISOR: Capacity(1, takes),
        **{agent: Capacity(cell.cap, takes, urgent=cell.cap) for agent in AGENTS},
    }


def simulated(cell: Cell) -> Found:
    """Simulate a cell until nothing is left to happen."""
    steps: list[Step] = []
    for agent in AGENTS:
        step = Step(
            name=f"by_{agent}",
            agent=agent,
            after=tuple(steps[-1:]),
            complete_within=timedelta(seconds=cell.within),
            retry=Retry() if cell.attempts is None else Retry(max_attempts=cell.attempts),
            compensation=Compensation(),
        )
        steps.append(step)
    workflow = Workflow(
        name="small",
        steps=tuple(steps),
        complete_within=timedelta(days=2),
        on_failure=Undo(),
        retain_for=timedelta(days=30),
    )
    world = World(workflow, capacity=caps_of(cell), account=cell.quota)
    world.check_every = CHECK_EVERY
    began = world.now
    for step in steps:
        world.on(step.name).takes(timedelta(seconds=cell.call), FOR_EVER)
    sent = []
    for _ in range(cell.orders):
        sent.append(world.submit())
        if cell.apart:
            world.run(for_=timedelta(seconds=cell.apart))
    tasks = world.processes.watch.tasks
    world.run(until=lambda: len(tasks) == cell.orders and not world.processes.watch.due)
    return Found(
        completed=sum(tasks[order].state is TaskState.COMPLETED for order in sent),
        counted=sum(
            row.kind in ("failed", "requeued") for order in sent for row in world.history(order)
        ),
        throttled=world.functions.throttled.total(),
        dead=len(world.queues.dead),
        took=timedelta(milliseconds=world.now - began),
    )
