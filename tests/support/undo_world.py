"""A world with remote services that honour keys, where messages come late, twice or never."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from roundsman.definition.plan import Plan
from roundsman.engine.due import due
from roundsman.engine.requests import request_for
from roundsman.errors import Refused
from roundsman.model.events import (
    AgentView,
    Cancel,
    Claimant,
    CommandSource,
    Decision,
    Erase,
    Event,
    Extend,
    HoldView,
    Inspect,
    OperatorEvent,
    Outcome,
    Replied,
    Resolve,
    Resubmit,
    RunNow,
    SendRequest,
    Start,
    StartTask,
    UndoAsked,
    UndoPart,
)
from roundsman.model.instants import SECOND
from roundsman.model.states import DONE, ProcessState, TaskState
from roundsman.model.task import PERFORM, UNDO, StepError, idempotency_key, step_of
from roundsman.wire.messages import AgentRequest
from tests.support.machine_world import T0, World

CLOCKS_DIFFER = 4 * SECOND  # less than the 5 s that an unfenced undo waits

ENDINGS = (
    "done",
    "done",
    "done",
    "unavailable",
    "unavailable",
    "answer lost",
    "refused",
    "held",
    "held after a call",
    "progress",
    "waits",
)

Pick = Callable[[int], int]
"""A number from 0 to n, drawn by whoever makes the world go."""


@dataclass
class Remote:
    """Effects by key, as a service keeps them; a fenced one never forgets a key it has undone."""

    plan: Plan
    standing: set[tuple[str, str]] = field(default_factory=set)
    spent: set[str] = field(default_factory=set)

    def fences(self, step: str) -> bool:
        compensation = self.plan.steps[step_of(step)].compensation
        return compensation is not None and compensation.fences_late_performs

    def perform(self, step: str, key: str) -> bool:
        """Whether the effect stands now: a repeated key gives the old answer, a spent one none."""
        if self.fences(step) and key in self.spent:
            return False
        self.standing.add((step, key))
        return True

    def undo(self, step: str, key: str) -> None:
        self.standing.discard((step, key))
        self.spent.add(key)

    def keys(self, step: str) -> list[str]:
        return [key for name, key in self.standing if name == step]


class UndoWorld:
    """One task whose every request and reply stays on its way, to be delivered at any time."""

    def __init__(self, world: World, pick: Pick) -> None:
        self.world = world
        self.pick = pick
        self.remote = Remote(world.plan)
        self.requests: list[AgentRequest] = []
        self.replies: list[Replied] = []
        self.starts: list[Event] = []
        self.commands: list[OperatorEvent] = []
        self.refusals: list[str] = []
        self.refused: set[str] = set()

    @property
    def plan(self) -> Plan:
        """With a step for each item of a fan-out."""
        return self.world.plan.for_task(self.world.task)

    # --- what happens ------------------------------------------------------------------------

    def apply(self, event: Event) -> Decision | None:
        """Decide and keep what was sent; None where a person was refused."""
        before = self.world.task
        try:
            decision = self.world.apply(event)
        except Refused as refused:
            assert self.world.task is before
            self.refusals.append(str(refused))
            return None
        for command in decision.actions:
            match command:
                case SendRequest(step):
                    task = decision.task
                    order, now = self.world.order, self.world.now
                    request = request_for(self.world.plan, task, step, order, now)
                    self.requests.append(request)
                    self.check_request(request)
                case StartTask():
                    self.starts.append(Start(self.world.claimant()))
                case _:
                    pass  # a timer is best effort: the due entry stands behind it
        self.check_effects()
        return decision

    def deliver(self, request: AgentRequest, ending: str, agents_clock: int = 0) -> None:
        """An agent reads the request, whatever became of the task; its clock may differ."""
        late = self.world.now + agents_clock >= request.complete_by
        acts = not late or (request.operation == PERFORM and self.lands_late(request))
        if not acts:
            return  # the agent stays silent
        if ending == "unavailable":
            self.answer(request, Outcome.TRANSIENT, StepError("Unavailable", ""))
        elif ending == "refused":
            self.refused.add(request.idempotency_key)
            self.answer(request, Outcome.PERMANENT, StepError("Declined", ""))
        elif ending == "held":
            self.refused.add(request.idempotency_key)  # nothing was called, nothing lands late
            self.answer(request, Outcome.HELD, StepError("Held", "the breaker is open"))
        elif ending == "held after a call":
            self.act(request)
            error = StepError("Held", "the breaker opened")
            self.answer(request, Outcome.HELD, error, outcome_unknown=True)
        elif ending == "progress":
            self.answer(request, Outcome.PROGRESS, None)
        elif not self.act(request):
            self.answer(request, Outcome.PERMANENT, StepError("KeyUndone", ""))
        elif ending in ("done", "waits"):
            if ending == "waits":
                self.answer(request, Outcome.WAITING, None)
            self.answer(request, Outcome.SUCCEEDED, None)
        self.check_effects()

    def act(self, request: AgentRequest) -> bool:
        """The call itself, whether or not its answer will arrive; False where it was fenced."""
        if request.operation == PERFORM:
            return self.remote.perform(request.step, request.idempotency_key)
        assert request.perform_key is not None
        self.remote.undo(request.step, request.perform_key)
        return True

    def lands_late(self, request: AgentRequest) -> bool:
        """A service with a fence may act on calls that were lost for long.

        But not on one that it refused before: after its complete-by, a refusal is believed.
        """
        key = request.idempotency_key
        return self.remote.fences(request.step) and (
            key in self.remote.spent or key not in self.refused
        )

    def answer(
        self,
        request: AgentRequest,
        outcome: Outcome,
        error: StepError | None,
        *,
        outcome_unknown: bool = False,
    ) -> None:
        self.replies.append(
            Replied(
                Claimant("other", self.world.claimant().nonce),
                step=request.step,
                operation=request.operation,
                lock=request.lock,
                key=request.idempotency_key,
                outcome=outcome,
                error=error,
                until=self.world.now + 100 * SECOND,
                outcome_unknown=outcome_unknown,
            )
        )

    # --- chance ------------------------------------------------------------------------------

    def happen(self) -> None:
        """Something, drawn: time passes and one thing comes about."""
        self.world.now += [0, 0, 100, 2_000, 9_000, 31_000, 70_000][self.pick(6)]
        marks = [None, T0 - 1, self.world.now]
        self.world.agents = {
            "worker/normal": AgentView(read_up_to=marks[self.pick(2)], agent_hold=self.hold()),
            "second/normal": AgentView(agent_hold=self.hold()),
        }
        kind = self.pick(11)
        if kind <= 1:
            self.apply(Start(self.world.claimant()))
        elif kind <= 3:
            self.apply(Inspect())
        elif kind <= 6 and self.requests:
            request = self.requests[-1 - self.pick(min(len(self.requests), 6) - 1)]
            clock = [0, -CLOCKS_DIFFER, CLOCKS_DIFFER][self.pick(2)]
            self.deliver(request, ENDINGS[self.pick(len(ENDINGS) - 1)], clock)
        elif kind <= 9 and self.replies:
            self.apply(self.replies[-1 - self.pick(min(len(self.replies), 6) - 1)])
        elif kind == 10 and self.commands:
            self.apply(self.commands[self.pick(len(self.commands) - 1)])  # comes once more
        elif kind == 11:
            event = self.command()
            if self.apply(event) is not None:
                self.commands.append(event)

    def hold(self) -> HoldView | None:
        """The hold on one of the agents, mostly none."""
        now = self.world.now
        until = [None, None, None, now + 20_000, now + 400_000][self.pick(4)]
        return None if until is None else HoldView(until)

    def command(self) -> OperatorEvent:
        """What a person might ask, who looks at the remote service before saying an outcome."""
        seen = [None, None, self.world.task.version, 1][self.pick(3)]
        asked = CommandSource(
            f"c-{len(self.commands) + len(self.refusals)}", "ann", seen_version=seen
        )
        names = list(self.plan.steps)
        name = names[self.pick(len(names) - 1)]
        some = (name,) if self.pick(1) else ()
        flag = bool(self.pick(1))
        # A copy of a refused request may have succeeded: whoever asks for a fresh key looks first.
        fresh = flag and not self.remote.standing
        asks: list[Callable[[], OperatorEvent]] = [
            lambda: Resubmit(asked),
            lambda: Resubmit(asked, some, fresh_key=fresh),
            lambda: Resubmit(asked, again=True),
            lambda: UndoPart(asked, some) if some else UndoAsked(asked),
            lambda: Cancel(asked, undo=flag),
            lambda: self.resolution(asked, name),
            lambda: Extend(asked, 10, name if some else None),
            lambda: RunNow(asked),
            lambda: Erase(asked),
        ]
        return asks[self.pick(len(asks) - 1)]()

    def resolution(self, asked: CommandSource, name: str) -> Resolve:
        record = self.world.record(name)
        key = idempotency_key(self.world.task.task_id, name, PERFORM, record)
        event = Resolve(asked, name, did=(name, key) in self.remote.standing)
        if not event.did:
            self.refused.add(key)  # whoever says so knows that no call is on its way
        if record.process_state in (ProcessState.UNDOING, ProcessState.UNDO_ERROR):
            event = replace(event, did=True)
            try:
                self.world.decide(event)
            except Refused:
                return event
            self.remote.undo(name, key)  # by hand, and then it is reported
        return event

    # --- fairness ----------------------------------------------------------------------------

    def live(self, moments: int) -> None:
        """So many things happen; what is owed is sent now and then."""
        for _ in range(moments):
            self.happen()
            if self.pick(5) == 0:
                self.world.deliver_owed()

    def deliver_all_once_more(self) -> None:
        """All that was ever sent comes again, and is done, after the end."""
        for request in list(self.requests):
            self.deliver(request, "done")
        while self.replies:
            self.apply(self.replies.pop())

    def bring_to_its_end(self, *, inspections_only: bool = False) -> None:
        """From here on the services work. Messages arrive, or only the supervisor's do."""
        most = 200 * len(self.plan.steps) + 200
        done = 0
        self.starts.clear()
        self.world.agents = {}
        while not self.world.task.ended:
            most -= 1
            assert most > 0, f"the task goes on for ever: {self.world.task}"
            if inspections_only or (not self.starts and done == len(self.requests)):
                assert self.world.task.lane.startswith("open")
                self.world.wait_until(due(self.world.task, self.world.now))
                self.apply(Inspect())
                self.deliver_starts()
            while done < len(self.requests):
                if not inspections_only:
                    self.deliver(self.requests[done], "done")
                    while self.replies:
                        self.apply(self.replies.pop())
                done += 1
            if not inspections_only:
                self.deliver_starts()
            self.world.task = replace(
                self.world.task, due_at=due(self.world.task, self.world.now)
            )  # the supervisor's part

    def deliver_starts(self) -> None:
        while self.starts:
            self.apply(self.starts.pop())

    # --- what holds --------------------------------------------------------------------------

    def check_request(self, request: AgentRequest) -> None:
        if request.operation == UNDO:
            name, task = request.step, self.world.task
            assert request.perform_key is not None
            assert request.idempotency_key == request.perform_key.replace("/perform", "/undo")
            assert request.lock == task.step(name).locked_by
            for_good = task.ending is not None and task.ending.undo
            assert for_good or task.step(name).after_undo is not None
            if not self.remote.fences(name):
                sent = [
                    other.complete_by
                    for other in self.requests
                    if other.operation == PERFORM and other.idempotency_key == request.perform_key
                ]
                assert self.world.now >= max(sent, default=0) + 5 * SECOND

    def check_effects(self) -> None:
        task, plan = self.world.task, self.plan
        for name, step in plan.steps.items():
            record = task.step(name)
            key = idempotency_key(task.task_id, name, PERFORM, record)
            if step.compensation is None:
                continue
            assert len(self.remote.keys(name)) <= 1, "an effect never stands twice"
            if record.process_state is ProcessState.PROCESSED:
                assert self.remote.keys(name) == [key]
            if record.process_state is ProcessState.UNDONE or task.state is TaskState.UNDONE:
                assert not self.remote.keys(name), f"{name} is undone and stands"
            if record.process_state is ProcessState.SKIPPED:
                assert not self.remote.keys(name), f"{name} is left out and stands"
        if task.state is TaskState.COMPLETED:
            assert all(task.step(name).process_state in DONE for name in plan.steps)


def drawn(draws: Sequence[int]) -> Pick:
    """Draws that were made beforehand, and 0 after them."""
    left = iter(draws)
    return lambda most: next(left, 0) % (most + 1)
