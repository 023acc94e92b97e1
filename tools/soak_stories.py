"""Random stories: a workflow, orders, mishaps and operator actions that derive from one seed."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random

from roundsman import (
    Agent,
    Archive,
    Compensation,
    Done,
    Json,
    Limit,
    NamedStep,
    PermanentError,
    Priority,
    Retry,
    Signal,
    Sleep,
    Step,
    StepRequest,
    TransientError,
    Undo,
    Wait,
    Workflow,
)
from roundsman.definition.workflow import ANY, FAIL, AnyOf, ErrorPolicy, NextAgent, Skip
from roundsman.engine.effects import depend_on
from roundsman.engine.new_task import ProcessingOptions
from roundsman.model.holds import BREAKER, EVERY_WORKFLOW, OPERATOR, in_force
from roundsman.model.instants import SECOND, iso
from roundsman.model.payloads import order_of
from roundsman.model.record_limits import LARGEST_RESULT, LARGEST_SIGNAL
from roundsman.model.situations import AwaitsSignal
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import PERFORM, idempotency_key
from roundsman_testing import (
    FOR_EVER,
    Capacity,
    Mishaps,
    World,
    eventbridge_event,
    sns_notification,
)
from roundsman_testing.ledger import EffectKey
from roundsman_testing.trace_files import TRACE_FILES
from roundsman_testing.world.agents import LOOKS
from roundsman_testing.world.capacity import SCHEDULER, SUBMISSION
from roundsman_testing.world.processes import CallbackRequest
from roundsman_testing.world.queues import COMMANDS
from tools.soak_account import Account, counted

ORDERS_AT_MOST = 12
AGENTS = ("one", "two", "three")
STRATEGIES: tuple[Callable[[], Undo | Archive | Wait], ...] = (
    Undo,
    Undo,
    Archive,
    lambda: Wait(timedelta(seconds=40), times=1, then=Undo()),
    lambda: Wait(timedelta(seconds=40), times=2, then=Archive()),
)


BEHIND = 0.2
"""The share of stories in which few instances of a function take their time."""

ADDING = 0.2
"""The share of stories whose steps add others, some of them wrong ones."""

PARKING = 0.15
"""The share of stories in which holds last for hours; in most of them, wakes are lost."""

KIND = "extra"

MOVING = 0.15
"""The share of stories in which a newer version of the workflow is deployed, and orders move to
it."""

FORGETTING = 0.1
"""The share of stories in which services find effects by their keys for a time only."""

LIMITING = 0.15
"""The share of stories in which a limit counts the orders of one total."""

POLLING = 0.2
"""The share of stories in which one step is polled."""

SIGNALLING = 0.2
"""The share of stories in which steps wait for signals."""

GOING_ON = 0.2
"""The share of stories in which some steps go on without an answer."""

ENOUGH = 0.25
"""The share of stories in which of some steps, or items, only enough have to succeed."""

BY_TYPE = 0.2
"""The share of stories in which the type of an error decides what follows it."""

CLOSING = 0.25
"""The share of stories whose workflow has closing steps."""

ENDING_EARLY = 0.15
"""The share of stories in which steps end their orders early."""

LENGTHY = 0.15
"""The share of stories in which results and answers are too long, or no JSON."""

LENGTHS = (60, 60, 60, 5_000, 5_000, 40_000, 300_000)
"""How long these results are, in characters. One of 300,000 is not kept beside the record."""

MASKING = 0.25
"""The share of stories whose orders have a masked field, which services and people quote."""

QUOTED: tuple[Callable[[str], str], ...] = (
    lambda token: token,
    lambda token: f"{token[:4]} {token[4:9]}-{token[9:]}",
    lambda token: token.upper().replace("=", "%3D"),
    lambda token: f'{{"token":"{token}"}}' + "x" * 990,
    lambda token: "x" * 990 + token,
)
"""How the masked field is quoted: in its usual forms, and where a long text is cut."""

WRAPPING = 0.12
"""The share of stories in which half of the orders and signals come in envelopes of services."""

PAYLOADS = 0.1
"""The share of stories in which orders have payloads, which agents read and make."""

SOURCES = ("arn:aws:sns:*:*:soak", "arn:aws:events:*:*:rule/soak")

SIGNALS = ("paid", "approved")
"""The names of signals. Several steps may wait for one name, and none for another."""

TAKING_BACK = 0.25
"""The share of stories in which parts of completed orders are taken back again and again."""

GONE = "retention is over"
"""The problem with which a command may be rejected: its task's record has expired."""

NO_TASK = "the order was never accepted, or its task's retention is over"
"""The problem with which a cancellation may be rejected whose order is gone."""

NOT_TAKEN = ("is refused: ", "has ended no step: ", NO_TASK)
"""The problems with which a signal may be rejected."""

OVERTAKING = 0.05
"""The share of orders whose cancellation is sent before them, and comes first or not."""


class Lost(AssertionError):
    """A sent order has no task, a signal is nowhere, a valid message was rejected, or a payload
    outlives its order's erasure."""


def own_chance(what: object, seed: object) -> Random:
    """Return a source of its own, so that what is drawn from it changes nothing else of a story."""
    return Random(f"{what} {seed}")  # noqa: S311  # it must be repeatable


def some_stories(what: str, seed: int, share: float) -> Random | None:
    """Return a source of its own in this share of the stories; None in the others."""
    chance = own_chance(what, seed)
    return chance if chance.random() < share else None


def random_workflow(chance: Random) -> Workflow:
    """Return a workflow of one to five steps with random dependencies and failure strategies."""
    steps: list[Step] = []
    for number in range(chance.randint(1, 5)):
        after = tuple(step for step in steps if chance.random() < 0.5)
        sleeps = chance.random() < 0.1
        made = _random_sleep if sleeps else _random_step
        steps.append(made(chance, f"step{number}", after))
    chance.shuffle(steps)
    return Workflow(
        name="soak",
        steps=tuple(steps),
        complete_within=timedelta(minutes=chance.choice((5, 20, 120))),
        on_failure=chance.choice(STRATEGIES)(),
        point_of_no_return=chance.choice(steps) if chance.random() < 0.2 else None,
        priority=chance.choice((Priority.NORMAL, Priority.URGENT)),
        retain_for=timedelta(hours=chance.choice((0, 1))),
    )


def _random_step(chance: Random, name: str, after: tuple[Step, ...]) -> Step:
    seconds = chance.choice((10, 30, 90))
    repeated = chance.random() < 0.15
    several = chance.random() < 0.15
    return Step(
        name=name,
        agents=tuple(chance.sample(AGENTS, 2 if several else 1)),
        after=after,
        complete_within=timedelta(seconds=seconds),
        heartbeat_within=timedelta(seconds=seconds / 2) if chance.random() < 0.2 else None,
        retry=Retry(
            max_attempts=chance.randint(1, 4), first_delay=timedelta(seconds=chance.choice((1, 5)))
        ),
        compensation=_random_compensation(chance),
        on_failure=chance.choice(STRATEGIES)() if chance.random() < 0.3 else None,
        when="input.total > `20`" if chance.random() < 0.2 else None,
        for_each="input.lines" if repeated else None,
        tolerate=chance.choice((0.0, 0.5)) if repeated else 0.0,
    )


def _random_sleep(chance: Random, name: str, after: tuple[Step, ...]) -> Step:
    """Five of them in a row are shorter than any workflow of these stories."""
    for_ = timedelta(seconds=chance.choice((1, 20, 45)))
    when = "input.total > `20`" if chance.random() < 0.2 else None
    return Sleep(name=name, for_=for_, after=after, when=when)


def _random_compensation(chance: Random) -> Compensation | None:
    if chance.random() < 0.25:
        return None
    return Compensation(
        fences_late_performs=chance.random() < 0.6, retry=Retry(max_attempts=chance.randint(1, 8))
    )


def _by_name(workflow: Workflow) -> list[Step]:
    """The steps of the workflow, each after others by their names, so that each may be replaced."""
    return [
        replace(step, after=AnyOf(*step.after_names(), enough=step.after.enough))
        if isinstance(step.after, AnyOf)
        else replace(step, after=step.after_names())
        for step in workflow.steps
    ]


def _of_steps(workflow: Workflow, steps: Sequence[Step]) -> Workflow:
    """The workflow with these steps; the point of no return is that of the name."""
    last = workflow.point_of_no_return
    point = next((step for step in steps if last is not None and step.name == last.name), None)
    return replace(workflow, steps=tuple(steps), point_of_no_return=point)


def with_key_lifetimes(chance: Random, workflow: Workflow) -> Workflow:
    """Return the workflow with a lifetime of the keys of each step that an agent performs."""
    steps = _by_name(workflow)
    for at, step in enumerate(steps):
        if step.agent_names():
            lifetime = timedelta(minutes=chance.choice((4, 15, 60)))
            found = chance.random() < 0.3
            steps[at] = replace(step, key_lifetime=lifetime, probe_outlives_key=found)
    return _of_steps(workflow, steps)


def with_signals(chance: Random, workflow: Workflow) -> Workflow:
    """Return the workflow with one to three further steps that wait for signals.

    Each comes after some steps of lower numbers, and some of the others come after it.
    """
    steps = _by_name(workflow)
    for number in range(chance.randint(1, 3)):
        place = chance.randint(0, len(workflow.steps))
        before = tuple(f"step{n}" for n in range(place) if chance.random() < 0.5)
        waits = Signal(
            chance.choice(SIGNALS),
            name=f"signal{number}",
            within=timedelta(seconds=chance.choice((30, 120, 280))),
            after=before,
            on_failure=chance.choice(STRATEGIES)() if chance.random() < 0.3 else None,
            when="input.total > `20`" if chance.random() < 0.2 else None,
        )
        for n in range(place, len(workflow.steps)):
            if chance.random() < 0.5:
                [at] = [at for at, step in enumerate(steps) if step.name == f"step{n}"]
                steps[at] = replace(steps[at], after=(*steps[at].after_names(), waits.name))
        steps.append(waits)
    return _of_steps(workflow, steps)


def with_otherwise(chance: Random, workflow: Workflow) -> Workflow:
    """Return the workflow with steps that go on without an answer, and with conditions on that."""
    steps = _by_name(workflow)
    for at, step in enumerate(steps):
        if not isinstance(step, Sleep) and chance.random() < 0.5:
            steps[at] = replace(step, otherwise=chance.choice((None, 7, {"nobody": True})))
    goes_on = {step.name for step in steps if step.otherwise is not FAIL}
    for at, step in enumerate(steps):
        read = [name for name in step.after_names() if name in goes_on]
        if read and step.when is None and chance.random() < 0.5:
            steps[at] = replace(step, when=chance.choice(("came.{}", "!(came.{})")).format(read[0]))
    return _of_steps(workflow, steps)


def with_quorums(chance: Random, workflow: Workflow) -> Workflow:
    """Return the workflow with a further step that begins when enough of the last ones have
    succeeded, and with fan-outs of which one item is enough."""
    steps = _by_name(workflow)
    followed = {name for step in steps for name in step.after_names()}
    point = workflow.point_of_no_return
    for at, step in enumerate(steps):
        if step.for_each is not None and (point is None or point.name != step.name):
            enough = 1 if chance.random() < 0.5 else None
            steps[at] = replace(step, enough=enough, tolerate=0.0 if enough else step.tolerate)
            steps[at] = replace(steps[at], keep=True)
    last = [
        step
        for step in steps
        if step.name not in followed and step.enough is None and step.name != (point and point.name)
    ]
    last = [step for step in last if {*step.after_names()} == {*last[0].after_names()}]
    if len(last) > 1:
        names = [step.name for step in last]
        after = AnyOf(*names, enough=chance.randint(1, len(names)))
        steps = [replace(one, keep=True) if one in last and one.agents else one for one in steps]
        steps.append(replace(_random_step(chance, "join", ()), after=after))
    return _of_steps(workflow, steps)


def with_policies(chance: Random, workflow: Workflow) -> Workflow:
    """Return the workflow with steps for which the type of an error decides what follows."""
    steps = _by_name(workflow)
    for at, step in enumerate(steps):
        if not step.agent_names() or chance.random() < 0.5:
            continue
        policies: list[ErrorPolicy] = [make() for make in STRATEGIES]
        policies += [Skip(), Retry(max_attempts=chance.randint(1, 4))]
        if len(step.agent_names()) > 1 and step.compensation is not None:
            policies.append(NextAgent())
        kinds = ("Overdue", "Unavailable", "Refused", ANY)
        on_error = {kind: chance.choice(policies) for kind in kinds if chance.random() < 0.5}
        steps[at] = replace(step, on_error=on_error)
    return _of_steps(workflow, steps)


def _with_newest_shapes(seed: int, workflow: Workflow) -> Workflow:
    """The workflow, in some stories with quorums, policies by type, a limit, closing steps."""
    if chance := some_stories("enough", seed, ENOUGH):
        workflow = with_quorums(chance, workflow)
    if chance := some_stories("policies", seed, BY_TYPE):
        workflow = with_policies(chance, workflow)
    if chance := some_stories("limits", seed, LIMITING):
        limit = Limit(by="input.total", at_once=chance.randint(1, 2))
        workflow = replace(workflow, limit=limit)
    if chance := some_stories("closing", seed, CLOSING):
        workflow = with_closing_steps(chance, workflow)
    return workflow


def with_closing_steps(chance: Random, workflow: Workflow) -> Workflow:
    """Return the workflow with one or two closing steps at some of its ends."""

    def closing(name: str, after: tuple[Step, ...]) -> Step:
        plain = replace(_random_step(chance, name, after), for_each=None, tolerate=0.0)
        return replace(plain, compensation=None, on_failure=None)

    first = closing("closing0", ())
    steps = (first, closing("closing1", (first,))) if chance.random() < 0.5 else (first,)
    undone, failed, cancelled = (steps if chance.random() < 0.7 else () for _ in range(3))
    return replace(workflow, when_undone=undone, when_failed=failed, when_cancelled=cancelled)


def with_small_results(chance: Random, workflow: Workflow) -> Workflow:
    """Return the workflow with limits of its results, and with conditions that read results."""
    steps = _by_name(workflow)
    for at, step in enumerate(steps):
        if step.after and step.when is None and chance.random() < 0.3:
            read = chance.choice(step.after_names())
            steps[at] = replace(step, when=_reads(read))
        if step.agent_names():
            steps[at] = replace(steps[at], result_limit=chance.choice((50, 4_096, 32_768)))
    return _of_steps(workflow, steps)


def _reads(name: str) -> str:
    """A condition that reads the result of the step."""
    return f"results.{name} != `1`"


def newer_version(chance: Random, workflow: Workflow) -> Workflow:
    """Return the workflow with other retries, one step more, and a time limit of two hours."""
    steps = [
        replace(step, retry=replace(step.retry, max_attempts=chance.randint(1, 4)))
        if step.agent_names()
        else step
        for step in _by_name(workflow)
    ]
    before = tuple(step.name for step in steps if chance.random() < 0.5)
    added = replace(_random_step(chance, "added", ()), after=before)
    return _of_steps(replace(workflow, complete_within=timedelta(hours=2)), [*steps, added])


def without_a_signal(chance: Random, workflow: Workflow) -> Workflow:
    """Return the workflow without one of its steps that wait for signals."""
    waits = [step.name for step in workflow.steps if isinstance(step, Signal)]
    gone = chance.choice(waits)
    steps = []
    for step in workflow.steps:
        if step.name != gone:
            after = tuple(name for name in step.after_names() if name != gone)
            when = None if f".{gone}" in (step.when or "") else step.when
            steps.append(replace(step, after=after, when=when))
    return _of_steps(workflow, steps)


def adding_workflow(chance: Random, workflow: Workflow) -> Workflow:
    """Return the workflow with a kind of step that its steps may add."""
    step = _random_step(chance, KIND, ())
    kind = replace(step, when=None, for_each=None, tolerate=0.0)
    later = (kind,) if workflow.point_of_no_return and chance.random() < 0.5 else ()
    return replace(
        workflow,
        may_add=(kind,),
        most_added=chance.choice((3, 8)),
        may_add_after_no_return=later,
    )


def story_agents(
    seed: int, workflow: Workflow, *, lengthy: bool = False, ending: bool = False
) -> list[Agent]:
    """Return all agents of the workflow. A reply of them may add steps, and an error of them may
    quote the masked field. Results of `lengthy` ones may be too long, or no JSON. Those that are
    `ending` may end their orders early.

    A reply that adds what it may not add, or that is no JSON, comes a few times, or until its step
    fails.
    """
    agents: dict[str, Agent] = {}

    def perform(request: StepRequest) -> Done:
        request.progress()
        if workflow.masked:
            _quote(seed, request)
        result = _random_result(seed, request) if lengthy else _made(request)
        chance = own_chance(f"ends {seed}", request.idempotency_key)
        if ending and chance.random() < 0.2:
            return Done(result, end="not wanted", undo=chance.random() < 0.5)  # type: ignore[arg-type]  # it may be no JSON
        return Done(result, then=_random_then(seed, workflow, request))  # type: ignore[arg-type]  # it may be no JSON

    def nothing(_: StepRequest) -> None:
        return None

    for step in workflow.all_steps:
        for name in step.agent_names():
            agent = agents.setdefault(name, Agent(name))
            agent.performs(step)(perform)
            agent.reminds(step)(nothing)
            if step.compensation is not None:
                agent.compensates(step)(nothing)
            if step.probe_outlives_key:
                agent.probes(step)(lambda _: LOOKS)
    return list(agents.values())


def _made(request: StepRequest) -> Json:
    """What an agent makes of the payload in the order, which is a payload; it may have none."""
    if "scan" not in request.input:
        return {"done": True}
    with request.open(request.input["scan"]) as scan:
        return {"text": request.upload(scan.read()[::-1])}


def _random_result(seed: int, request: StepRequest) -> object:
    """Return a result that may be too long, or no JSON: each time the same, once it is JSON."""
    chance = own_chance(f"results {seed}", request.idempotency_key)
    lot = chance.random()
    if lot < 0.1 and request.attempt <= chance.choice((1, 2, 100)):
        return {"a", "set"}
    return "x" * chance.choice(LENGTHS) if lot < 0.5 else {"done": True}


def _quote(seed: int, request: StepRequest) -> None:
    """Raise, by chance, an error that quotes the masked field of the order."""
    # By the request and not only by the attempt: else the trial of a circuit could fail for ever.
    chance = own_chance(seed, f"{request.idempotency_key} {request.complete_by}")
    if chance.random() < 0.3:
        said = f"refused: {quoted(chance, request.input)}"
        raise chance.choice((TransientError(said), PermanentError("Refused", said)))


def quoted(chance: Random, order: Mapping[str, Json]) -> str:
    """Return the masked field of the order in one of its forms."""
    return chance.choice(QUOTED)(str(order["token"]))


def _random_then(seed: int, workflow: Workflow, request: StepRequest) -> tuple[NamedStep, ...]:
    """Return the steps that a step adds: each time the same, unless they cannot be added."""
    chance = own_chance(seed, request.idempotency_key)
    if not workflow.may_add:
        return ()
    [kind] = workflow.may_add
    if chance.random() < (0.6 if request.step.startswith(KIND) else 0.4):
        return ()
    labels = chance.sample("abcdef", chance.randint(1, 3))
    names = [f"{KIND}[{label}]" for label in labels]
    others = [*names, "step0", "step1", *(f"{KIND}[{one}]" for one in "abc")]
    then = tuple(
        kind.named(
            label,
            input={"label": label},
            after=tuple(chance.sample(others, 1)) if chance.random() < 0.25 else (),
        )
        for label in labels
    )
    if chance.random() < 0.15 and request.attempt <= chance.choice((1, 2, 100)):
        wrong = (replace(kind, name="unknown").named("a"), kind.named(labels[0], input="another"))
        then = (*then, chance.choice(wrong))
    return then


def random_mishaps(chance: Random) -> Mishaps:
    """Return random probabilities of mishaps: low, high, or zero except for one kind."""
    return Mishaps.some(chance.choice((0.0, 0.01, 0.03, 0.08))).but(
        meetings=chance.choice((0.0, 0.05)),
        repeats=chance.choice((0.0, 0.05, 0.2)),
        troubles=chance.choice((0.0, 0.05, 0.3)),
        refusals=chance.choice((0.0, 0.02, 0.1)),
    )


def random_capacity(chance: Random) -> dict[str, Capacity]:
    """Return what the functions of a story do at once: mostly, any number of them in no time."""
    lot = chance.random()
    if lot >= BEHIND:
        return {}
    functions = (SCHEDULER,) if lot < 0.7 * BEHIND else (SCHEDULER, SUBMISSION)
    return {
        function: Capacity(
            instances=chance.choice((1, 1, 2)),
            takes=timedelta(seconds=chance.choice((0.2, 1, 4, 10))),
            batch=chance.choice((1, 10)),
        )
        for function in functions
    }


@dataclass
class Story:
    """A simulated world that is derived from one seed, from its first order to the end of all."""

    seed: int
    account: Account = field(default_factory=Account)

    def __post_init__(self) -> None:
        self.chance = Random(self.seed)  # noqa: S311  # it must be repeatable
        seed, workflow = self.seed, random_workflow(self.chance)
        if keys := some_stories("keys", seed, FORGETTING):
            workflow = with_key_lifetimes(keys, workflow)
        self.signalling = some_stories("signals", seed, SIGNALLING)
        self.signals: dict[str, set[str]] = {}
        self.awaited = [*SIGNALS]
        if self.signalling is not None:
            workflow = with_signals(self.signalling, workflow)
            waits = [step.signal for step in workflow.steps if isinstance(step, Signal)]
            self.awaited = [*waits, *waits, *SIGNALS]
        self.taking_back = some_stories("parts", seed, TAKING_BACK)
        if self.taking_back is not None:
            workflow = replace(workflow, retain_for=timedelta(hours=1))
        if going_on := some_stories("goes on", seed, GOING_ON):
            workflow = with_otherwise(going_on, workflow)
        self.lengthy = some_stories("lengths", seed, LENGTHY)
        if self.lengthy is not None:
            workflow = with_small_results(self.lengthy, workflow)
        if adding := some_stories("adds", seed, ADDING):
            workflow = adding_workflow(adding, workflow)
        self.masking = some_stories("masks", seed, MASKING)
        if self.masking is not None:
            workflow = replace(workflow, masked=("token",))
        self.parking = some_stories("holds", seed, PARKING)
        moving = some_stories("moves", seed, MOVING)
        self.newer = newer_version(moving, workflow) if moving else None
        self.dropping = some_stories("drops", seed, 0.5) if self.signalling else None
        if self.newer and self.dropping:
            self.newer = without_a_signal(self.dropping, self.newer)
        else:
            self.dropping = None
        workflow = _with_newest_shapes(seed, workflow)
        self.newer = self.newer and _with_newest_shapes(seed, self.newer)
        self.overtaking = own_chance("overtakes", seed)
        self.passing = own_chance("passes", seed)
        self.cancelled: list[str] = []
        self.wrapping = some_stories("wrapping", seed, WRAPPING)
        self.scanning = some_stories("payloads", seed, PAYLOADS)
        self.world = World(
            workflow,
            agents=self._agents_of(workflow),
            seed=self.seed,
            mishaps=random_mishaps(self.chance),
            supervisors=self.chance.randint(1, 3),
            skew={"supervisor": timedelta(seconds=self.chance.choice((-2, 0, 0, 2)))},
            instances=self.chance.choice((None, 1, 3)),
            capacity=random_capacity(self.chance),
            sources=SOURCES,
        )
        self.world.processes.tables.index_lag = self.chance.choice((0, 0, 100, 3 * SECOND))
        self.sent, self.scanned = list[str](), list[str]()
        self.noes: dict[EffectKey, int] = {}
        asked = None
        if self.chance.random() < 0.3:  # one step waits for a callback from a person
            asked = self.chance.choice(workflow.steps).name
            asking = self.world.on(asked)
            within = timedelta(seconds=self.chance.choice((40, 300)))
            asking.asks(within, times=FOR_EVER, remind_every=within * 0.4)
        self._poll_a_step([one for one in workflow.steps if one.name != asked])

    def _poll_a_step(self, steps: Sequence[Step]) -> None:
        """Let the first requests of one step begin a job that is not done yet."""
        names = [step.name for step in steps if step.agent_names()]
        if names and (polling := some_stories("polls", self.seed, POLLING)):
            again_in, within = polling.choice(((1, 30), (10, 60), (20, 600)))
            self.world.on(polling.choice(names)).is_not_done(
                timedelta(seconds=again_in),
                timedelta(seconds=within),
                times=polling.choice((1, 5, 60)),
            )

    def _agents_of(self, workflow: Workflow) -> list[Agent]:
        """The agents whose functions do more than to succeed; none if stand-ins do."""
        ending = some_stories("ends early", self.seed, ENDING_EARLY) is not None
        if not (workflow.may_add or workflow.masked or self.lengthy or self.scanning or ending):
            return []
        lengthy = self.lengthy is not None
        return story_agents(self.seed, workflow, lengthy=lengthy, ending=ending)

    def run(self) -> Account:
        """Run the story and return its totals.

        Raises InvariantBroken if an invariant does not hold, and Lost if an order or a message was
        lost.
        """
        with counted(self.account):
            self._run()
        return self._account()

    def _run(self) -> None:
        self._hold_for_long()
        for _ in range(self.chance.randint(1, ORDERS_AT_MOST)):
            self._send_order()
            self._wait()
        if self.newer is not None:
            self._signal_before_a_move()
            self._move_some(self.newer)
        for _ in range(self.chance.randint(0, 6)):
            self._do_something()
            self._wait()
        for _ in range(10):
            self._answer_some()
            self._signal_some()
            self._give_some()
            self._take_back_some()
            self._change_holds(0.1)
            self.world.run(for_=timedelta(minutes=3))
        self.world.all_is_well()
        self._change_holds(0.5)
        self._end()
        for order_id in self.sent:
            self._repair(order_id)
        self._signal_some()
        self._end()
        self._check_signals()
        self._check_cancelled()
        self._erase_payloads()

    def _trace(self) -> str:
        """The file with what happened, or why there is none."""
        return TRACE_FILES.written(str(self.world.trace))

    def _end(self) -> None:
        """Run without mishaps, redrive the dead letters, and check that every order ended."""
        self.world.run()
        if self.chance.random() < 0.3:
            self.world.processes.tables.expire()
        self.account.redriven += self.world.redrive()
        self.world.run()
        self.world.give_results()
        self.world.check_all_ended()
        taken = self.world.processes.watch.tasks
        lost = [order_id for order_id in self.sent if order_id not in taken]
        if lost:
            raise Lost(f"seed={self.seed}: {lost} were sent and are nowhere:\n{self._trace()}")
        for aside in self.world.post.put_aside:
            allowed = (GONE, *NOT_TAKEN) if '"signal"' in aside.body else (GONE, NO_TASK)
            if not any(words in str(one) for one in aside.problems for words in allowed):
                raise Lost(f"seed={self.seed} repeats it: put aside: {aside}\n{self._trace()}")

    def _check_signals(self) -> None:
        """Raise Lost if a signal is neither in the history of its order nor rejected."""
        rejected = [aside.body for aside in self.world.post.put_aside]
        for order_id, sent in self.signals.items():
            task = self.world.task(order_id)
            gone = task.expires_at is not None and task.expires_at <= self.world.now
            if gone or task.erased_at is not None:
                continue
            told = {row.command_id for row in self.world.history(order_id)}
            lost = [one for one in sent - told if not any(f'"{one}"' in body for body in rejected)]
            if lost:
                raise Lost(f"seed={self.seed}: signals {lost} are nowhere:\n{self._trace()}")

    def _check_cancelled(self) -> None:
        """Raise Lost if a cancellation that was sent before its order came to nothing."""
        rejected = [aside.body for aside in self.world.post.put_aside]
        for order_id in self.cancelled:
            told = {row.kind for row in self.world.history(order_id) if row.command_id}
            if not told & {"cancel", "refused"} and not any(order_id in one for one in rejected):
                raise Lost(f"seed={self.seed}: {order_id} is not cancelled:\n{self._trace()}")

    def _erase_payloads(self) -> None:
        """Erase all orders. Raises Lost if other orders have payloads then than the archived ones,
        whose repair needs them."""
        if not self.scanned:
            return
        for order_id in self.sent:
            self.account.commands += 1
            self.world.operator.erase(order_id, "request 17")
        self._end()
        kept = {one for one in self.scanned if self.world.task(one).state is TaskState.ARCHIVED}
        left = {order_of(key) for key in self.world.processes.payloads.objects}
        if left != kept:
            raise Lost(f"seed={self.seed}: payloads of {left}, not of {kept}:\n{self._trace()}")

    def _wait(self) -> None:
        self._signal_some()
        self.world.run(for_=timedelta(seconds=self.chance.choice((0, 1, 10, 60))))

    def _send_order(self) -> None:
        chance, now = self.chance, self.world.now
        options = ProcessingOptions(
            start_at=now + chance.choice((30, 600, 90_000)) * SECOND
            if chance.random() < 0.15
            else None,
            reply_to="a-queue" if chance.random() < 0.5 else None,
        )
        total = chance.choice((10, 30))
        lines = [{"sku": f"line-{number}"} for number in range(chance.randint(0, 3))]
        order: dict[str, Json] = {"total": total, "lines": [*lines]}
        if self.masking is not None:
            order["token"] = f"tok_{self.masking.randrange(10**12):012}="
        if self.signalling is not None:
            order["orderId"] = order_id = f"signalled-{len(self.sent)}"
            if self.signalling.random() < 0.85:  # the others never get a signal
                self.signals[order_id] = set()
            if self.signalling.random() < 0.2:
                self._signal(self.signalling, order_id)
        if self.overtaking.random() < OVERTAKING:
            order_id = str(order.setdefault("orderId", f"overtaken-{len(self.sent)}"))
            self.world.cancel(order_id, undo=self.overtaking.random() < 0.5)
            self.cancelled.append(order_id)
        if self.scanning is not None and self.scanning.random() < 0.7:
            order_id = str(order.setdefault("orderId", f"scanned-{len(self.sent)}"))
            self.scanned.append(order_id)
            order["scan"] = self.world.upload(order_id, f"a page of {order_id}".encode())
        self.sent.append(self._submit(order, options))
        again = self.wrapping is not None and self.wrapping.random() < 0.3
        if chance.random() < 0.1 or again:  # the application sends the same order again
            self._submit({**order, "orderId": self.sent[-1]}, options)

    def _submit(self, order: Mapping[str, Json], options: ProcessingOptions) -> str:
        """Send an order, in some stories as a service delivers it. Returns its id.

        The same order is one, in an envelope and without: otherwise it is put aside, and Lost.
        """
        chance = self.wrapping
        if chance is None or chance.random() < 0.5:
            return self.world.submit(order, options=options)
        order_id = str(order.get("orderId", f"wrapped-{len(self.sent)}"))
        start_at = None if options.start_at is None else iso(options.start_at)
        processing: dict[str, Json] = {"processAt": start_at, "replyTo": options.reply_to}
        event = {**order, "orderId": order_id, "processing": processing}
        self.account.wrapped += 1
        if chance.random() < 0.5:
            self.world.send(sns_notification(event, topic="soak"))
        else:
            self.world.send(eventbridge_event(event, source="soak", detail_type="Order"))
        return order_id

    def _signal_some(self) -> None:
        """Send signals to some orders, and let a person end or prolong some waits."""
        chance, operator = self.signalling, self.world.operator
        if chance is None:
            return
        for order_id in self.sent:
            if chance.random() < 0.1:
                self._signal(chance, order_id)
            task = self.world.processes.watch.tasks.get(order_id)
            waits = (
                []
                if task is None
                else [
                    name
                    for name, record in task.steps.items()
                    if isinstance(record.situation, AwaitsSignal)
                ]
            )
            if waits and chance.random() < 0.05:
                self.account.commands += 1
                if chance.random() < 0.5:
                    operator.resolve(order_id, waits[0], did=True, result={"by": "phone"})
                else:
                    operator.extend(order_id, timedelta(seconds=60), waits[0])

    def _signal(self, chance: Random, order_id: str) -> None:
        """Send a signal to an order that gets some: a new one, or one that was sent before."""
        if order_id in self.signals:
            name, number = chance.choice(self.awaited), chance.randint(1, 4)
            signal_id = f"{name}-{number}-of-{order_id}"
            self.signals[order_id].add(signal_id)
            self.account.commands += 1
            data: dict[str, Json] = {"number": number}
            if self.lengthy is not None and number > 2:
                data["text"] = "x" * (LARGEST_SIGNAL - 50)
            if self.wrapping is not None and self.wrapping.random() < 0.5:
                signal: dict[str, Json] = {"name": name, "id": signal_id, "data": data}
                event = {"orderId": order_id, "signal": signal}
                self.account.wrapped += 1
                self.world.send(eventbridge_event(event, source="soak", detail_type="Signal"))
            else:
                self.world.signal(order_id, name, data, signal_id=signal_id)
            if chance.random() < 0.1:  # as an application sends it that gives no id
                self.world.signal(order_id, name, {"number": number})

    def _give_some(self) -> None:
        """Let a person give some results that orders wait for, now and then too long ones."""
        chance = self.lengthy
        if chance is None:
            return
        for order_id, task in list(self.world.processes.watch.tasks.items()):
            for name in [name for name, record in task.steps.items() if record.awaits_result]:
                if chance.random() < 0.3:
                    self.account.commands += 1
                    size = chance.choice((10, 10, LARGEST_RESULT))
                    self.world.operator.resolve(order_id, name, did=True, result="x" * size)

    def _answers(self) -> Json:
        """What somebody outside answers; in some stories it may be too long."""
        if self.lengthy is not None and self.lengthy.random() < 0.4:
            return "x" * self.lengthy.choice((60, 5_000))
        return {"by": "somebody"}

    def _take_back_some(self) -> None:
        """Take back one or two steps of some completed orders, mostly with what depends on them."""
        chance, world = self.taking_back, self.world
        if chance is None:
            return
        for order_id in self.sent:
            task = world.processes.watch.tasks.get(order_id)
            if task is None or task.state is not TaskState.COMPLETED or chance.random() < 0.6:
                continue
            named = chance.sample([*task.steps], min(len(task.steps), chance.choice((1, 1, 2))))
            plan = world.processes.plans.plan(task.plan)
            if plan is not None and chance.random() < 0.7:
                named += depend_on(plan.for_task(task), task.steps, named)
            if named:
                self.account.commands += 1
                world.operator.undo(order_id, *named)

    def _do_something(self) -> None:
        """Let an operator or the application act on a random order or agent."""
        chance, operator = self.chance, self.world.operator
        order_id = chance.choice(self.sent)
        if order_id not in self.world.processes.watch.tasks:
            return
        self.account.commands += 1
        acts: list[Callable[[], object]] = [
            lambda: self.world.cancel(
                order_id, undo=chance.random() < 0.5, reason=self._says(order_id)
            ),
            lambda: operator.cancel(order_id),
            lambda: operator.undo(order_id),
            lambda: self._undo_a_part(order_id),
            lambda: operator.resubmit(order_id),
            lambda: operator.resubmit(order_id, again=True),
            lambda: operator.resubmit(order_id, fresh_key=True),
            lambda: operator.extend(order_id, timedelta(minutes=5)),
            lambda: self._extend_a_step(order_id),
            lambda: self._resolve_a_step(order_id),
            lambda: operator.run_now(order_id),
            lambda: operator.erase(order_id, self._says(order_id)),
            self._hold_an_agent,
            self._answer_some,
        ]
        chance.choice(acts)()

    def _says(self, order_id: str) -> str:
        """Words of a person, who mostly quotes the masked field of an order that has one."""
        order = self.world.processes.watch.content_of(order_id)
        if self.masking is None or self.masking.random() < 0.2 or not isinstance(order, Mapping):
            return ""
        return quoted(self.masking, order)

    def _signal_before_a_move(self) -> None:
        """Send orders, and signals that a newer version may not read, while agents are held."""
        chance = self.dropping
        if chance is None:
            return
        for agent in sorted(self.world.post.agents):
            self.world.hold(agent, timedelta(minutes=2), "before a deployment")
        for _ in range(3):
            self._send_order()
            for _ in range(4):
                self._signal(chance, self.sent[-1])
        self.world.run(for_=timedelta(seconds=10))

    def _move_some(self, newer: Workflow) -> None:
        """Deploy a newer version of the workflow, and let an operator move orders to it."""
        self.world.deploy(newer, agents=self._agents_of(newer))
        for order_id in self.sent:
            if order_id in self.world.processes.watch.tasks and self.chance.random() < 0.6:
                self.account.commands += 1
                self.world.operator.move(order_id)
                self._wait()

    def _hold_for_long(self) -> None:
        """Hold orders for hours, in a story with such holds, and mostly lose wakes."""
        chance = self.parking
        if chance is None:
            return
        lot = chance.random()
        if lot < 0.3:
            self.world.wakes_are_lost()
            self.account.long_holds["all wakes are lost"] += 1
        elif lot < 0.6:
            lost = self.world.mail(COMMANDS, '"kind":"inspect"')
            lost.is_lost(times=chance.choice((1, 5, FOR_EVER)))
            self.account.long_holds["some wakes are lost"] += 1
        self._hold(chance)

    def _hold(self, chance: Random) -> None:
        """Hold an agent, the workflow or everything, or let a circuit be open, for hours."""
        world, hours = self.world, timedelta(hours=chance.choice((1, 3, 30)))
        what = [EVERY_WORKFLOW, "soak"]
        if world.post.agents:  # otherwise each step is a sleep
            what += [OPERATOR, OPERATOR, OPERATOR, BREAKER]
        self.account.commands += 1
        chosen = chance.choice(what)
        self.account.long_holds[chosen] += 1
        match chosen:
            case "*":
                world.hold_all(hours, "by chance", undos=chance.random() < 0.5)
            case "soak":
                world.hold_workflow("soak", hours, "by chance")
            case kind:
                world.hold(chance.choice(sorted(world.post.agents)), hours, "by chance", kind)

    def _change_holds(self, often: float) -> None:
        """Release some of what is held, in part or whole, or hold something again."""
        chance, world = self.parking, self.world
        if chance is None:
            return
        for hold in in_force(world.processes.holds.stored_now(), world.now):
            if chance.random() >= often:
                continue
            self.account.commands += 1
            self.account.parked += len(world.processes.watch.parked)
            share = chance.choice((30, 100, 100))
            self.account.long_holds[f"released {share} %"] += 1
            if hold.agent:
                world.release(hold.agent, hold.kind)
            elif hold.workflow == EVERY_WORKFLOW:
                world.release_all(share)
            else:
                world.release_workflow(hold.workflow, share)
        if chance.random() < often / 4:
            self._hold(chance)

    def _hold_an_agent(self) -> None:
        if not self.world.post.agents:  # each step is a sleep
            return
        agent = self.chance.choice(sorted(self.world.post.agents))
        if self.chance.random() < 0.3:
            self.world.release(agent)
        else:
            minutes = timedelta(minutes=self.chance.choice((1, 15)))
            self.world.hold(agent, minutes, "by chance")
            if self.sent and self.passing.random() < 0.3:
                self.world.let_pass(agent, self.passing.choice(self.sent))

    def _extend_a_step(self, order_id: str) -> None:
        task = self.world.task(order_id)
        under_way = [name for name, record in task.steps.items() if record.under_way]
        if under_way:
            more = timedelta(seconds=self.chance.choice((20, 300)))
            self.world.operator.extend(order_id, more, self.chance.choice(under_way))

    def _undo_a_part(self, order_id: str) -> None:
        """Take back a step of an order, and mostly what comes after it."""
        task = self.world.task(order_id)
        names = list(task.steps)
        if names:
            first = self.chance.randrange(len(names))
            self.world.operator.undo(order_id, *names[first : first + self.chance.randint(1, 4)])

    def _resolve_a_step(self, order_id: str) -> None:
        """Let an operator resolve a random step by its effect at the service.

        An undo that failed is resolved as done: the operator may have undone it by hand. An
        operator who says that a step did not happen has asked the outside system, if it still has
        to answer, not to do it any more.
        """
        task = self.world.task(order_id)
        begun = [name for name, record in task.steps.items() if record.started_at is not None]
        if not begun:
            return
        step = self.chance.choice(begun)
        record = task.step(step)
        key = idempotency_key(order_id, step, PERFORM, record)
        effect = EffectKey(order_id, step, key)
        did = self._stands(effect)
        if record.process_state is ProcessState.UNDO_ERROR:
            did = True
        if (
            record.process_state is ProcessState.UNDOING
            and (record.not_before or 0) > self.world.now
        ):
            return  # a request may still act: it is too early to undo it by hand
        if not did:
            self.noes[effect] = len(self.world.processes.tokens.get((order_id, step), ()))
        self.world.operator.resolve(order_id, step, did=did, seen=task.version)

    def _stands(self, effect: EffectKey) -> bool:
        return effect in self.world.services.ledger.standing(effect.task_id)

    def _answer_some(self) -> None:
        """Answer some open callback requests, with the last token or an earlier one, in time."""
        for (order_id, step), asked in list(self.world.processes.tokens.items()):
            waits = [n for n, one in enumerate(asked, start=1) if self._waits(asked, one)]
            for _ in range(self.chance.choice((0, 1, 1, 1, 2)) if waits else 0):
                self.account.commands += 1
                self._answer(order_id, step, self.chance.choice(waits))

    def _waits(self, asked: list[CallbackRequest], one: CallbackRequest) -> bool:
        """Whether a token for the same effect is still open and was not answered with No."""
        open_now = asked[self.noes.get(one.effect, 0) :]
        return any(o.effect == one.effect and o.until > self.world.now for o in open_now)

    def _answer(self, order_id: str, step: str, number: int) -> None:
        """Answer a callback request with Yes, or with No if the effect did not take place.

        After a No, the person does nothing until the next request. An effect that was undone in the
        meantime is not performed: a task that did not learn that a person was asked cannot wait for
        the answer.
        """
        asked = self.world.processes.tokens[order_id, step]
        effect = asked[number - 1].effect
        if self._stands(effect):
            self.world.answer(order_id, step, self._answers(), asked=number)
        elif not self._waits(asked, asked[number - 1]):
            return
        elif self.chance.random() < 0.6 and not self.world.services.ledger.is_spent(effect.key):
            self.world.answer(order_id, step, self._answers(), asked=number)
        else:
            self.noes[effect] = len(asked)
            words = self._says(order_id)
            no = self.chance.choice(
                (PermanentError("No", f"by chance {words}"), TransientError(f"not now {words}"))
            )
            self.world.answer(order_id, step, error=no, asked=number)

    def _repair(self, order_id: str) -> None:
        """Resubmit an archived task, or resolve a step of it by hand."""
        task = self.world.task(order_id)
        if task.state is not TaskState.ARCHIVED or self.chance.random() < 0.3:
            return
        self.account.commands += 1
        stuck = [n for n, r in task.steps.items() if r.process_state is ProcessState.UNDO_ERROR]
        if stuck and self.chance.random() < 0.5:
            self.world.operator.resolve(order_id, stuck[0], did=True)
        elif self.chance.random() < 0.3:
            self._resolve_a_step(order_id)
        else:
            self.world.operator.resubmit(order_id, fresh_key=self.chance.random() < 0.3)

    def _account(self) -> Account:
        found, world = self.account, self.world
        found.stories, found.orders, found.events = 1, len(self.sent), world.events
        found.calls, found.troubles = len(world.faults.calls), world.services.troubles
        found.behind = int(world.functions.timed)
        found.faults = Counter({str(fault): n for fault, n in world.faults.count.items()})
        found.hits = Counter(hit.name for hit in world.faults.happened)
        found.ends = Counter(str(world.task(order_id).state) for order_id in self.sent)
        return found
