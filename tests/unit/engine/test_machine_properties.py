"""Random plans and random events: what holds whatever happens, and that every task ends."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundsman.definition.plan import Plan, plan_of
from roundsman.definition.workflow import (
    Archive,
    Compensation,
    Retry,
    Step,
    Strategy,
    Undo,
    Wait,
    Workflow,
)
from roundsman.engine.due import due
from roundsman.engine.new_task import ProcessingOptions
from roundsman.engine.routing import agent_now
from roundsman.model.events import (
    AgentView,
    Claimant,
    Event,
    HoldView,
    Inspect,
    InspectAt,
    Outcome,
    Replied,
    SendRequest,
    Start,
    StartTask,
)
from roundsman.model.json import Json
from roundsman.model.states import DONE, ProcessState, TaskState
from roundsman.model.task import (
    PERFORM,
    UNDO,
    Effect,
    StepError,
    StepRecord,
    Task,
    idempotency_key,
)
from tests.support.machine_world import REPLY_TO, T0, World

ORDER: Json = {"yes": True, "no": False, "text": "private"}
MOST_STEPS = 6
THREE = ("other", "one", "third")


def seconds(least: int, most: int) -> st.SearchStrategy[timedelta]:
    return st.integers(least, most).map(lambda number: timedelta(seconds=number))


waits = st.builds(
    Wait, delay=seconds(1, 29), times=st.integers(1, 2), then=st.sampled_from([Undo(), Archive()])
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
    key_lifetime=st.none() | seconds(126, 300),
)
conditions = st.sampled_from(
    [None, None, None, "input.yes", "input.no", "results.s0", "abs(input.text)"]
)


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    names = [f"s{number}" for number in range(draw(st.integers(1, MOST_STEPS)))]
    steps = []
    for number, name in enumerate(names):
        when, after = draw(conditions), set[str]()
        if number:
            after = draw(st.sets(st.sampled_from(names[:number])))
        if when == "results.s0":  # only a step before this one may be read
            when, after = (when, {"s0", *after}) if number else (None, after)
        steps.append(
            Step(
                name=name,
                agents=draw(st.sampled_from([("one",), ("other",), ("one", "other"), THREE])),
                complete_within=draw(seconds(5, 60)),
                heartbeat_within=draw(st.none() | seconds(1, 4)),
                after=tuple(after),
                retry=draw(retries),
                on_failure=draw(st.none() | strategies),
                compensation=draw(compensations),
                when=when,
                result_limit=50,
            )
        )
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
    events: list[Event]
    tokens: dict[str, list[str]]
    claims: set[tuple[str, str, str]]
    """The step, the lock and the key of each claim."""

    def of(self, most: int) -> int:
        return self.draw(st.integers(0, most))

    def event(self, world: World) -> Event:
        kind = self.of(9)
        if kind == 0 and self.events:
            return self.events[self.of(len(self.events) - 1)]
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
        operation = record.operation if self.of(20) else ("perform", "undo")[self.of(1)]
        return Replied(
            world.claimant(),
            step=name if self.of(20) else "unknown",
            operation=operation,
            lock=str(record.locked_by) if current else tokens[self.of(len(tokens) - 1)],
            key=idempotency_key("ord-1" if self.of(20) else "ord-2", name, operation, record),
            outcome=list(Outcome)[self.of(5)],
            result=["short", "x" * 60, None][self.of(2)],
            error=[None, StepError("Never", ""), StepError("Odd", "again")][self.of(2)],
            retry_after=[None, None, 0, 3_000, 10**30][self.of(4)],
            until=world.now + [0, 5_000, 40_000, 10**15][self.of(3)],
            outcome_unknown=self.of(1) == 1,
            effect=[None, Effect.NONE, Effect.STANDS][self.of(2)],
            callback=self.of(4) == 0,
        )


def world_of(made: Plan, start_in: int, asks: bool) -> World:
    options = ProcessingOptions(start_at=T0 + start_in, reply_to=REPLY_TO if asks else None)
    return World(made, options, order=ORDER)


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
    most = made.steps[name].attempts
    assert most is not None, "the retries that are drawn have a number of attempts"
    return most


def check_steps(made: Plan, before: Task, after: Task, event: Event) -> None:
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
            known = replace(earlier, effect=Effect.STANDS, outcome_unknown=True)
            happened = state is ProcessState.ERROR and record == known
            answered = state is ProcessState.PROCESSED and takes_answer(earlier, event)
            assert record == earlier or happened or answered, "what is over stays as it was"
        if record.effect is Effect.NONE and earlier.effect is not Effect.NONE:
            assert not record.under_way, "a proof is about the requests that were made before it"
        elsewhere = record.agent != earlier.agent or record.tried != earlier.tried
        if record.operation == earlier.operation and not elsewhere:
            assert record.failure_count - earlier.failure_count in (0, 1)
        # What fails and may be tried at once is parked by the same decision: its failure counts.
        given_back = isinstance(event, Replied) and event.outcome is Outcome.HELD
        has_failed = earlier.under_way and not given_back
        if record.held_since is not None and not elsewhere and not has_failed:
            assert record.failure_count <= earlier.failure_count, "a hold counts nothing"
        check_agents(made, name, earlier, record, event)
        assert record.failure_count <= attempts(made, name, record.operation)
        if record.locked_by != earlier.locked_by and record.key_until is not None:
            assert (record.until or 0) <= record.key_until, "the service may have forgotten it"
        if record.operation == UNDO:
            undone = after.ending is not None and after.ending.undo
            assert undone or record.after_undo is not None
            assert record.started_at is not None
    if any(record.held_since is not None for record in before.steps.values()):
        late = after.ending is not None and "not complete by" in after.ending.why
        assert before.ending is not None or not late, "a held task fails of no time"
    if before.ending is not None:
        assert after.ending is not None
        assert replace(after.ending, why="") == replace(before.ending, why="")
        assert after.ending.why.startswith(before.ending.why)
    if after.state is TaskState.COMPLETED:
        assert all(after.step(name).process_state in DONE for name in made.steps)
    statuses = [owed.name for owed in after.owed if owed.kind == "status"]
    assert len(statuses) == len(set(statuses))
    assert "private" not in repr((after.owed, after.ending))


def takes_answer(record: StepRecord, event: Event) -> bool:
    """Whether the event is a success of a step whose wait for its callback was ended."""
    succeeds = isinstance(event, Replied) and event.outcome is Outcome.SUCCEEDED
    return succeeds and record.wait_was_ended


def check_agents(
    made: Plan, name: str, earlier: StepRecord, record: StepRecord, event: Event
) -> None:
    """A step leaves an agent only where it is known, or made, that nothing of it stands there."""
    step = made.steps[name]
    here = agent_now(step, record)
    assert here not in record.tried
    assert {here, *record.tried} <= set(step.agents)
    if agent_now(step, earlier) == here or earlier.started_at is None:
        return
    if record.operation == PERFORM and earlier.operation == PERFORM:
        moved = earlier.effect is Effect.NONE or ended_with_proof(event)
        assert moved, "it may have happened there"
        assert agent_now(step, earlier) in record.tried
    else:
        assert earlier.process_state is ProcessState.UNDOING, "its undo there has just succeeded"


def ended_with_proof(event: Event) -> bool:
    """Whether an attempt was given back, or has failed and may be made again at once."""
    if not isinstance(event, Replied):
        return False
    return event.outcome in (Outcome.HELD, Outcome.TRANSIENT) and event.effect is Effect.NONE


def view_of(now: int, chance: Chance) -> AgentView:
    lag, read_up_to = [0, 500, 90_000][chance.of(2)], [None, now - 20_000, now][chance.of(2)]
    until = [None, None, now, now + 10_000, now + 2_000_000][chance.of(4)]
    hold = None if until is None else HoldView(until)
    return AgentView(lag=lag, read_up_to=read_up_to, agent_hold=hold)


def forged(event: Event, chance: Chance) -> bool:
    """Whether a reply names a claim that was never made, or one under another key."""
    if not isinstance(event, Replied):
        return False
    return (event.step, event.lock, event.key) not in chance.claims


def check_story(data: st.DataObject) -> None:
    """Events of all kinds in any order, old ones again, and what holds after each."""
    chance = Chance(data.draw, [], {}, set())
    world = world_of(data.draw(plans()), 5_000 * chance.of(1), chance.of(1) == 1)
    for _ in range(data.draw(st.integers(1, 25))):
        # Mostly forward; sometimes the clock of an instance that is a little behind.
        world.now += [0, 0, 200, 1_000, 6_000, 30_000, 60_000, -300][chance.of(7)]
        world.jitter = [0.0, 0.3, 0.999][chance.of(2)]
        world.agents = {f"{name}/normal": view_of(world.now, chance) for name in ("one", "other")}
        event = chance.event(world)
        before = world.task
        world.apply(event)
        chance.events.append(event)
        for name, record in world.task.steps.items():
            if record.locked_by and record.locked_by not in chance.tokens.get(name, []):
                chance.tokens.setdefault(name, []).append(record.locked_by)
            if record.locked_by:
                key = idempotency_key("ord-1", name, record.operation, record)
                chance.claims.add((name, record.locked_by, key))
        check_steps(world.plan, before, world.task, event)
        if not forged(event, chance):
            repeated = world.decide(event)
            assert repeated.task is world.task, "the same event at once again changes nothing"
        if chance.of(4) == 0:
            world.deliver_owed()


@pytest.mark.parametrize("examples", [30, pytest.param(250, marks=pytest.mark.verify)])
def test_whatever_happens_in_any_order_the_invariants_hold(examples: int) -> None:
    settings(max_examples=examples)(given(st.data())(check_story))()


ANSWERS = ["success", "transient", "permanent", "silence", "held", "progress", "waiting"]


def check_fair_delivery(
    made: Plan, behaviour: Sequence[str], lost: Sequence[bool], holds: Sequence[int]
) -> None:
    """Agents answer as drawn and then succeed; Starts are lost as drawn and then arrive.

    The first agents are held as drawn, and then no more.
    """
    world = world_of(made, 1_000, asks=True)
    answers, losses, held = iter(behaviour), iter(lost), iter(holds)
    todo: list[Event] = [Start(world.claimant())]
    most = sum(40 * (step.attempts or 0) + 150 for step in made.steps.values()) + 20 * len(holds)
    most += 2 * len(lost) + 4 * len(behaviour) + 20
    while not world.task.ended:
        most -= 1
        assert most > 0, "the task goes on for ever"
        if not todo:
            world.wait_until(world.task.due_at)
            todo.append(Inspect())
        before = world.task
        until = world.now + next(held, 0)
        world.agents = {"one/normal": AgentView(agent_hold=HoldView(until))}
        event = todo.pop(0)
        decision = world.apply(event)
        check_steps(made, before, world.task, event)
        for command in decision.actions:
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
    # An undo is not stopped by the task's time, nor is that of a step that was to go elsewhere.
    undoes = any(row.kind == "undo" for found in world.decisions for row in found[2].history)
    assert undoes or world.now <= world.task.complete_by + 1
    if not behaviour and world.task.state is not TaskState.COMPLETED:
        conditional = any(step.when == "abs(input.text)" for step in made.steps.values())
        assert conditional or any(lost)


@pytest.mark.parametrize("examples", [30, pytest.param(150, marks=pytest.mark.verify)])
def test_with_fair_delivery_every_task_ends_within_a_bounded_number_of_events(
    examples: int,
) -> None:
    stories = given(
        plans(),
        st.lists(st.sampled_from(ANSWERS), max_size=30),
        st.lists(st.booleans(), max_size=30),
        st.lists(st.sampled_from([0, 0, 0, 5_000, 400_000]), max_size=20),
    )
    settings(max_examples=examples)(stories(check_fair_delivery))()


def answer_to(world: World, step: str, answer: str) -> Event:
    outcome = {
        "success": Outcome.SUCCEEDED,
        "transient": Outcome.TRANSIENT,
        "held": Outcome.HELD,
        "progress": Outcome.PROGRESS,
        "waiting": Outcome.WAITING,
    }
    record = world.task.step(step)
    operation = record.operation
    return Replied(
        Claimant("other", world.claimant().nonce),
        step=step,
        operation=operation,
        lock=world.lock(step),
        key=idempotency_key("ord-1", step, operation, record),
        outcome=outcome.get(answer, Outcome.PERMANENT),
        error=None if answer == "success" else StepError("Drawn", answer),
        until=world.now + 20_000,
    )


def raise_due_entry(world: World) -> None:
    """The supervisor's part: it looked, and moves the entry to when it must look again."""
    if not world.task.ended:
        world.task = replace(world.task, due_at=due(world.task, world.now))
