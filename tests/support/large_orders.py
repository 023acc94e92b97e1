"""Orders of a hundred steps or items that the engine has decided, to be shown and stored."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from roundsman.definition.plan import Plan
from roundsman.definition.workflow import Compensation, Undo
from roundsman.model.events import HistoryRow, Outcome
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import AddedStep, StepError, StepRecord, Task, Termination
from roundsman.ports import OrderRow
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.facts.order.order_facts import OrderFacts
from tests.support.machine_world import T0, World, plan, step
from tests.support.steps import step_record

LONG = "the warehouse has no answer for this line; " * 24
"""An error of a thousand characters."""
REFUSED = StepError("OutOfStock", LONG)
FENCED = Compensation(fences_late_performs=True)


@dataclass(frozen=True)
class MadeOrder:
    """An order with its plan and its history."""

    plan: Plan
    task: Task
    history: Sequence[HistoryRow]
    first: Task
    """The task as it was submitted."""

    def facts(self, at: int = T0) -> OrderFacts:
        """What is known of it at `at` (epoch ms)."""
        return OrderFacts(self.task, self.plan, self.history, at=at)


def chain_of(many: int, done: int, *, undo: bool = False, at: int = T0) -> MadeOrder:
    """An order of steps that follow each other; after `done` of them, one is refused.

    It was submitted at `at` (epoch ms).
    """
    names = [f"step_{place:02}_of_the_long_chain" for place in range(many)]
    steps = [
        step(name, *names[max(place - 1, 0) : place], compensation=FENCED if undo else None)
        for place, name in enumerate(names)
    ]
    world = World(plan(*steps, on_failure=Undo()) if undo else plan(*steps), now=at)
    for name in names[:done]:
        passes(world, name)
    world.start()
    world.now += 250
    world.reply(names[done], Outcome.PERMANENT, error=REFUSED)
    if undo:
        for name in reversed(names[: done + 1]):
            passes(world, name)
    return made(world)


def side_by_side(many: int, done: int, failed: int, *, at: int = T0) -> MadeOrder:
    """An order of one step, `many` steps side by side, and a last one."""
    names = [f"line_{place:02}" for place in range(many)]
    steps = [step("begin"), *(step(name, "begin") for name in names), step("finish", *names)]
    world = World(plan(*steps), now=at)
    passes(world, "begin")
    world.start()
    settle(world, names, done, failed)
    return made(world)


def fan_of(many: int, done: int, failed: int, *, at: int = T0) -> MadeOrder:
    """An order of a fan-out of `many` items: a hundred fit in an order without another step."""
    world = World(
        plan(step("pick", for_each="input.lines")),
        order={"lines": [*range(many)]},
        now=at,
    )
    world.start()
    settle(world, [f"pick[{place}]" for place in range(many)], done, failed)
    return made(world)


def loop_of(many: int, *, failed: bool = True, undone: bool = False) -> MadeOrder:
    """An order of a loop: each of so many steps has added the next one, and another step follows.

    The last one has failed; or else all are done, or `undone`. The records are made up, because so
    many decisions would take long.
    """
    made = plan(
        step("find", compensation=FENCED),
        step("pay", "find"),
        may_add=(step("leg", compensation=FENCED),),
        on_failure=Undo(),
    )
    first = World(made).task
    names = ["find", *(f"leg[n{place:04}]" for place in range(many))]
    rows, steps = list[HistoryRow](), dict[str, StepRecord]()
    for place, name in enumerate(names):
        at = T0 + place * 1_000
        steps[name] = step_record(
            process_state=ProcessState.UNDONE if undone else ProcessState.PROCESSED,
            started_at=at,
            finished_at=T0 + (2 * many - place) * 1_000 if undone else at + 200,
        )
        if name != names[-1]:
            reason = f"{name}: adds {names[place + 1]}"
            rows.append(HistoryRow(len(rows), at + 200, "added", name, None, reason))
    if undone:
        for name in reversed(names):
            at = steps[name].finished_at or 0
            rows.append(HistoryRow(len(rows), at - 200, "undo", name, None, f"{name}: undo"))
            rows.append(HistoryRow(len(rows), at, "undone", name, 1, f"{name}: undone"))
    elif failed:
        steps[names[-1]] = step_record(
            process_state=ProcessState.ERROR, started_at=T0, finished_at=T0 + 1, error=REFUSED
        )
    added = {name: AddedStep(adder) for adder, name in pairwise(names)}
    task = replace(first, steps=steps, added=added, owed=())
    if undone:
        ending = Termination(TaskState.UNDONE, "undo requested", undo=True)
        over = T0 + 2 * many * 1_000
        task = replace(task, state=TaskState.UNDONE, ending=ending, ended_at=over)
    return MadeOrder(made.for_task(task), task, rows, first)


def passes(world: World, name: str) -> None:
    """The step begins, and is done after 200 ms."""
    world.start()
    world.now += 200
    world.succeeds(name, result={"line": name, "stored": True})


def settle(world: World, names: Sequence[str], done: int, failed: int) -> None:
    """Of the steps that are under way, some are done, the next ones are refused, the rest waits."""
    for name in names[:done]:
        world.now += 50
        world.succeeds(name, result={"line": name})
    for name in names[done : done + failed]:
        world.now += 50
        world.reply(name, Outcome.PERMANENT, error=REFUSED)


def made(world: World) -> MadeOrder:
    """The order as the world has left it."""
    plan_of_task = world.plan.for_task(world.task)
    return MadeOrder(plan_of_task, world.task, history_of(world), world.decisions[0][0])


def history_of(world: World) -> list[HistoryRow]:
    """All rows that the decisions of a world have stored."""
    return [row for _, _, decision in world.decisions for row in decision.history]


def facts_of(world: World, at: int | None = None) -> OrderFacts:
    """What is known of the order of a world, now or at `at` (epoch ms)."""
    plan = world.plan.for_task(world.task)
    return OrderFacts(world.task, plan, history_of(world), at=world.now if at is None else at)


def store(order: MadeOrder, stack: DeployedStack, order_id: str) -> None:
    """Store the order in a stack under an id."""
    first, task = (
        replace(one, task_id=order_id, reply_to=None, owed=()) for one in (order.first, order.task)
    )
    stack.plans.put_plan(order.plan.expanded({}))
    stack.tasks.create(OrderRow(order_id, {"lines": 100}, "hash", first.created_at), first)
    stack.tasks.save(task, seen=first.version, history=order.history)
