"""What the author of an agent writes against: functions bound to steps, and what they are given.

    payment = Agent("payment")

    @payment.performs(charge_card)
    def charge(request: StepRequest) -> Json: ...

    @payment.compensates(charge_card)
    def refund(request: StepRequest) -> None: ...

    handler = payment.lambda_handler

An agent answers requests and knows nothing else: it never sees a task's record. What it promises
the scheduler is here, and is pure but for the author's functions: after complete-by it is silent.
"""

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from inspect import iscoroutinefunction
from typing import Protocol, TypeAlias, TypeVar

from roundsman.agents.attempt import (
    DEPLOYED_WITHIN,
    NO_TIME_RETRY_AFTER,
    Attempt,
    Jitter,
    Report,
    Sleep,
)
from roundsman.agents.call_notes import NO_NOTES, CallNote, CallNotes
from roundsman.agents.callbacks import callback_token
from roundsman.agents.guard import Guard, NoGuard
from roundsman.agents.heartbeat import Heartbeat, SendNow, interval_of
from roundsman.agents.outcomes import AttemptResult, held, permanent, progress, transient
from roundsman.agents.request import Perform, StepRequest, step_request
from roundsman.engine.time_limits import PATIENCE
from roundsman.errors import DefinitionError
from roundsman.model._checks import check_name, check_type
from roundsman.model.events import Outcome
from roundsman.model.instants import SECOND, milliseconds, spoken
from roundsman.model.task import PERFORM, step_of
from roundsman.model.workflow import Step
from roundsman.ports import Clock
from roundsman.wire.messages import AgentRequest, Reply

__all__ = [
    "NO_HANDLER",
    "Agent",
    "Answer",
    "Handler",
    "LambdaContext",
    "NoReply",
    "Perform",
    "StepRequest",
]

REPLY_WITHIN = 2 * SECOND  # of the function's own time, kept for sending the reply with a repeat
SAID_BEFORE = SECOND  # of complete-by, at most: a call that hangs ends in a reason that is heard
LEAST_SHARE = 2  # with less than half of its step's time left, a request is not begun
CUT_SHORT = 4  # an attempt that is begun with a quarter of its step's time gone was cut short
NO_HANDLER = "NoHandler"
UNGUARDED = NoGuard()

F = TypeVar("F", bound=Perform)


@dataclass(frozen=True, slots=True)
class NoReply:
    """Nothing may be said of this request any more; `reason` is for the log."""

    reason: str


Answer: TypeAlias = Reply | NoReply


def answer_again(request: AgentRequest, answer: Callable[[AgentRequest], Answer]) -> Answer:
    """The answer to a request that was read before: who read it may have died after the call."""
    if request.operation != PERFORM:
        return answer(request)
    said = answer(replace(request, read_before=True))
    if isinstance(said, Reply) and said.outcome is Outcome.HELD and said.effect is None:
        return replace(said, outcome_unknown=True)
    return said


def attempt_ends_at(
    request: AgentRequest, now: int, function_ends_at: int, within: int | None = None
) -> int:
    """The instant by which an attempt that begins now has ended, in time to be heard.

    It has `within`, its step's own time in ms, from now on: what a request is given besides is for
    waiting in its queue. None: all that the request has.
    """
    by = request.complete_by if within is None else min(request.complete_by, now + within)
    said_before = min(SAID_BEFORE, (by - now) // 10)
    return min(by - said_before, function_ends_at - REPLY_WITHIN)


class LambdaContext(Protocol):
    """What is used of AWS Lambda's context object."""

    def get_remaining_time_in_millis(self) -> int:
        """The time until Lambda ends this invocation."""


Handler: TypeAlias = Callable[[dict[str, object], LambdaContext], dict[str, object]]
"""A Lambda function's entry point for SQS events with partial batch responses."""


class Agent:
    """The code that wraps one remote service; `name` is what steps call it by."""

    def __init__(self, name: str) -> None:
        check_name(f"agent {name!r}", name)
        self.name = name
        self._steps: dict[str, Step] = {}
        self._functions: dict[tuple[str, str], Perform] = {}

    def performs(self, step: Step) -> Callable[[F], F]:
        """Bind the function that does the step. Raises DefinitionError where it cannot be."""
        return self._binder(step, "perform")

    def compensates(self, step: Step) -> Callable[[F], F]:
        """Bind the function that undoes the step. Raises DefinitionError where it cannot be."""
        check_type(f"agent {self.name!r}: what is compensated", step, Step)
        if step.compensation is None:
            raise DefinitionError(
                f"agent {self.name!r}: step {step.name!r} has no compensation; give it "
                "compensation=Compensation(), or remove the function"
            )
        return self._binder(step, "undo")

    def probes(self, step: Step) -> Callable[[F], F]:
        """Bind the function that says whether the step's perform happened, by `perform_key`.

        It returns Happened(result) or DidNotHappen(), and is asked before anything is repeated
        or undone whose outcome nobody knows. Raises DefinitionError where it cannot be bound.
        """
        return self._binder(step, "probe")

    def called_by(self, call: Callable[[str, Perform, StepRequest], object]) -> "Agent":
        """The same agent with `call` in between: it is given perform, undo or probe, and what is
        bound to that, in place of which it is called. For tests.
        """
        agent = Agent(self.name)
        agent._steps = self._steps
        agent._functions = {
            (step, operation): partial(call, operation, function)
            for (step, operation), function in self._functions.items()
        }
        return agent

    def time_of(self, request: AgentRequest) -> int:
        """How long an attempt may take, in ms; of a step that is not bound here, all there is."""
        if request.within is not None:
            return request.within
        step = self._steps.get(step_of(request.step))
        if step is None:
            return request.complete_by - request.sent_at
        allowed = step.complete_within
        if request.operation == "undo" and step.compensation is not None:
            allowed = step.compensation.complete_within or allowed
        return milliseconds(allowed)

    def asked_at(self, request: AgentRequest) -> int:
        """When the scheduler asks for the answer: before the right to act is over (epoch ms).

        What lies between is for waiting in a queue.
        """
        patience = PATIENCE * self.time_of(request)
        is_patient = request.complete_by - request.sent_at > patience
        return request.complete_by - patience if is_patient else request.complete_by

    @property
    def lambda_handler(self) -> Handler:
        """The function's entry point: `handler = payment.lambda_handler`."""
        # The one arrow from the core to its adapters. An author's module then names nothing of
        # AWS; and since nothing is imported before this is asked for, an agent without Lambda
        # (a test, another host) needs no Powertools. Asked for at import, it is paid for in
        # Lambda's init phase, which has a whole processor, and not by the first request.
        from roundsman.aws.handlers.agent import handler_of

        return handler_of(self)

    def answer(
        self,
        request: AgentRequest,
        *,
        clock: Clock,
        function_ends_at: int,
        report: Report = lambda _: None,
        guard: Guard = UNGUARDED,
        say: SendNow = lambda _: None,
        sleep: Sleep = time.sleep,
        jitter: Jitter = random.random,
        call_notes: CallNotes = NO_NOTES,
    ) -> Answer:
        """Make the attempt, and say how it ended, or nothing where complete-by has passed.

        `function_ends_at` is epoch ms. `report` is given each exception that nobody foresaw:
        its text may hold order contents, so it goes into no reply. Every call of an author's
        function goes through `guard`. `say` sends a reply at once, while the work goes on.
        `sleep` is given seconds, and `jitter` returns numbers in [0, 1). `call_notes` are kept of
        what is performed for steps with several agents, and of nothing else. Exceptions that end
        the process (SystemExit, KeyboardInterrupt) pass through.
        """
        if late := _late(request, clock()):
            return NoReply(f"read {late} after complete-by; not attempted")
        means = _Means(clock, report, guard, say, sleep, jitter, call_notes)
        ended = self._ended(request, function_ends_at, means)
        if late := _late(request, now := clock()):
            return NoReply(f"finished {late} after complete-by")
        return self._reply(request, ended, now)

    def _binder(self, step: Step, operation: str) -> Callable[[F], F]:
        where = f"agent {self.name!r}"
        check_type(f"{where}: what is bound", step, Step)
        if self.name not in step.agent_names():
            agents = " and ".join(step.agent_names())
            raise DefinitionError(
                f"{where}: step {step.name!r} is of agent {agents}; bind it there, "
                "or change the step's agent"
            )
        if self._steps.setdefault(step.name, step) != step:
            raise DefinitionError(
                f"{where}: two different steps are named {step.name!r}; rename one"
            )

        def bind(function: F) -> F:
            if (step.name, operation) in self._functions:
                raise DefinitionError(
                    f"{where}: {operation} of step {step.name!r} is bound already; remove one"
                )
            if iscoroutinefunction(function):
                raise DefinitionError(
                    f"{where}: the function for {operation} of step {step.name!r} is async; "
                    "it is called, not awaited: use def"
                )
            self._functions[step.name, operation] = function
            return function

        return bind

    def _ended(
        self, request: AgentRequest, function_ends_at: int, means: "_Means"
    ) -> AttemptResult:
        name = step_of(request.step)
        function = self._functions.get((name, request.operation))
        if function is None:
            # Code older or newer than the plan: a deployment mends it, so nothing is given up.
            message = (
                f"the code of the {self.name} agent cannot {request.operation} {request.step}; "
                "deploy agent and plan of one version"
            )
            return transient(NO_HANDLER, message, DEPLOYED_WITHIN)
        if not isinstance(request.input, Mapping):
            return permanent("InputNotObject", "the order in the request is not a JSON object")
        now = means.clock()
        step = self._steps[name]
        within = self.time_of(request)
        ends_at = attempt_ends_at(request, now, function_ends_at, within)
        note = _note(step, request, ends_at, means)
        starved = _too_late_to_start(request, within, now)
        if now >= ends_at:
            starved = "those before it in its batch left no time for it"
        if starved:
            ended = held(f"{starved}; not attempted", NO_TIME_RETRY_AFTER, outcome_unknown=False)
            return note.proven(ended, calls=0)
        compensation = step.compensation
        ended = Attempt(
            request=step_request(
                request,
                request.input,
                callback_token=callback_token(request, self.name),
                ends_at=ends_at,
                clock=means.clock,
                show_progress=self._progress(request, step, means).show,
            ),
            function=function,
            agent=self.name,
            guard=means.guard,
            report=means.report,
            sleep=means.sleep,
            jitter=means.jitter,
            note=note,
            probe=self._functions.get((name, "probe")),
            fences_late_performs=compensation is not None and compensation.fences_late_performs,
        ).make()
        over = means.clock() >= ends_at
        if over and ended.outcome is Outcome.TRANSIENT and _was_cut_short(request, within, now):
            return _cut_off(ended)
        return ended

    def _progress(self, request: AgentRequest, step: Step, means: "_Means") -> Heartbeat:
        def sign(now: int, note: str) -> Reply:
            return self._reply(request, progress(note), now)

        return Heartbeat(
            every=interval_of(step, request),
            complete_by=request.complete_by,
            clock=means.clock,
            sign=sign,
            say=means.say,
            report=means.report,
        )

    def _reply(self, request: AgentRequest, ended: AttemptResult, now: int) -> Reply:
        return Reply(
            task_id=request.task_id,
            step=request.step,
            operation=request.operation,
            lock=request.lock,
            idempotency_key=request.idempotency_key,
            outcome=ended.outcome,
            agent=self.name,
            finished_at=now,
            result=ended.result,
            error=ended.error,
            retry_after=ended.retry_after,
            until=ended.until,
            outcome_unknown=ended.outcome_unknown,
            effect=ended.effect,
        )


def _too_late_to_start(request: AgentRequest, within: int, now: int) -> str | None:
    """Whether too little is left of the request's time to begin its attempt, in words.

    A call that is begun then is likely cut off, and the attempt would fail for having waited.
    Given back, it is claimed anew with a complete-by that allows for the queue.
    """
    whole = request.complete_by - request.sent_at
    left = request.complete_by - now
    is_patient = whole > PATIENCE * within  # a copy that is sent later has as long again
    if left >= (within if is_patient else min(within, whole) // LEAST_SHARE):
        return None
    return f"read with {spoken(left)} of its {spoken(whole)} left, since its queue is behind"


def _note(step: Step, request: AgentRequest, ends_at: int, means: "_Means") -> CallNote:
    """The note of the attempt's calls; no other agent can act in place of one that is alone."""
    noted = request.operation == PERFORM and len(step.agent_names()) > 1
    return CallNote(
        notes=means.call_notes if noted else NO_NOTES,
        request=request,
        ends_at=ends_at,
        clock=means.clock,
    )


def _was_cut_short(request: AgentRequest, within: int, now: int) -> bool:
    """Whether an attempt that began now had less than its step's time, because of its queue.

    Where the task's end left it no more, it has failed of that, and nothing is given back.
    """
    enough = within - within // CUT_SHORT
    return request.complete_by - now < enough <= request.complete_by - request.sent_at


def _cut_off(ended: AttemptResult) -> AttemptResult:
    """It failed when the time was over that its queue had left it: that is not the step's failure.

    The step is given back as one whose call was made, and is claimed again with its whole time.
    """
    said = ended.error.message if ended.error else ""
    why = f"its queue left it too little time: {said}" if said else "too little time was left"
    return held(why, NO_TIME_RETRY_AFTER, outcome_unknown=True)


@dataclass(frozen=True, slots=True)
class _Means:
    clock: Clock
    report: Report
    guard: Guard
    say: SendNow
    sleep: Sleep
    jitter: Jitter
    call_notes: CallNotes


def _late(request: AgentRequest, now: int) -> str | None:
    """How long after complete-by it is; at that very instant the right to act has ended."""
    return spoken(now - request.complete_by) if now >= request.complete_by else None
