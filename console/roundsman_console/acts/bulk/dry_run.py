"""Choosing the orders of a bulk run, and checking their eligibility without sending anything."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from roundsman.aws.clock import now
from roundsman.definition.plan import Plan
from roundsman.engine.bulk_eligibility import (
    WOULD_WAIT,
    Eligible,
    NotFor,
    held_for,
    hold_sentence,
    judged,
)
from roundsman.errors import Refused, SchemaTooNew, UnreadableRecord
from roundsman.model.bulk_run import SAMPLES, OrderGroup, PlannedOrder, Run, with_one
from roundsman.model.credit import credited_now
from roundsman.model.events import Resubmit, UndoAsked
from roundsman.model.failure import normalised
from roundsman.model.holds import OPERATOR, Hold
from roundsman.model.json import Json
from roundsman.model.states import TaskState
from roundsman.model.task import Task
from roundsman_console.acts.bulk.completed import has_time_span, selects_completed
from roundsman_console.acts.changes import BulkPlanMove, InputChange
from roundsman_console.acts.order.corrections import check_correction, corrects
from roundsman_console.acts.order.newest_plan import (
    invalid_inputs,
    named_plan,
    newest_plan,
    plan_move,
    under_newest_plan,
)
from roundsman_console.acts.order.send import lost_signals_words
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.errors import (
    AgentOnHold,
    InspectorError,
    InvalidArgument,
    NotFound,
    RetentionOver,
    UnboundedSelection,
)
from roundsman_console.facts.order.lookup import find_task, plan_of
from roundsman_console.facts.orders.listing import find
from roundsman_console.facts.orders.selection import Selection

MOST = 100_000
"""The maximum number of orders in a run. Their ids and complete-bys are kept in memory."""

MOST_LOOKED_AT = 1_000_000
PAGE, PAGE_BUDGET = 1_000, 5_000

TRIED_OUT = 1_000
"""The maximum number of orders that a dry run assesses, the first ones of the run. Reading them
takes a few seconds."""

ENTRIES_A_UNIT = 80
"""How many entries of the index of due tasks one read unit reads: they have some 100 bytes."""

AT_ONCE = 100  # the maximum number of records in one BatchGetItem

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Choice:
    """The orders of a run."""

    orders: tuple[str, ...]
    """The ids, in the order in which the run reaches them."""
    examined: int = 0
    """The number of tasks that were examined to find them; 0 if no search was needed."""


def choose(
    stack: DeployedStack,
    selection: Selection,
    named: Sequence[str],
    progress: Progress,
    as_of: int | None = None,
) -> Choice:
    """Return the selected orders, sorted by complete-by, the earliest first.

    The selected orders are those in `named`, or, if it is empty, those that match the selection.
    Its ages are those at `as_of` (epoch ms), or now. Of completed orders, only those that had ended
    at `as_of` are selected. For members of a failure group, the complete-by is in the index, and no
    task is read. `progress` is called during the search with the orders found so far, in words.
    Raises NotFound if no order is selected, or if one that is named was never accepted, and
    InspectorError if more than MOST orders are, or if more than MOST_LOOKED_AT tasks were examined.
    """
    examined, orders = (
        (0, _named(stack, named, progress)) if named else _found(stack, selection, progress, as_of)
    )
    found = dict(orders)
    if not found:
        if _is_group(selection):
            raise NotFound(
                f"Failure group {selection.group} has no orders. List the groups with: "
                "roundsman groups",
            )
        raise NotFound("No order matches the filter. List the tasks with: roundsman ls")
    return Choice(tuple(sorted(found, key=lambda order: (found[order], order))), examined)


def choose_for(  # each says which orders, or how they are chosen
    stack: DeployedStack,
    run: Run,
    selection: Selection,
    named: Sequence[str],
    progress: Progress,
    *,
    newest_plan_asked: bool = False,
    as_of: int | None = None,
) -> tuple[Run, Choice]:
    """Choose the orders of a run, and return the run with their number, and the orders.

    With `newest_plan_asked`, the command names the newest plan of the workflow of the first order.
    Raises what `choose` raises, and InspectorError if the submission function does not know a
    newest plan.
    """
    chosen = choose(stack, selection, named, progress, as_of)
    # A completed order is taken back only by a command that names the version of its task.
    takes_back = isinstance(run.event, UndoAsked) and (bool(named) or selects_completed(selection))
    run = replace(run, selected=len(chosen.orders), pins_versions=takes_back)
    if newest_plan_asked:
        workflow = find_task(stack, chosen.orders[0])[0].workflow
        newest = newest_plan(stack, workflow).plan or ""
        run = replace(run, event=under_newest_plan(run.event, newest))
    return run, chosen


def _named(
    stack: DeployedStack, orders: Sequence[str], progress: Progress
) -> list[tuple[str, int]]:
    found: list[tuple[str, int]] = []
    named = list(dict.fromkeys(orders))
    for order in named:
        try:
            found.append((order, find_task(stack, order)[0].complete_by))
        except RetentionOver:  # it is refused with the others that are not possible
            found.append((order, 0))
        progress(f"{len(found)} of {len(named)} orders found")
    return found


def _found(
    stack: DeployedStack, selection: Selection, progress: Progress, as_of: int | None
) -> tuple[int, list[tuple[str, int]]]:
    """The number of tasks that were examined, and the orders with their complete-by."""
    found: list[tuple[str, int]] = []
    if _is_group(selection) and selection.group:
        for member in stack.members(selection.group):
            found.append((member.task_id, member.complete_by))
            _check_size(len(found))
            progress(f"{len(found)} orders found")
        return 0, found
    completed_by = as_of if selects_completed(selection) else None
    looked, cursor = 0, None
    while True:
        page = find(stack, selection, after=cursor, limit=PAGE, budget=PAGE_BUDGET, as_of=as_of)
        found += [
            (task.task_id, credited_now(task, now()).complete_by)
            for task in page.tasks
            if completed_by is None or task.ended_at is None or task.ended_at <= completed_by
        ]
        looked, cursor = looked + page.looked_at, page.cursor
        _check_size(len(found))
        if cursor is None:
            return looked, found
        if looked > MOST_LOOKED_AT:
            raise InspectorError(
                f"More than {MOST_LOOKED_AT} tasks were examined. Narrow the filter."
            )
        progress(f"{looked} tasks examined, {len(found)} orders found")


def _is_group(selection: Selection) -> bool:
    """Whether the filter consists of a failure group only, or is empty."""
    return selection == Selection(group=selection.group)


def _check_size(orders: int) -> None:
    if orders > MOST:
        raise InspectorError(f"More than {MOST} orders match. Narrow the filter.")


def check_bounded(selection: Selection, states: Collection[TaskState]) -> None:
    """Raise UnboundedSelection unless the filter names a failure group or a state.

    A filter for completed orders must also name their workflow and both ends of a time span.
    `states` are those for which the command is offered: InvalidArgument is raised if a completed
    order is none of them.
    """
    if selection.group is None and selection.state is None:
        raise UnboundedSelection("To select many orders, give a failure group or a state.")
    if not selects_completed(selection):
        return
    if TaskState.COMPLETED not in states:
        raise InvalidArgument("A completed order accepts no other command than undo.")
    if not has_time_span(selection):
        raise UnboundedSelection(
            "To undo many completed orders, also give their workflow and both ends of a time span: "
            "older than 1h, and newer than 3h."
        )


@dataclass(frozen=True, slots=True)
class Tried:
    """The result of a dry run."""

    selected: int
    """The number of orders in the run."""
    looked_at: int = 0
    """The number of orders that were assessed, the first ones of the run."""
    eligible: int = 0
    """The number of assessed orders that are eligible for the command."""
    examined: int = 0
    """The number of tasks that were examined to find them; 0 if no search was needed."""
    samples: tuple[str, ...] = ()
    """The first SAMPLES eligible orders."""
    refused: tuple[OrderGroup, ...] = ()
    """The orders that are not eligible, by reason."""
    held: tuple[OrderGroup, ...] = ()
    """The eligible orders with a step that would be parked, by the hold."""
    lost_signals: tuple[OrderGroup, ...] = ()
    """The eligible orders with unread signals that no step could read any more, by the signals."""
    plans: tuple[BulkPlanMove, ...] | None = None
    """The changes of the orders' plans; None if the command does not ask for any."""
    inputs: tuple[tuple[str, tuple[InputChange, ...]], ...] | None = None
    """The changes of the inputs of `samples`; None if the command does not correct inputs."""

    @property
    def read_units(self) -> int:
        """How many read units the search took at least: its index entries, and the records."""
        return -(-self.examined // ENTRIES_A_UNIT) + self.selected


def try_out(
    stack: DeployedStack, run: Run, chosen: Choice, progress: Progress, *, released: str = ""
) -> Tried:
    """Assess the first TRIED_OUT orders of a run, and send nothing.

    `released` is an agent that an operator holds, and that is released before the run begins.
    """
    holds = _holds_left(stack, released)
    looked = chosen.orders[:TRIED_OUT]
    plans: Counter[str] = Counter()
    samples: list[str] = []
    inputs: list[tuple[str, tuple[InputChange, ...]]] = []
    eligible = 0
    refused: tuple[OrderGroup, ...] = ()
    held: tuple[OrderGroup, ...] = ()
    lost: tuple[OrderGroup, ...] = ()
    for first in range(0, len(looked), AT_ONCE):
        part = looked[first : first + AT_ONCE]
        for one in assess_all(stack, run, part, plans):
            order, found = one.planned.order, one.found
            if isinstance(found, NotFor):
                refused = with_one(refused, normalised(found.why), found.why, order)
                continue
            eligible += 1
            samples = [*samples, order][:SAMPLES]
            inputs = [*inputs, (order, one.changes)][:SAMPLES]
            hold = held_for(found, holds)
            if hold is not None:
                sentence = hold_sentence(hold)
                held = with_one(held, sentence, sentence, order)
            if found.lost_signals:
                sentence = lost_signals_words(found.lost_signals)
                lost = with_one(lost, sentence, sentence, order)
        progress(f"{first + len(part)} of {len(looked)} orders checked")
    moves = _tried_plans(stack, run, plans)
    fixes = tuple(inputs) if corrects(run.event) else None
    return Tried(
        len(chosen.orders),
        len(looked),
        eligible,
        chosen.examined,
        tuple(samples),
        refused,
        held,
        lost,
        moves,
        fixes,
    )


def _tried_plans(
    stack: DeployedStack, run: Run, plans: Mapping[str, int]
) -> tuple[BulkPlanMove, ...] | None:
    """Return the changes of plans, of which `plans` has the old ones with their orders."""
    after = named_plan(stack, run.event)
    if after is None:
        return None
    found = []
    for own, orders in plans.items():
        try:
            before = stack.plans.plan(own)
        except UnreadableRecord:
            before = None
        if before is None or before.workflow == after.workflow:
            move = plan_move(before, own, after)
            found.append(BulkPlanMove(move.before, move.after, move.differences, orders))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class AssessedOrder:
    """One selected order, assessed now."""

    planned: PlannedOrder
    """The order as it is stored with the run."""
    found: Eligible | NotFor
    changes: tuple[InputChange, ...] = ()
    """The changes of the order's input."""


def assess_all(
    stack: DeployedStack, run: Run, orders: Sequence[str], plans: "Counter[str] | None" = None
) -> list[AssessedOrder]:
    """Return each order with its eligibility for the run's command now.

    `plans` counts the plans of the orders. An order whose record or plan cannot be read is not
    eligible; the other orders are not affected.
    """
    at = now()
    loaded = stack.records.load_many(orders, at)
    invalid = invalid_for_plan(stack, run, list(loaded.tasks.values()))
    found: list[AssessedOrder] = []
    for order in orders:
        task = loaded.tasks.get(order)
        if plans is not None and task is not None:
            plans[task.plan] += 1
        unreadable = loaded.unreadable.get(order)
        if unreadable is not None:
            found.append(AssessedOrder(PlannedOrder(order), NotFor(unreadable)))
        else:
            found.append(_assess(stack, run, order, task, invalid.get(order), at))
    return found


def invalid_for_plan(stack: DeployedStack, run: Run, tasks: Sequence[Task]) -> Mapping[str, str]:
    """Return why the inputs of some orders are not valid under the plan that the command names.

    Raises InspectorError, TryAgain or CallRefused if the submission function does not say it.
    """
    plan = _checking_plan(stack, run)
    if plan is None:
        return {}
    return dict(invalid_inputs(stack, plan.workflow, run.event, tasks))


def _checking_plan(stack: DeployedStack, run: Run) -> Plan | None:
    """The plan that the command names, if its workflow has an input type."""
    plan = named_plan(stack, run.event)
    return plan if plan is not None and newest_plan(stack, plan.workflow).checks_input else None


def _assess(
    stack: DeployedStack, run: Run, order: str, task: Task | None, invalid: str | None, at: int
) -> AssessedOrder:
    """Assess one order. `invalid` is the reason why its input is not valid under the new plan."""
    planned = PlannedOrder(order)
    content: Json = None
    changes: tuple[InputChange, ...] = ()
    if invalid is not None and task is not None:
        planned = PlannedOrder(order, task.version, refused=invalid)
    elif task is not None and corrects(run.event):
        try:
            fixed = check_correction(stack, task, run.event_for(task.version))
        except Refused as refused:
            planned = PlannedOrder(order, task.version, refused=str(refused))
        else:
            content, changes = fixed.order, fixed.changes
            exact = fixed.event.changes if isinstance(fixed.event, Resubmit) else None
            planned = PlannedOrder(order, task.version, exact)
    elif task is not None and run.pins_versions and _is_pinned(run, task):
        planned = PlannedOrder(order, task.version)
    try:
        plan = None if task is None else plan_of(stack, task)
    except (SchemaTooNew, UnreadableRecord) as problem:
        return AssessedOrder(planned, NotFor(str(problem)))
    next_plan = named_plan(stack, run.event)
    found = judged(run, planned, plan, task, at, next_plan, order=content)
    return AssessedOrder(planned, found, () if isinstance(found, NotFor) else changes)


def _is_pinned(run: Run, task: Task) -> bool:
    """Whether the command is for this version of the task only.

    An undo takes back a completed task as it was read, and an open one as it then is.
    """
    return not isinstance(run.event, UndoAsked) or task.state is TaskState.COMPLETED


def planned_orders(
    stack: DeployedStack, run: Run, orders: Sequence[str], progress: Progress
) -> list[PlannedOrder]:
    """Return the orders as they are stored with the run.

    What only the application can check is checked here, for all orders: corrected inputs, and
    inputs under another plan. It holds for the version of the task that was read, and so does the
    undo of a completed order. All else is decided by the supervisor before it sends.
    """
    if not run.pins_versions:
        return [PlannedOrder(order) for order in orders]
    found: list[PlannedOrder] = []
    for first in range(0, len(orders), AT_ONCE):
        part = orders[first : first + AT_ONCE]
        found += [one.planned for one in assess_all(stack, run, part)]
        progress(f"{len(found)} of {len(orders)} orders checked")
    return found


def must_pin(stack: DeployedStack, run: Run) -> bool:
    """Whether the application must check each order of the run's command (`planned_orders`)."""
    return corrects(run.event) or _checking_plan(stack, run) is not None


def check_holds(
    stack: DeployedStack, run: Run, chosen: Sequence[str], *, released: str = ""
) -> None:
    """Raise AgentOnHold if one of the first AT_ONCE orders would wait for an agent on hold.

    With `Terms.anyway`, the orders are not checked. `released` is as for `try_out`.
    """
    if run.terms.anyway:
        return
    holds = _holds_left(stack, released)
    for one in assess_all(stack, run, chosen[:AT_ONCE]) if holds else ():
        hold = held_for(one.found, holds) if isinstance(one.found, Eligible) else None
        if hold is not None:
            raise AgentOnHold(f"{hold_sentence(hold)}{WOULD_WAIT}. Nothing was sent.")


def _holds_left(stack: DeployedStack, released: str) -> list[Hold]:
    """Return the holds in force once an agent is released; empty text for none."""
    of_operator = (released, OPERATOR)
    return [one for one in stack.holds.holds() if (one.agent, one.kind) != of_operator]
