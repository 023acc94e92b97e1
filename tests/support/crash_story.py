"""What a whole order is made of: its workflow, what services and people do, how it must end."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from roundsman.agents.agent import Agent
from roundsman.agents.not_yet import NotYet
from roundsman.agents.outcomes import Done
from roundsman.agents.request import StepRequest
from roundsman.definition.workflow import (
    Archive,
    Compensation,
    Retry,
    Signal,
    Sleep,
    Undo,
    Wait,
    Workflow,
)
from roundsman.engine.new_task import ProcessingOptions
from roundsman.engine.newly_owed import STATUSES
from roundsman.model.holds import BREAKER
from roundsman.model.instants import milliseconds
from roundsman.model.states import TaskState
from roundsman.model.task import PERFORM
from roundsman.wire.messages import read_request
from roundsman_testing import Circuit, World
from roundsman_testing.world.queues import REQUESTS
from tests.support.machine_world import REPLY_TO, T0, step, workflow

ORDER_ID = "ord-1"
MINUTES = timedelta(minutes=1)
A_DAY = milliseconds(timedelta(days=1))
WISHES = ProcessingOptions(reply_to=REPLY_TO, retain_for=A_DAY)
TWO_SECONDS = Retry(max_attempts=4, first_delay=timedelta(seconds=2))
EIGHT = Retry(max_attempts=8)
FENCED = Compensation(fences_late_performs=True, retry=EIGHT)
UNFENCED = Compensation(retry=EIGHT)

Act = Callable[[World], object]


def nothing(_: World) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Story:
    """`services` runs before the order is sent, the `acts` run one after the other once it was.

    At the `end`, the effects of just the steps in `stands` stand. `perhaps` are steps that a
    fault may leave in another state, with or without effect. `before_end` are the statuses
    between `received` and the end's; that is `at_end`, or the usual one of its state.
    """

    workflow: Workflow
    end: TaskState
    stands: Sequence[str]
    services: Act = nothing
    acts: Sequence[Act] = ()
    agents: Callable[[], Sequence[Agent]] = tuple
    options: ProcessingOptions = WISHES
    perhaps: Sequence[str] = ()
    before_end: Sequence[str] = ("started",)
    at_end: str | None = None
    alerts: int = 0

    @property
    def statuses(self) -> list[str]:
        if self.options.reply_to is None:
            return []
        return ["received", *self.before_end, self.at_end or STATUSES[self.end]]


# --- Workflows -------------------------------------------------------------------------------

reserve = step("reserve", retry=TWO_SECONDS)
charge = step("charge", reserve, retry=TWO_SECONDS)
ship = step("ship", charge, retry=TWO_SECONDS)
pack = step("pack", reserve, retry=TWO_SECONDS)
gift = step("gift", reserve, retry=TWO_SECONDS, when="input.total > `1000`")
confirm = step("confirm", charge, pack, gift, retry=TWO_SECONDS)
patient = step("charge", reserve, retry=TWO_SECONDS, on_failure=Wait(MINUTES, 1, Archive()))
held = step("reserve", retry=TWO_SECONDS, compensation=FENCED)
paid = step("charge", held, retry=TWO_SECONDS, compensation=FENCED)
sent = step("ship", paid, retry=TWO_SECONDS, compensation=UNFENCED)
checked = step("check", held, retry=TWO_SECONDS)
"""A step that comes between two others in the next version of the workflow."""
picked = step(
    "pick",
    held,
    for_each="[input.orderId, input.total]",
    tolerate=0.5,
    retry=TWO_SECONDS,
    compensation=FENCED,
)
signal = Signal("confirmed", within=10 * MINUTES, after=(held,))
nap = Sleep(name="nap", for_=5 * MINUTES, after=(held,))
slow = step(
    "charge",
    held,
    retry=TWO_SECONDS,
    complete_within=10 * MINUTES,
    heartbeat_within=timedelta(seconds=30),
    compensation=FENCED,
)
shared = step(
    "charge", reserve, retry=TWO_SECONDS, agents=("worker", "second"), compensation=FENCED
)

forgotten = step(
    "charge",
    held,
    retry=TWO_SECONDS,
    compensation=replace(FENCED, key_lifetime=timedelta(days=1)),
)
leg = step("leg", retry=TWO_SECONDS, compensation=FENCED)

LINE = workflow(reserve, charge, ship)
PAIR = workflow(reserve, charge)
DIAMOND = workflow(reserve, charge, pack, gift, confirm)
CHECKED = workflow(
    held,
    checked,
    step("charge", held, checked, retry=TWO_SECONDS, compensation=FENCED),
    step("ship", "charge", retry=TWO_SECONDS),
)
UNDOABLE = workflow(held, paid, sent, on_failure=Undo())
BESIDE = workflow(
    held,
    paid,
    step("pack", held, retry=TWO_SECONDS, compensation=UNFENCED),
    on_failure=Undo(),
)
PICKING = workflow(held, picked, step("ship", picked, retry=TWO_SECONDS), on_failure=Undo())
PICKED = workflow(held, picked, on_failure=Undo())
SLOW = workflow(held, slow, on_failure=Undo())
SIGNALLED = workflow(
    held, signal, step("ship", signal, retry=TWO_SECONDS, compensation=UNFENCED), on_failure=Undo()
)
SLEEPY = workflow(held, nap, step("ship", nap, retry=TWO_SECONDS), on_failure=Undo())
FORGETFUL = workflow(held, forgotten, retain_for=timedelta(days=3))
TWO_AGENTS = workflow(reserve, shared, on_failure=Undo())
ADDING = workflow(held, paid, may_add=(leg,), on_failure=Undo())


def worker(charges: Callable[[StepRequest], object]) -> Callable[[], Sequence[Agent]]:
    """The agent of SLOW, with this function for its long step."""

    def made() -> Sequence[Agent]:
        agent = Agent("worker")
        for each in (held, slow):
            agent.compensates(each)(lambda request: None)
        agent.performs(held)(lambda request: {"done": request.step})
        agent.performs(slow)(charges)
        agent.reminds(slow)(lambda request: None)
        return (agent,)

    return made


def adds_legs() -> Sequence[Agent]:
    """The agent of ADDING: its first step adds two legs, and the first of them adds a third one."""
    agent = Agent("worker")
    for each in (held, paid, leg):
        agent.compensates(each)(lambda request: None)
    legs = (leg.named("one", input=1), leg.named("two", input=2, after=("leg[one]",)))
    agent.performs(held)(lambda request: Done({"done": request.step}, then=legs))
    agent.performs(paid)(lambda request: {"done": request.step})

    @agent.performs(leg)
    def go(request: StepRequest) -> Done:
        more = (leg.named("three", input=3),) if request.step_input == 1 else ()
        return Done({"leg": request.step_input}, then=more)

    return (agent,)


def shows_progress(request: StepRequest) -> object:
    request.progress()
    return {"done": request.step}


def polls_a_job() -> Sequence[Agent]:
    """The agent of SLOW, with an outside job that is done when it is looked at for the third time.

    A call that is made once more under its key finds it done.
    """
    looks = Counter[str]()

    def poll(request: StepRequest) -> object:
        looks[request.idempotency_key] += 1
        if looks[request.idempotency_key] < 3:
            return NotYet(again_in=MINUTES, within=60 * MINUTES)
        return {"done": request.step}

    return worker(poll)()


# --- What happens ----------------------------------------------------------------------------


def send(world: World, options: ProcessingOptions = WISHES) -> None:
    world.submit({"orderId": ORDER_ID, "total": "39.80"}, options=options)


def asks(name: str, operation: str = PERFORM) -> Act:
    """Run until the step's request is in its agent's queue."""

    def is_asked(world: World) -> bool:
        requests = [read_request(m.body) for m in world.queues.waiting if m.queue == REQUESTS]
        return (name, operation) in {(found.step, found.operation) for found in requests}

    return lambda world: world.run(until=lambda: is_asked(world))


def is_taken(world: World) -> None:
    world.run(until=lambda: bool(world.statuses(ORDER_ID)))


def waits(world: World) -> None:
    """Run until the step that an outside system answers was begun there."""
    world.run(until=lambda: world.waits_for_answer(ORDER_ID, "charge"))


def sleeps(world: World) -> None:
    """Run until the sleep has begun."""
    is_taken(world)
    world.run(until=lambda: "nap" in world.task(ORDER_ID).steps)


def signals(world: World) -> None:
    """Send the signal that the order waits for, or will wait for."""
    world.signal(ORDER_ID, "confirmed", {"ok": True}, signal_id="c-7")


def awaits_its_signal(world: World) -> None:
    """Run until the step waits for its signal."""
    is_taken(world)
    world.run(until=lambda: "confirmed" in world.task(ORDER_ID).steps)


def answers(name: str) -> Act:
    """Answer the step by the token of its last request."""
    return lambda world: world.answer(ORDER_ID, name, {"ok": True})


def runs(world: World) -> None:
    world.run()


def passes(time: timedelta) -> Act:
    return lambda world: world.run(for_=time)


def both(*acts: Act) -> Act:
    def act(world: World) -> None:
        for each in acts:
            each(world)

    return act


def breaker_opens(world: World) -> None:
    world.hold("worker", 2 * MINUTES, "503 five times", kind=BREAKER)


def refused(name: str) -> Act:
    return lambda world: world.on(name).refuses("CardDeclined")


def is_down(name: str) -> Act:
    return lambda world: world.on(name).is_down()


def is_up(name: str, operation: str = PERFORM) -> Act:
    return lambda world: world.on(name, operation).is_up()


def starts_in(time: timedelta) -> ProcessingOptions:
    return ProcessingOptions(reply_to=REPLY_TO, retain_for=A_DAY, start_at=T0 + milliseconds(time))


def circuits_that_never_open(plan: Workflow) -> dict[str, Circuit]:
    """Circuits that never open: in these stories, failed attempts count until none is left."""
    agents = {name for one in plan.steps for name in one.agent_names()}
    return dict.fromkeys(agents, Circuit(failures=1_000))


def run_story(story: Story, world: World) -> None:
    """Let all of it happen, to the end."""
    story.services(world)
    send(world, story.options)
    for act in story.acts:
        act(world)
    world.run()
