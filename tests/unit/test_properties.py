"""Random plans and random events: what holds whatever happens, and that every task ends."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from roundsman.birth import Wishes
from roundsman.due import due
from roundsman.events import (
    AgentView,
    Claimant,
    Event,
    Inspect,
    InspectAt,
    Outcome,
    Replied,
    SendRequest,
    Start,
    StartTask,
)
from roundsman.plan import Plan, plan_of
from roundsman.states import DONE, ProcessState, TaskState
from roundsman.task import UNDO, StepError, Task, idempotency_key, operation_of
from roundsman.values import Json
from roundsman.workflow import Archive, Compensation, Retry, Step, Strategy, Undo, Wait, Workflow
from tests.unit.machine_world import REPLY_TO, T0, World

ORDER: Json = {"yes": True, "no": False, "text": "private"}
MOST_STEPS = 6


def seconds(least: int, most: int) -> st.SearchStrategy[timedelta]:
    return st.integers(least, most).map(lambda number: timedelta(seconds=number))


waits = st.builds(
    Wait, delay=seconds(1, 100), times=st.integers(1, 2), then=st.sampled_from([Undo(), Archive()])
)
strategies: st.SearchStrategy[Strategy] = st.just(Undo()) | st.just(Archive()) | waits
retries = st.builds(
    Retry,
    max_attempts=st.integers(1, 3),
    first_delay=seconds(1, 5),
    max_delay=seconds(5, 20),
    not_on=st.sampled_from([(), ("Never",)]),
)
compensations = st.none() | st.builds(
    Compensation,
    complete_within=st.none() | seconds(5, 60),
    retry=retries,
    fences_late_performs=st.booleans(),
)
conditions = st.sampled_from(
    [None, None, None, "input.yes", "input.no", "results.s0", "abs(input.text)"]
)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    names = [f"s{number}" for number in range(draw(st.integers(1, MOST_STEPS)))]
    steps = [
        Step(
            name=name,
            agent=draw(st.sampled_from(["one", "other"])),
            complete_within=draw(seconds(5, 60)),
            after=tuple(draw(st.sets(st.sampled_from(names[:number]))) if number else ()),
            retry=draw(retries),
            on_failure=draw(st.none() | strategies),
            compensation=draw(compensations),
            when=draw(conditions),
            result_limit=50,
        )
        for number, name in enumerate(names)
    ]
    return plan_of(
        Workflow(
            name="story",
            steps=draw(st.permutations(steps)),
            complete_within=draw(seconds(60, 600)),
            on_failure=draw(strategies),
            point_of_no_return=draw(st.none() | st.sampled_from(steps)),
        )
    )


@dataclass
class Chance:
    """What happens next, drawn one by one, and remembered so that it can happen again."""

    draw: Callable[[st.SearchStrategy[int]], int]
    said: list[Event]
    tokens: dict[str, list[str]]

    def of(self, most: int) -> int:
        return self.draw(st.integers(0, most))

    def event(self, world: World) -> Event:
        kind = self.of(9)
        if kind == 0 and self.said:
            return self.said[self.of(len(self.said) - 1)]
        if kind <= 2:
            return Start(world.claimant())
        if kind <= 4:
            return Inspect()
        return self.reply(world)

    def reply(self, world: World) -> Event:
        names = list(world.plan.steps)
        name = names[self.of(len(names) - 1)]
        record = world.task.step(name)
        tokens = [*self.tokens.get(name, []), "foreign-token.1"]
        current = self.of(3) > 0 and record.locked_by is not None
        operation = operation_of(record) if self.of(20) else ("perform", "undo")[self.of(1)]
        return Replied(
            world.claimant(),
            step=name if self.of(20) else "unknown",
            operation=operation,
            lock=str(record.locked_by) if current else tokens[self.of(len(tokens) - 1)],
            key=idempotency_key("ord-1" if self.of(20) else "ord-2", name, operation, record),
            outcome=list(Outcome)[self.of(2)],
            result=["short", "x" * 60, None][self.of(2)],
            error=[None, StepError("Never", ""), StepError("Odd", "again")][self.of(2)],
            retry_after=[None, None, 0, 3_000, 10**30][self.of(4)],
        )


def world_of(made: Plan, start_in: int, asks: bool) -> World:
    wishes = Wishes(start_at=T0 + start_in, reply_to=REPLY_TO if asks else None)
    return World(made, wishes, order=ORDER)


AT_REST = (
    *DONE,
    ProcessState.ERROR,
    ProcessState.UNDONE,
    ProcessState.UNDO_ERROR,
)


def attempts(made: Plan, name: str, operation: str) -> int:
    """How often the operation may be attempted at most."""
    compensation = made.steps[name].compensation
    if operation == UNDO:
        assert compensation is not None
        return compensation.retry.max_attempts
    return made.steps[name].attempts


def check_steps(made: Plan, before: Task, after: Task) -> None:
    """What a decision may do to steps, beside what `machine_world.check` holds of any record."""
    for name, record in after.steps.items():
        earlier = before.step(name)
        state = record.process_state
        if state is ProcessState.PROCESSING and record.locked_by != earlier.locked_by:
            befores = made.steps[name].after
            assert all(after.step(found).process_state in DONE for found in befores)
            assert before.ending is None
            assert earlier.process_state not in DONE
        if earlier.process_state in AT_REST and state is not ProcessState.UNDOING:
            assert record == earlier, "what is over stays as it was"
        if operation_of(record) == operation_of(earlier):
            assert record.failure_count - earlier.failure_count in (0, 1)
        assert record.failure_count <= attempts(made, name, operation_of(record))
        if operation_of(record) == UNDO:
            assert after.ending is not None
            assert after.ending.undo
            assert record.started_at is not None
    if before.ending is not None:
        assert after.ending is not None
        assert replace(after.ending, why="") == replace(before.ending, why="")
        assert after.ending.why.startswith(before.ending.why)
    if after.state is TaskState.COMPLETED:
        assert all(after.step(name).process_state in DONE for name in made.steps)
    statuses = [owed.name for owed in after.owed if owed.kind == "status"]
    assert len(statuses) == len(set(statuses))
    assert "private" not in repr((after.owed, after.ending))


def forged(event: Event, chance: Chance) -> bool:
    """Whether a reply names a claim that was never made."""
    return isinstance(event, Replied) and event.lock not in chance.tokens.get(event.step, [])


@settings(max_examples=250)
@given(st.data())
def test_whatever_happens_in_any_order_the_invariants_hold(data: st.DataObject) -> None:
    chance = Chance(data.draw, [], {})
    world = world_of(data.draw(plans()), 5_000 * chance.of(1), chance.of(1) == 1)
    for _ in range(data.draw(st.integers(1, 25))):
        # Mostly forward; sometimes the clock of an instance that is a little behind.
        world.now += [0, 0, 200, 1_000, 6_000, 30_000, 60_000, -300][chance.of(7)]
        world.jitter = [0.0, 0.3, 0.999][chance.of(2)]
        world.agents = {
            "one/normal": AgentView(
                lag=[0, 500, 90_000][chance.of(2)],
                read_up_to=[None, world.now - 20_000, world.now][chance.of(2)],
            )
        }
        event = chance.event(world)
        before = world.task
        world.apply(event)
        chance.said.append(event)
        for name, record in world.task.steps.items():
            if record.locked_by and record.locked_by not in chance.tokens.get(name, []):
                chance.tokens.setdefault(name, []).append(record.locked_by)
        check_steps(world.plan, before, world.task)
        if not forged(event, chance):
            repeated = world.decide(event)
            assert repeated.task is world.task, "the same event at once again changes nothing"
        if chance.of(4) == 0:
            world.deliver_owed()


@settings(max_examples=150)
@given(
    plans(),
    st.lists(st.sampled_from(["success", "transient", "permanent", "silence"]), max_size=30),
    st.lists(st.booleans(), max_size=30),
)
def test_with_fair_delivery_every_task_ends_within_a_bounded_number_of_events(
    made: Plan, behaviour: Sequence[str], lost: Sequence[bool]
) -> None:
    """Agents answer as drawn and then succeed; Starts are lost as drawn and then arrive."""
    world = world_of(made, 1_000, asks=True)
    answers, losses = iter(behaviour), iter(lost)
    todo: list[Event] = [Start(world.claimant())]
    most = sum(12 * step.attempts + 40 for step in made.steps.values()) + 2 * len(lost) + 20
    while not world.task.ended:
        most -= 1
        assert most > 0, "the task goes on for ever"
        if not todo:
            world.wait_until(world.task.due_at)
            todo.append(Inspect())
        before = world.task
        decision = world.apply(todo.pop(0))
        check_steps(made, before, world.task)
        for command in decision.commands:
            match command:
                case StartTask():
                    if not next(losses, False):
                        todo.append(Start(world.claimant()))
                case SendRequest(step):
                    answer = next(answers, "success")
                    if answer != "silence":
                        todo.append(answer_to(world, step, answer))
                case InspectAt():
                    pass  # a timer is best effort: the due entry stands behind it
        raise_due_entry(world)
    assert world.task.state in (TaskState.COMPLETED, TaskState.ARCHIVED, TaskState.UNDONE)
    undoes = world.task.ending is not None and world.task.ending.undo
    assert undoes or world.now <= world.task.complete_by + 1
    if not behaviour and world.task.state is not TaskState.COMPLETED:
        conditional = any(step.when == "abs(input.text)" for step in made.steps.values())
        assert conditional or any(lost)


def answer_to(world: World, step: str, answer: str) -> Event:
    outcome = {"success": Outcome.SUCCEEDED, "transient": Outcome.TRANSIENT}
    record = world.task.step(step)
    operation = operation_of(record)
    return Replied(
        Claimant("other", world.claimant().nonce),
        step=step,
        operation=operation,
        lock=world.lock(step),
        key=idempotency_key("ord-1", step, operation, record),
        outcome=outcome.get(answer, Outcome.PERMANENT),
        error=None if answer == "success" else StepError("Drawn", answer),
    )


def raise_due_entry(world: World) -> None:
    """The supervisor's part: it looked, and moves the entry to when it must look again."""
    if not world.task.ended:
        world.task = replace(world.task, due_at=due(world.task, world.now))
