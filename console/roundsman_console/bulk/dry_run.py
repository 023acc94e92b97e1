"""Which orders a bulk run acts on, and what would become of them: looked at, and nothing sent."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from roundsman.aws.clock import now
from roundsman.errors import SchemaTooNew, UnreadableRecord
from roundsman.model.failure import normalised
from roundsman.model.states import TaskState
from roundsman.model.task import Task
from roundsman_console.bulk.assess import Eligible, NotFor, held_for, hold_sentence, judged
from roundsman_console.bulk.run import SAMPLES, OrderGroup, Run, with_one
from roundsman_console.cli_errors import NOT_FOUND, USAGE, ConsoleError
from roundsman_console.read.lookup import find_task, plan_of
from roundsman_console.read.selection import Selection, find
from roundsman_console.read.stack import DeployedStack

MOST = 100_000
"""Orders of one run; their ids, and when each was to be complete, are held in memory."""

MOST_LOOKED_AT = 1_000_000
PAGE, PAGE_BUDGET = 1_000, 5_000

TRIED_OUT = 1_000
"""How many orders a dry run judges, the first of the plan: a few seconds of reading."""

AT_ONCE = 100  # what one request to DynamoDB reads

Tell = Callable[[str], None]


def choose(
    stack: DeployedStack, selection: Selection, named: Sequence[str], tell: Tell
) -> list[str]:
    """The ids of the orders that are meant, in the order in which they are acted on.

    That is by when they were to be complete: the promise that was made first is kept first. It is
    known of a member of a failure group without reading its task. `tell` is called with how far
    the search has come. Raises ConsoleError where there are none, or too many.
    """
    found = dict(_named(stack, named) if named else _found(stack, selection, tell))
    if not found:
        if _is_group(selection):
            raise ConsoleError(
                f"No order stands in {selection.group}. Which groups there are: roundsman groups",
                NOT_FOUND,
            )
        raise ConsoleError("No order fits the filter. Look with: roundsman ls", NOT_FOUND)
    return sorted(found, key=lambda order: (found[order], order))


def _named(stack: DeployedStack, orders: Sequence[str]) -> list[tuple[str, int]]:
    return [(order, find_task(stack, order)[0].complete_by) for order in dict.fromkeys(orders)]


def _found(stack: DeployedStack, selection: Selection, tell: Tell) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    if _is_group(selection) and selection.group:
        for member in stack.members(selection.group):
            found.append((member.task_id, member.complete_by))
            _check_size(len(found))
            tell(f"{len(found)} orders found")
        return found
    looked, cursor = 0, None
    while True:
        page = find(stack, selection, after=cursor, limit=PAGE, budget=PAGE_BUDGET)
        found += [(task.task_id, task.complete_by) for task in page.tasks]
        looked, cursor = looked + page.looked_at, page.cursor
        _check_size(len(found))
        if cursor is None:
            return found
        if looked > MOST_LOOKED_AT:
            raise ConsoleError(
                f"More than {MOST_LOOKED_AT} tasks were looked at: narrow the filter."
            )
        tell(f"{looked} tasks looked at, {len(found)} orders found")


def _is_group(selection: Selection) -> bool:
    """Whether a failure group is all that was asked for."""
    return selection == Selection(group=selection.group)


def _check_size(orders: int) -> None:
    if orders > MOST:
        raise ConsoleError(f"More than {MOST} orders are meant: narrow the filter.")


def check_bounded(selection: Selection, *, again: bool) -> None:
    """That the filter says enough. Raises ConsoleError."""
    if selection.group is None and selection.state is None:
        hint = "--state Undone" if again else "--state Archived"
        raise ConsoleError(f"Many orders are meant by --group, or by --state: {hint}.", USAGE)
    if selection.state is TaskState.COMPLETED:
        raise ConsoleError("What is Completed is settled: no command is heard there.", USAGE)


@dataclass(frozen=True, slots=True)
class Tried:
    """What would become of the first `looked_at` orders. `held` are those that would only wait."""

    selected: int
    looked_at: int = 0
    eligible: int = 0
    samples: tuple[str, ...] = ()
    refused: tuple[OrderGroup, ...] = ()
    held: tuple[OrderGroup, ...] = ()


def try_out(stack: DeployedStack, run: Run, orders: Sequence[str], tell: Tell) -> Tried:
    """Judge the first orders of a plan by the machine, and send nothing."""
    holds = stack.holds.holds()
    looked = orders[:TRIED_OUT]
    samples: list[str] = []
    eligible = 0
    refused: tuple[OrderGroup, ...] = ()
    held: tuple[OrderGroup, ...] = ()
    for first in range(0, len(looked), AT_ONCE):
        part = looked[first : first + AT_ONCE]
        for order, found in judge_all(stack, run, part):
            if isinstance(found, NotFor):
                refused = with_one(refused, normalised(found.why), found.why, order)
                continue
            eligible += 1
            samples = [*samples, order][:SAMPLES]
            hold = held_for(found, holds)
            if hold is not None:
                said = hold_sentence(hold)
                held = with_one(held, said, said, order)
        tell(f"{first + len(part)} of {len(looked)} orders looked at")
    return Tried(len(orders), len(looked), eligible, tuple(samples), refused, held)


def judge_all(
    stack: DeployedStack, run: Run, orders: Sequence[str]
) -> list[tuple[str, Eligible | NotFor]]:
    """Each order, and whether the run's command makes sense for it as it is now."""
    at = now()
    loaded = stack.records.load_many(orders, at)
    told: list[tuple[str, Eligible | NotFor]] = []
    for order in orders:
        found = judge_one(stack, run, loaded.tasks.get(order), loaded.unreadable.get(order), at)
        told.append((order, found))
    return told


def judge_one(
    stack: DeployedStack, run: Run, task: Task | None, unreadable: str | None, at: int
) -> Eligible | NotFor:
    """Whether the run's command makes sense for the task; `unreadable` says why it cannot be read.

    A record or a plan that cannot be read is a reason not to act on that order, and on no other.
    """
    if unreadable is not None:
        return NotFor(unreadable)
    try:
        plan = None if task is None else plan_of(stack, task)
    except (SchemaTooNew, UnreadableRecord) as problem:
        return NotFor(str(problem))
    return judged(run, plan, task, at)
