"""Runs agents in a world: the given agents, and stand-ins for agents that are not given."""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from roundsman.agents.agent import Agent, Answer, answer_again
from roundsman.agents.author_errors import leaves_of
from roundsman.agents.call_notes import CallNotes
from roundsman.agents.callbacks import Callback
from roundsman.agents.outcomes import DidNotHappen, Happened
from roundsman.agents.request import Perform, StepRequest, own_request
from roundsman.definition.plan import Plan
from roundsman.definition.workflow import Step, Workflow
from roundsman.errors import PermanentError
from roundsman.model.instants import MINUTE, SECOND, milliseconds
from roundsman.model.json import Json
from roundsman.model.task import PERFORM
from roundsman.ports import PayloadStore
from roundsman.wire.messages import AgentRequest
from roundsman_testing.faults import Crash
from roundsman_testing.ledger import EffectKey, Moment
from roundsman_testing.world.guards import WorldGuards
from roundsman_testing.world.services import PROBE, REMIND, CallEnd, ScriptedServices

if TYPE_CHECKING:
    from roundsman.agents.heartbeat import SendNow

T = TypeVar("T")

LOOKS = object()
"""What the probe of a stand-in returns: the world looks for the effect."""

FUNCTION_LASTS = 15 * MINUTE
"""The timeout of an agent's function, in ms: long enough not to end an attempt before complete-by.
On AWS the template has to ensure that."""


def all_agents(workflows: Collection[Workflow], given: Iterable[Agent]) -> dict[str, Agent]:
    """The agents of the workflows by name: the given ones, and a stand-in for each missing one.

    Raises ValueError if two agents have one name, or no step uses a given agent, and
    DefinitionError if an agent lacks a function for one of its steps.
    """
    agents: dict[str, Agent] = {}
    for agent in given:
        if agents.setdefault(agent.name, agent) is not agent:
            raise ValueError(
                f"two agents are named {agent.name!r}; give one that does all its steps"
            )
    asked = {
        name for workflow in workflows for step in workflow.all_steps for name in step.agent_names()
    }
    if idle := sorted(agents.keys() - asked):
        known = ", ".join(sorted(asked))
        raise ValueError(f"no step of this world is of agent {idle[0]!r}; the steps' are {known}")
    for agent in agents.values():
        agent.check_functions(tuple(workflows)[::-1])  # of two versions, the first is the newest
    stand_ins: dict[str, Agent] = {}
    bound: dict[tuple[str, str], Step] = {}  # workflows, and versions of one, may share a step
    for workflow in workflows:
        for step in workflow.all_steps:
            for name in step.agent_names():
                found = bound.get((name, step.name))
                if name not in agents and (found is None or found.compensation is None):
                    bound[name, step.name] = step
    for (name, _), step in bound.items():
        _bind(stand_ins.setdefault(name, Agent(name)), step)
    return agents | stand_ins


def _bind(agent: Agent, step: Step) -> None:
    def perform(request: StepRequest) -> Mapping[str, Json]:
        request.progress()
        return {"done": request.step}

    def undo(_request: StepRequest) -> None:
        return None

    def remind(_request: StepRequest) -> None:
        return None

    def probe(_request: StepRequest) -> object:
        return LOOKS

    agent.performs(step)(perform)
    agent.reminds(step)(remind)
    if step.compensation is not None:
        agent.compensates(step)(undo)
    if step.probe_outlives_key:
        agent.probes(step)(probe)


class UntypedError(ValueError):
    """A PermanentError has a sentence in place of its type."""


def check_typed(step: str, error: Exception | None) -> None:
    """Raises UntypedError if the error is a PermanentError without a type."""
    if isinstance(error, PermanentError) and error.untyped:
        raise UntypedError(
            f"{step}: PermanentError({error.message!r}) has a sentence in place of its type; write "
            f'PermanentError("CardDeclined", {error.message!r}) with a type of yours'
        )


@dataclass
class RequestRun:
    """One request while its agent handles it.

    Each visit has its own clock, so a slow call or a wait does not delay other messages.
    """

    agent: Agent
    request: AgentRequest
    plan: Plan
    services: ScriptedServices
    guards: WorldGuards
    call_notes: CallNotes
    payloads: PayloadStore
    world_clock: Callable[[], int]
    on_call: Callable[[str, AgentRequest, int], None]
    """Called before each call of the agent's function, with the instant by the agent's clock."""
    lands_late: Callable[[EffectKey, bool, int], None]
    """Called with an effect that will happen late, whether its service is fenced, and the delay in
    ms."""
    spent: int = 0
    """The time since its invocation began its calls, in ms: an earlier request may take some."""
    called_at: int = 0
    """When the last call of the agent's function began (epoch ms)."""
    answers_in: int | None = None
    """The delay (ms) of the callback's answer; None if no answer is planned."""
    asked_until: int | None = None
    """When the answer of the callback is overdue (epoch ms); None if no callback was returned."""
    unforeseen: Exception | None = None
    """The unexpected exception of the agent's function, if there was one."""
    refusal: PermanentError | None = None
    """The permanent error that the agent's function raised, if it did."""
    raised: Exception | None = None
    """What the last call of the agent's function raised, if it did."""

    def clock(self) -> int:
        """The agent's clock (epoch ms): the world's, plus the time that this visit has taken."""
        return self.world_clock() + self.spent

    def sleep(self, seconds: float) -> None:
        """Let time pass for this visit only, between two tries of one attempt."""
        self.spent += round(seconds * SECOND)

    def answer(
        self, *, redelivered: bool, send_now: "SendNow", jitter: Callable[[], float]
    ) -> Answer:
        """The agent's answer to the request.

        Raises Crash if its process dies before it replies, and UntypedError if its function raises
        a PermanentError without a type.
        """

        agent = self.agent.called_by(self._called)
        guard = self.guards.of(agent.name, self.clock, self.sleep)

        def attempt(asked: AgentRequest) -> Answer:
            return agent.answer(
                asked,
                clock=self.clock,
                function_ends_at=self.world_clock() + FUNCTION_LASTS,
                report=self._report,
                guard=guard,
                send_now=send_now,
                sleep=self.sleep,
                jitter=jitter,
                call_notes=self.call_notes,
                payloads=self.payloads,
            )

        answer = answer_again(self.request, attempt) if redelivered else attempt(self.request)
        check_typed(self.request.step, self.refusal)
        return answer

    def _report(self, error: Exception) -> None:
        """Keep an unexpected exception for the trace. Its text does not go into the reply."""
        self.unforeseen = error

    # --- the service -------------------------------------------------------------------------

    def _called(self, operation: str, function: Perform, request: StepRequest) -> object:
        try:
            return self._call(operation, function, request)
        except Exception as error:
            self.raised = error
            raise

    def _call(self, operation: str, function: Perform, request: StepRequest) -> object:
        """Call the agent's function, and end the call as the script of the service says."""
        self.called_at = self.clock()
        self.on_call(self.agent.name, self.request, self.called_at)
        end = self.services.end_of(self.request.step, operation)
        self.spent += end.takes
        if end.waits is not None and operation != REMIND:
            return self._hand_on(end)
        if end.not_yet is not None:
            self.leave_effect()
            return end.not_yet
        if end.wrong_call is not None:
            return end.wrong_call()
        if not end.done:
            if operation == PERFORM:
                self._lose(end)
            raise end.raised() or Crash("the call never ends")
        if operation == REMIND:
            self.services.reminders.append(own_request(request))
        try:
            value = self._value_of(function, request)
        except Exception as error:
            found = [one for one in leaves_of(error) if isinstance(one, PermanentError)]
            self.refusal = max(found, key=lambda one: one.untyped, default=None)
            raise
        if isinstance(value, Callback):
            self._note_asked(value)
        elif operation not in (PROBE, REMIND):
            self.leave_effect()
        if end.dies:
            raise Crash("the agent dies with its answer")
        if failed := end.raised():
            raise failed
        return value if end.answer is None else end.answer()

    def _value_of(self, function: Perform, request: StepRequest) -> object:
        value = function(request)
        return self._found() if value is LOOKS else value

    def _found(self) -> Happened | DidNotHappen:
        """What a probe says that finds the effects of the step without their keys."""
        request = self.request
        standing = self.services.ledger.standing(request.task_id)
        if any(effect.step == request.step for effect in standing):
            return Happened({"done": request.step})
        return DidNotHappen()

    def _hand_on(self, end: CallEnd) -> Callback:
        """Return a Callback, as a function does whose work is finished by an outside system."""
        if end.done:
            self.leave_effect()
        self.answers_in = end.answers_in
        every = None if end.reminds is None else timedelta(milliseconds=end.reminds)
        asked = Callback(within=timedelta(milliseconds=end.waits or 0), remind_every=every)
        self._note_asked(asked)
        return asked

    def _note_asked(self, asked: Callback) -> None:
        if self.request.operation == PERFORM:
            self.asked_until = self.clock() + milliseconds(asked.within)

    def leave_effect(self) -> None:
        """Enter the effect of the call in the ledger.

        Raises PermanentError if the service is fenced and an undo has spent the key.
        """
        request, ledger = self.request, self.services.ledger
        when = Moment(self._lands_at(), self._key_lifetime)
        if request.operation != PERFORM:
            ledger.undo(request.task_id, request.perform_key or request.idempotency_key, when)
        elif not ledger.perform(self.effect, fenced=self.fenced, when=when):
            raise PermanentError("KeyUndone", "an undo has spent this key")

    @property
    def effect(self) -> EffectKey:
        """The effect of the request's perform."""
        return EffectKey(self.request.task_id, self.request.step, self.request.idempotency_key)

    @property
    def fenced(self) -> bool:
        """Whether the service rejects a perform whose key an undo has spent."""
        step = self.plan.defined(self.request.step)
        return step is not None and step.fences_late_performs

    @property
    def _key_lifetime(self) -> int | None:
        """How long the service remembers keys, in ms; None for ever."""
        step = self.plan.defined(self.request.step)
        return None if step is None else step.key_lifetime

    def _lose(self, end: CallEnd) -> None:
        if end.lands_in is None:
            return
        left = self._latest() - self.clock()
        hangs = self.fenced and self._key_lifetime is None
        after = end.lands_in if hangs else max(0, min(end.lands_in, left))
        self.lands_late(self.effect, self.fenced, self.spent + after)

    def _lands_at(self) -> int:
        """When the effect of a call that has ended came about (epoch ms)."""
        return self.clock() if self._key_lifetime is None else min(self.clock(), self._latest())

    def _latest(self) -> int:
        """When the effect of this call comes about at the latest, if nothing fences it (epoch ms).

        That is when the request is to be completed by. A service that forgets keys cannot fence a
        call that hangs for longer than its key lasts.
        """
        return max(self.request.complete_by, self.called_at)
