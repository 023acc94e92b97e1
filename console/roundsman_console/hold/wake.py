"""Waking the tasks with parked steps after a hold was released, at a limited rate.

The engine checks the hold of each parked step every few minutes (RECHECK_INTERVAL), so a failure
here loses nothing: waking only makes the tasks continue sooner. The tasks are found in the open
lanes of the due index.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

from roundsman.aws.clock import now
from roundsman.definition.plan import Plan
from roundsman.engine.agent_holds import MAX_VIEW_AGE, RECHECK_INTERVAL
from roundsman.engine.due import Lane, lane_key
from roundsman.errors import RoundsmanError
from roundsman.model.holds import Hold, is_in_share
from roundsman.model.instants import SECOND
from roundsman.model.task import PERFORM, Task
from roundsman_console.errors import InspectorError, Interrupted
from roundsman_console.hold.documents import WokenDocument
from roundsman_console.order.lookup import plan_of
from roundsman_console.orders.task_records import END_OF_TIME
from roundsman_console.stack.stack import DeployedStack
from roundsman_console.threads import map_in_threads

HOLDS_ARE_KNOWN_AFTER = MAX_VIEW_AGE + SECOND
"""The time in ms from a release to the first wake-up. A scheduler's view of the holds
is up to MAX_VIEW_AGE old, so it does not resume a step that was parked more recently than that."""

GOES_ON_WITHIN = RECHECK_INTERVAL
"""The time in ms after which a parked step goes on by itself, without being woken."""

A_SECOND = 10
"""The number of tasks that are woken per second, so that no agent is overloaded."""

AT_ONCE = 50  # the number of tasks in a batch; a batch is read before its messages are sent
FIRST = 500
"""The number of woken tasks whose ids are kept, to see what becomes of them."""

READERS = 8  # concurrent reads, so that reading many open tasks is no slower than waking them


class HoldRelease(Protocol):
    """The end of a hold, or of a part of it."""

    @property
    def first_wake(self) -> int:
        """The earliest instant (epoch ms) at which it is useful to wake waiting tasks."""

    def waits(self, task: Task, plan: Plan | None) -> bool:
        """Whether the task waited for the hold, and goes on now."""


@dataclass(frozen=True, slots=True)
class Woken:
    """How many tasks were examined and woken."""

    looked: int = 0
    """The number of open tasks that were examined."""
    woken: int = 0
    """The number of tasks with a step that waited for the hold, to which an `inspect` was sent."""
    unread: int = 0
    """The number of tasks that could not be read."""
    whole: bool = False
    """Every open task was examined."""
    first: tuple[str, ...] = ()
    """The ids of the first FIRST tasks that were woken, without those in a failure group."""

    def document(self) -> WokenDocument:
        """Return it as JSON for scripts."""
        return {
            "looked": self.looked,
            "woken": self.woken,
            "unread": self.unread,
            "whole": self.whole,
        }


def wake_released(
    stack: DeployedStack, release: HoldRelease, progress: Callable[[Woken], None]
) -> tuple[Woken, str | None]:
    """Wake the open tasks that waited for what was released.

    `progress` is called after each batch, with the tasks woken so far. Ends after RECHECK_INTERVAL,
    because by then the engine has checked every parked step. Returns the progress, and the error of
    AWS or of a record that stopped it; None if there was none. The release stands in any case.
    Raises Interrupted on Ctrl-C; its `result` is the progress (Woken).
    """
    reached = Woken()

    def note(woken: Woken) -> None:
        nonlocal reached
        reached = woken
        progress(woken)

    try:
        return _wake(stack, release, note), None
    except InspectorError:
        raise
    except RoundsmanError as error:
        return reached, str(error)
    except KeyboardInterrupt as error:
        raise Interrupted(
            f"Interrupted after {reached.woken} tasks were woken.", reached
        ) from error


def _wake(stack: DeployedStack, release: HoldRelease, progress: Callable[[Woken], None]) -> Woken:
    first, end, found = release.first_wake, now() + RECHECK_INTERVAL, Woken()
    outbox, ids = stack.outbox(), open_tasks(stack)
    while part := list(islice(ids, AT_ONCE)):
        looks = map_in_threads(READERS, lambda one: _looks(stack, one, release), part)
        waiting = [one for one, look in zip(part, looks, strict=True) if look.waits]
        failing = {one for one, look in zip(part, looks, strict=True) if look.fails}
        fitting = ramp(waiting, first, found.woken, end)
        at_once = now()
        outbox.send_inspects([(one, at - at_once) for one, at in fitting])
        found = replace(
            found,
            looked=found.looked + len(part),
            woken=found.woken + len(fitting),
            unread=found.unread + sum(look.waits is None for look in looks),
            first=(*found.first, *(one for one, _ in fitting if one not in failing))[:FIRST],
        )
        progress(found)
        if len(fitting) < len(waiting) or now() >= end:
            return found
    return replace(found, whole=True)


def ramp(waiting: list[str], first: int, before: int, end: int) -> list[tuple[str, int]]:
    """Return the tasks with the instants (epoch ms) to wake them, A_SECOND tasks per second.

    `before` tasks were woken already. Tasks that would be woken after `end` are left out.
    """
    moments = (first + (before + place) * SECOND // A_SECOND for place in range(len(waiting)))
    return [(one, at) for one, at in zip(waiting, moments, strict=True) if at <= end]


def waits_for(task: Task, plan: Plan | None, agent: str) -> bool:
    """Whether the task has a parked step that is at the agent or may go to it."""
    steps = plan.steps if plan else {}
    return any(
        record.agent == agent or (name in steps and agent in steps[name].agents)
        for name, record in task.steps.items()
        if record.held_since is not None
    )


def goes_on(task: Task, before: Hold, share: int) -> bool:
    """Whether a step of the task waited for the hold on orders and goes on with this share."""
    if not before.holds_order(task.workflow, task.task_id):
        return False
    ending = task.ending is not None
    return is_in_share(task.task_id, share) and any(
        record.held_since is not None
        and record.may_begin(ending=ending)
        and (record.operation == PERFORM or before.undos)
        for record in task.steps.values()
    )


@dataclass(frozen=True, slots=True)
class _Look:
    """What was seen of an open task."""

    waits: bool | None
    """Whether it waits for the hold; None if it cannot be read."""
    fails: bool = False
    """Whether it is in a failure group."""


def _looks(stack: DeployedStack, task_id: str, release: HoldRelease) -> _Look:
    try:
        task = stack.tasks.load(task_id, now())
        if task is None:
            return _Look(waits=False)
        return _Look(release.waits(task, plan_of(stack, task)), task.failure is not None)
    except RoundsmanError:
        return _Look(waits=None)


def open_tasks(stack: DeployedStack) -> Iterator[str]:
    """Yield the ids of all open tasks."""
    for shard in stack.every_shard:
        for entry in stack.tasks.due(lane_key(Lane.OPEN, shard), END_OF_TIME):
            yield entry.task_id
