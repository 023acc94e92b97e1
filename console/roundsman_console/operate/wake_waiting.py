"""Waking the tasks that wait for an agent once it takes work again, spread over time.

Each waiting step looks again by itself every few minutes, so nothing here must succeed: it only
makes the tasks go on sooner. They are found as `roundsman ls` finds them, by the open lanes.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import islice

from roundsman.aws.clock import now
from roundsman.aws.sqs.outbox import AwsOutbox
from roundsman.engine.agent_holds import MAX_VIEW_AGE, RECHECK_INTERVAL
from roundsman.engine.due import Lane, lane_key
from roundsman.errors import RoundsmanError
from roundsman.model.instants import SECOND
from roundsman.model.plan import Plan
from roundsman.model.task import Task
from roundsman_console.read.lookup import plan_of
from roundsman_console.read.stack import DeployedStack
from roundsman_console.read.task_records import END_OF_TIME

HOLDS_ARE_KNOWN_AFTER = MAX_VIEW_AGE + SECOND
"""A scheduler's view of the holds is some seconds old: of a step that was held later than this ago
it does not believe yet that its hold is over."""

A_SECOND = 10
"""How many tasks are woken in a second: an agent that begins anew is not run over."""

AT_ONCE = 50  # tasks that are read before messages are sent to those that wait
READERS = 8  # reads at once: a walk over many open tasks is then no slower than the ramp


@dataclass(frozen=True, slots=True)
class Woken:
    """How far the walk came: of `looked` open tasks, `woken` waited and were sent a message.

    `unread` could not be read. `whole` says that no open task was left out.
    """

    looked: int = 0
    woken: int = 0
    unread: int = 0
    whole: bool = False


def wake(stack: DeployedStack, agent: str, first: int, tell: Callable[[Woken], None]) -> Woken:
    """Send an inspect to each task that waits for the agent, the first at `first` (epoch ms).

    `tell` is called after each part with how far it came. Ends early where RECHECK_INTERVAL is
    over: by then each has looked by itself. Raises TryAgain or CallRefused where the index or the
    queue cannot be used.
    """
    end, found = now() + RECHECK_INTERVAL, Woken()
    outbox = AwsOutbox(
        stack.sqs,
        scheduler_queue=stack.output("SchedulerQueueUrl"),
        reply_prefix=stack.output("ReplyQueuePrefix"),
    )
    ids = _open(stack)
    with ThreadPoolExecutor(READERS) as readers:
        while part := list(islice(ids, AT_ONCE)):
            looks = list(readers.map(lambda one: _looks(stack, one, agent), part))
            waiting = [one for one, waits in zip(part, looks, strict=True) if waits]
            fitting = ramp(waiting, first, found.woken, end)
            at_once = now()
            outbox.send_inspects([(one, at - at_once) for one, at in fitting])
            found = replace(
                found,
                looked=found.looked + len(part),
                woken=found.woken + len(fitting),
                unread=found.unread + looks.count(None),
            )
            tell(found)
            if len(fitting) < len(waiting) or now() >= end:
                return found
    return replace(found, whole=True)


def ramp(waiting: list[str], first: int, before: int, end: int) -> list[tuple[str, int]]:
    """Each task with the instant (epoch ms) to wake it, `before` of them being woken already.

    Those whose turn would come after `end` are left out.
    """
    moments = (first + (before + place) * SECOND // A_SECOND for place in range(len(waiting)))
    return [(one, at) for one, at in zip(waiting, moments, strict=True) if at <= end]


def waits_for(task: Task, plan: Plan | None, agent: str) -> bool:
    """Whether a step of it waits only because the agent, or another of the step's, is held."""
    steps = plan.steps if plan else {}
    return any(
        record.agent == agent or (name in steps and agent in steps[name].agents)
        for name, record in task.steps.items()
        if record.held_since is not None
    )


def _looks(stack: DeployedStack, task_id: str, agent: str) -> bool | None:
    """Whether the task waits for the agent; None where it cannot be read."""
    try:
        task = stack.tasks.load(task_id, now())
        return task is not None and waits_for(task, plan_of(stack, task), agent)
    except RoundsmanError:
        return None


def _open(stack: DeployedStack) -> Iterator[str]:
    """Every open task, whatever its shard."""
    for shard in stack.every_shard:
        for entry in stack.tasks.due(lane_key(Lane.OPEN, shard), END_OF_TIME):
            yield entry.task_id
