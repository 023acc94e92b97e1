"""The API for authors of agents: it binds functions to steps and calls them for each attempt.

    payment = Agent("payment", WORKFLOWS)

    @payment.performs(charge_card)
    def charge(request: StepRequest) -> Json: ...

    @payment.compensates(charge_card)
    def refund(request: StepRequest) -> None: ...

    handler = payment.lambda_handler

An agent only answers requests; it never reads a task's record. After `complete_by` it sends no
reply. The module has no side effects other than those of the author's functions and of the
callables that are passed in.
"""

import random
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol, TypeAlias, TypeVar

from roundsman.agents.attempt import (
    DEPLOYED_WITHIN,
    NO_TIME_RETRY_AFTER,
    Attempt,
    Jitter,
    Report,
    Sleep,
)
from roundsman.agents.awaited import awaited
from roundsman.agents.call_notes import NO_NOTES, CallNote, CallNotes
from roundsman.agents.callbacks import callback_token
from roundsman.agents.guard import Guard, NoGuard
from roundsman.agents.heartbeat import Heartbeat, SendNow, interval_of
from roundsman.agents.outcomes import (
    WRONG_THEN,
    held,
    permanent,
    progress,
    unexpected,
)
from roundsman.agents.request import Perform, StepRequest, step_request
from roundsman.definition.workflow import Step, Workflow
from roundsman.engine.request_deadlines import PATIENCE
from roundsman.errors import DefinitionError
from roundsman.model.checks import check_name, check_type
from roundsman.model.events import Outcome
from roundsman.model.instants import SECOND, format_duration, milliseconds
from roundsman.model.json import Json
from roundsman.model.record_limits import LONGEST_MESSAGE
from roundsman.model.task import PERFORM, Effect, StepError, step_of
from roundsman.ports import Clock, PayloadStore
from roundsman.wire.messages import AgentRequest, AttemptResult, Reply

__all__ = [
    "NO_HANDLER",
    "Agent",
    "Answer",
    "Handler",
    "LambdaContext",
    "NoReply",
    "Perform",
    "Reminded",
    "StepRequest",
]

REPLY_WITHIN = 2 * SECOND
"""ms that are reserved before the function's timeout, to send the reply and retry it once."""

REPORT_WITHIN = SECOND
"""The most ms that are reserved before `complete_by`, so that a call that hangs can be reported."""

LEAST_SHARE = 2
"""An attempt with less than 1/2 of its step's time left is not started."""

CUT_SHORT = 4
"""An attempt that starts with less than 3/4 of its step's time was cut short by its queue."""

NO_HANDLER = "NoHandler"
TOO_LATE = "TooLate"
REMIND = "remind"
UNGUARDED = NoGuard()

F = TypeVar("F", bound=Perform)


@dataclass(frozen=True, slots=True)
class NoReply:
    """No reply may be sent, because `complete_by` has passed."""

    reason: str
    """For the log."""


@dataclass(frozen=True, slots=True)
class Reminded:
    """The request was a reminder, to which no reply is sent, whatever became of it."""

    error: StepError | None = None
    """Why the function to remind was not called or has failed; None if it returned."""


Answer: TypeAlias = Reply | NoReply | Reminded


def answer_again(request: AgentRequest, answer: Callable[[AgentRequest], Answer]) -> Answer:
    """Answer a redelivered request: an earlier reader may have died after it called the service."""
    if request.operation != PERFORM:
        return answer(request)
    answered = answer(replace(request, read_before=True))
    if isinstance(answered, Reply) and answered.outcome is Outcome.HELD and answered.effect is None:
        return replace(answered, outcome_unknown=True)
    return answered


def attempt_ends_at(
    request: AgentRequest, now: int, function_ends_at: int, within: int | None = None
) -> int:
    """The instant (epoch ms) by which an attempt that begins now must end, so that it can reply.

    `within` is the time of the step in ms; it counts from now, because the rest of the request's
    time is for waiting in its queue. None: the attempt may use all of the request's time.
    """
    by = request.complete_by if within is None else min(request.complete_by, now + within)
    report_within = min(REPORT_WITHIN, (by - now) // 10)
    return min(by - report_within, function_ends_at - REPLY_WITHIN)


class LambdaContext(Protocol):
    """The part of AWS Lambda's context object that is used."""

    def get_remaining_time_in_millis(self) -> int:
        """The time in ms until Lambda ends this invocation."""


Handler: TypeAlias = Callable[[dict[str, object], LambdaContext], dict[str, object]]
"""A Lambda function's entry point for SQS events with partial batch responses."""


class Agent:
    """The functions that wrap one remote service, bound to steps.

    `name` is the agent's name in the steps. `workflows` are the workflows of the application: with
    them, a step of this agent that has no function is refused when `lambda_handler` is read.
    Raises DefinitionError for an invalid name.
    """

    def __init__(self, name: str, workflows: Mapping[str, Workflow] | None = None) -> None:
        check_name(f"agent {name!r}", name)
        self.name = name
        self._workflows = dict(workflows or {})
        self._steps: dict[str, Step] = {}
        self._functions: dict[tuple[str, str], Perform] = {}

    def performs(self, step: Step) -> Callable[[F], F]:
        """Bind the function that performs the step.

        Raises DefinitionError if the function cannot be bound.
        """
        return self._binder(step, "perform")

    def compensates(self, step: Step) -> Callable[[F], F]:
        """Bind the function that undoes the step.

        Raises DefinitionError if the step has no compensation or the function cannot be bound.
        """
        check_type(f"agent {self.name!r}: the compensated step", step, Step)
        if step.compensation is None:
            raise DefinitionError(
                f"agent {self.name!r}: step {step.name!r} has no compensation; give it "
                "compensation=Compensation(), or remove the function"
            )
        return self._binder(step, "undo")

    def probes(self, step: Step) -> Callable[[F], F]:
        """Bind the function that finds out whether the effect with `perform_key` took place.

        It returns Happened(result) or DidNotHappen(). It is called before an operation is repeated
        or undone if the outcome of an earlier attempt is unknown. Raises DefinitionError if it
        cannot be bound.
        """
        return self._binder(step, "probe")

    def reminds(self, step: Step) -> Callable[[F], F]:
        """Bind the function that reminds the outside system or person of the step's callback.

        It is called each `Callback.remind_every` while the step waits. What it returns is ignored.
        An error is only logged: the step waits on, and the next reminder comes at its time. Raises
        DefinitionError if it cannot be bound.
        """
        return self._binder(step, REMIND)

    @property
    def bound(self) -> frozenset[tuple[str, str]]:
        """The functions that are bound: the name of the step, and `perform`, `undo`, `probe` or
        `remind`."""
        return frozenset(self._functions)

    def missing_functions(self, workflows: Iterable[Workflow] = ()) -> list[str]:
        """Return one sentence for each function that this agent lacks; empty if there is none.

        A step of the agent needs a function that performs it, one that undoes it if it has a
        compensation, and a probe if the undo is verified or the probe outlives the key. Checked are
        the steps of `workflows`, of the workflows that the agent was created with, and the steps
        that are bound. A function of a step that no workflow has is not a problem: orders under an
        older plan may need it.
        """
        given = {workflow.name: workflow for workflow in workflows}
        every = [*given.values(), *(w for n, w in self._workflows.items() if n not in given)]
        asked = [(step, f" of workflow {w.name!r}") for w in every for step in w.all_steps]
        found: dict[tuple[str, str], str] = {}
        for step, place in (*asked, *((step, "") for step in self._steps.values())):
            if self.name not in step.agent_names():
                continue
            where = f"agent {self.name!r}: step {step.name!r}{place}"
            if (step.name, "perform") not in self._functions:
                sentence = f"{where} has no function; add one with @{self.name}.performs(...)"
                found.setdefault((step.name, "perform"), sentence)
            if step.compensation is not None and (step.name, "undo") not in self._functions:
                sentence = (
                    f"{where} has a compensation but no function that undoes it; add one with "
                    f"@{self.name}.compensates(...), or remove the compensation"
                )
                found.setdefault((step.name, "undo"), sentence)
            verifies = step.compensation is not None and step.compensation.verify
            if step.probe_outlives_key and (step.name, "probe") not in self._functions:
                sentence = (
                    f"{where} says that its probe finds the effect without the key, but has no "
                    f"probe; add one with @{self.name}.probes(...), or remove probe_outlives_key"
                )
                found.setdefault((step.name, "probe"), sentence)
            if verifies and (step.name, "probe") not in self._functions:
                sentence = (
                    f"{where} has a compensation that is verified, but no probe; add one with "
                    f"@{self.name}.probes(...), or remove verify=True"
                )
                found.setdefault((step.name, "probe"), sentence)
        return list(found.values())

    def check_functions(self, workflows: Iterable[Workflow] = ()) -> None:
        """Raise DefinitionError if the agent lacks a function (see `missing_functions`)."""
        if missing := self.missing_functions(workflows):
            raise DefinitionError("; ".join(missing))

    def called_by(self, call: Callable[[str, Perform, StepRequest], object]) -> "Agent":
        """Return a copy of the agent that calls `call` instead of each bound function. For tests.

        It gets the operation ("perform", "undo", "probe" or "remind"), the bound function and the
        request.
        """
        agent = Agent(self.name)
        agent._steps = self._steps
        agent._functions = {
            (step, operation): partial(call, operation, function)
            for (step, operation), function in self._functions.items()
        }
        return agent

    def time_of(self, request: AgentRequest) -> int:
        """The time in ms that an attempt may take.

        For a step that is not bound here, it is all of the request's time.
        """
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
        """When the scheduler first checks the step (epoch ms), at or before `complete_by`.

        The time between the two is for waiting in the queue (`roundsman.engine.request_deadlines`).
        """
        patience = PATIENCE * self.time_of(request)
        is_patient = request.complete_by - request.sent_at > patience
        return request.complete_by - patience if is_patient else request.complete_by

    @property
    def lambda_handler(self) -> Handler:
        """The function's entry point: `handler = payment.lambda_handler`.

        Raises DefinitionError if a step of this agent lacks a function (see `missing_functions`).
        """
        self.check_functions()
        # The only import of an adapter by the core: with it, an author's module needs no AWS
        # names. The import is here and not at the top, so that an agent outside Lambda (a test,
        # another host) needs no Powertools. An author's module reads this property when it is
        # imported, so the import runs in Lambda's init phase, which has a full processor, and
        # not in the first request.
        from roundsman.aws.handlers.agent import handler_of

        return handler_of(self)

    def answer(  # noqa: PLR0913  # what an attempt needs of its host
        self,
        request: AgentRequest,
        *,
        clock: Clock,
        function_ends_at: int,
        report: Report = lambda _: None,
        guard: Guard = UNGUARDED,
        send_now: SendNow = lambda _: None,
        sleep: Sleep = time.sleep,
        jitter: Jitter = random.random,
        call_notes: CallNotes = NO_NOTES,
        payloads: PayloadStore | None = None,
    ) -> Answer:
        """Make the attempt and return its reply, or NoReply if `complete_by` has passed.

        For a reminder, call the function to remind and return Reminded.

        - `function_ends_at`: when the Lambda function times out (epoch ms).
        - `report`: called with each unexpected exception. Its text may contain order contents, so
          it is not part of the reply.
        - `guard`: every call of an author's function goes through it.
        - `send_now`: sends a reply at once, while the attempt continues (progress).
        - `sleep`: takes seconds. `jitter`: returns numbers in [0, 1).
        - `call_notes`: used only for performs of steps with several agents.
        - `payloads`: where functions read and store payloads; None if the stack has no bucket.

        Exceptions that end the process (SystemExit, KeyboardInterrupt) are not caught.
        """
        means = _Means(clock, report, guard, send_now, sleep, jitter, call_notes, payloads)
        if request.reminder is not None:
            return self._reminded(request, function_ends_at, means)
        if late := _late(request, clock()):
            return NoReply(f"the request was read {late} after complete-by; not attempted")
        ended = self._ended(request, function_ends_at, means)
        if late := _late(request, now := clock()):
            return NoReply(f"the attempt ended {late} after complete-by")
        return self._reply(request, ended, now)

    def _binder(self, step: Step, operation: str) -> Callable[[F], F]:
        where = f"agent {self.name!r}"
        check_type(f"{where}: the bound step", step, Step)
        if not step.agent_names():
            raise DefinitionError(f"{where}: step {step.name!r} is a sleep, which has no function")
        if self.name not in step.agent_names():
            agents = " and ".join(step.agent_names())
            raise DefinitionError(
                f"{where}: step {step.name!r} belongs to agent {agents}; bind it there, "
                "or change the step's agent"
            )
        if self._steps.setdefault(step.name, step) != step:
            raise DefinitionError(
                f"{where}: two different steps are named {step.name!r}; rename one"
            )

        def bind(function: F) -> F:
            if (step.name, operation) in self._functions:
                raise DefinitionError(
                    f"{where}: step {step.name!r} has two functions for {operation}; remove one"
                )
            self._functions[step.name, operation] = awaited(function)
            return function

        return bind

    def _ended(
        self, request: AgentRequest, function_ends_at: int, means: "_Means"
    ) -> AttemptResult:
        name = step_of(request.step)
        function = self._functions.get((name, request.operation))
        if function is None:
            # Code and plan are of different versions. A deployment repairs that, so the failure is
            # transient.
            message = (
                f"the code of the {self.name} agent has no function to {request.operation} "
                f"{request.step}; deploy the agent with it: an order keeps the steps that its "
                "workflow had when it was submitted"
            )
            return unexpected(NO_HANDLER, message, DEPLOYED_WITHIN)
        if request.probe_only and (name, "probe") not in self._functions:
            message = (
                f"the code of the {self.name} agent has no probe of {request.step}, and its "
                "service may have forgotten the key of the order; deploy the agent with it"
            )
            return unexpected(NO_HANDLER, message, DEPLOYED_WITHIN)
        if not isinstance(request.input, Mapping):
            return permanent("InputNotObject", "the order in the request is not a JSON object")
        now = means.clock()
        step = self._steps[name]
        within = self.time_of(request)
        ends_at = attempt_ends_at(request, now, function_ends_at, within)
        note = _note(step, request, ends_at, means)
        starved = _too_late_to_start(request, within, now)
        if now >= ends_at:
            starved = "the requests before it in its batch left no time for it"
        if starved:
            ended = held(f"{starved}; not attempted", NO_TIME_RETRY_AFTER, outcome_unknown=False)
            return note.proven(ended, calls=0)
        undo = step.compensation
        show = self._progress(request, step, means).show
        attempt = self._attempt(request, request.input, function, ends_at, means, note, show)
        ended = replace(
            attempt,
            probe=self._functions.get((name, "probe")),
            fences_late_performs=undo is not None and undo.fences_late_performs,
            probe_only=request.probe_only,
            verifies_undo=undo is not None and undo.verify,
            reminds=(name, REMIND) in self._functions,
        ).make()
        over = means.clock() >= ends_at
        if over and ended.outcome is Outcome.TRANSIENT and _was_cut_short(request, within, now):
            return _cut_off(ended)
        return ended

    def _reminded(self, request: AgentRequest, function_ends_at: int, means: "_Means") -> Reminded:
        """Call the function to remind, as an attempt is made: up to three tries, by the guard."""
        function = self._functions.get((step_of(request.step), REMIND))
        if function is None:
            why = f"the code of the {self.name} agent has no function to remind of {request.step}"
            return Reminded(StepError(NO_HANDLER, why))
        now = means.clock()
        ends_at = attempt_ends_at(request, now, function_ends_at, self.time_of(request))
        if now >= ends_at or not isinstance(request.input, Mapping):
            why = "the wait has ended or the next reminder is due; not reminded"
            return Reminded(StepError(TOO_LATE, why))

        def call(asked: StepRequest) -> None:
            function(asked)

        note = CallNote(notes=NO_NOTES, request=request, ends_at=ends_at, clock=means.clock)
        ended = self._attempt(request, request.input, call, ends_at, means, note).make()
        return Reminded(ended.error)

    def _attempt(
        self,
        request: AgentRequest,
        order: Mapping[str, Json],
        function: Perform,
        ends_at: int,
        means: "_Means",
        note: CallNote,
        show_progress: Callable[[str], None] = lambda _: None,
    ) -> Attempt:
        return Attempt(
            request=step_request(
                request,
                order,
                callback_token=callback_token(request, self.name),
                ends_at=ends_at,
                clock=means.clock,
                show_progress=show_progress,
                payloads=means.payloads,
            ),
            function=function,
            agent=self.name,
            hide=partial(_without_masked_values, request),
            guard=means.guard,
            report=means.report,
            sleep=means.sleep,
            jitter=means.jitter,
            note=note,
            tenant=request.tenant,
        )

    def _progress(self, request: AgentRequest, step: Step, means: "_Means") -> Heartbeat:
        def sign(now: int, note: str) -> Reply:
            sent = progress(_without_masked_values(request, note)[:LONGEST_MESSAGE])
            return self._reply(request, sent, now)

        return Heartbeat(
            every=interval_of(step, request),
            complete_by=request.complete_by,
            clock=means.clock,
            sign=sign,
            send_now=means.send_now,
            report=means.report,
        )

    def _reply(self, request: AgentRequest, ended: AttemptResult, now: int) -> Reply:
        ended = _without_masked(request, ended)
        return Reply.of(
            ended,
            task_id=request.task_id,
            step=request.step,
            operation=request.operation,
            lock=request.lock,
            idempotency_key=request.idempotency_key,
            agent=self.name,
            finished_at=now,
        )


def _without_masked_values(request: AgentRequest, text: str) -> str:
    """The text with MASK for each value of the request that must be in no text of its reply."""
    if not request.masked:
        return text
    from roundsman.engine.masks import texts_of_request  # late: few plans mask anything

    return texts_of_request(request).text(text, LONGEST_MESSAGE)


def _without_masked(request: AgentRequest, ended: AttemptResult) -> AttemptResult:
    """The end of the attempt without masked values in the message of its error, which is cut.

    If a step that it adds is named by such a value, it has failed by a defect; its effect stands.
    """
    error = ended.error
    if error is not None:
        message = _without_masked_values(request, error.message)[:LONGEST_MESSAGE]
        return replace(ended, error=replace(error, message=message))
    if ended.end is not None:
        why = _without_masked_values(request, ended.end.why)[:LONGEST_MESSAGE]
        return replace(ended, end=replace(ended.end, why=why))
    if not ended.then or not request.masked:
        return ended
    from roundsman.engine.masks import named_by_masked, texts_of_request

    texts = texts_of_request(request)
    if named := [one.name for one in ended.then if texts.stands_in(one.name)]:
        wrong = unexpected(WRONG_THEN, named_by_masked(request.step, step_of(named[0])))
        return replace(wrong, effect=Effect.STANDS)
    return ended


def _too_late_to_start(request: AgentRequest, within: int, now: int) -> str | None:
    """Why too little of the request's time is left to start the attempt; None if there is enough.

    A call that starts too late is likely to be cut off, and the attempt would fail because of its
    wait in the queue. The step is returned instead, and the next claim's `complete_by` allows for
    the queue.
    """
    whole = request.complete_by - request.sent_at
    left = request.complete_by - now
    is_patient = whole > PATIENCE * within  # the next request has as much time again
    if left >= (within if is_patient else min(within, whole) // LEAST_SHARE):
        return None
    time_left = f"{format_duration(left)} of its {format_duration(whole)} left"
    return f"the request was read with {time_left}, because its queue has a backlog"


def _note(step: Step, request: AgentRequest, ends_at: int, means: "_Means") -> CallNote:
    """Create the call note of the attempt.

    Only performs of steps with several agents are noted: another agent can take only those over.
    """
    noted = request.operation == PERFORM and len(step.agent_names()) > 1
    return CallNote(
        notes=means.call_notes if noted else NO_NOTES,
        request=request,
        ends_at=ends_at,
        clock=means.clock,
    )


def _was_cut_short(request: AgentRequest, within: int, now: int) -> bool:
    """Whether an attempt that began at `now` had too little time because of its queue.

    False if the request as sent had too little time: the task's end was too near, and the attempt
    fails for that reason.
    """
    enough = within - within // CUT_SHORT
    return request.complete_by - now < enough <= request.complete_by - request.sent_at


def _cut_off(ended: AttemptResult) -> AttemptResult:
    """Turn the failure of an attempt that its queue cut short into `held`, which is not counted.

    The call may have had its effect. The step is claimed again, with its whole time.
    """
    message = ended.error.message if ended.error else ""
    why = (
        f"the wait in the queue left too little time: {message}"
        if message
        else "too little time was left"
    )
    return held(why, NO_TIME_RETRY_AFTER, outcome_unknown=True)


@dataclass(frozen=True, slots=True)
class _Means:
    """The callables that an attempt uses; see `Agent.answer`."""

    clock: Clock
    report: Report
    guard: Guard
    send_now: SendNow
    sleep: Sleep
    jitter: Jitter
    call_notes: CallNotes
    payloads: PayloadStore | None


def _late(request: AgentRequest, now: int) -> str | None:
    """How long ago `complete_by` was, as text; None if it is still ahead.

    At `complete_by` itself the agent may not act any more.
    """
    return format_duration(now - request.complete_by) if now >= request.complete_by else None
