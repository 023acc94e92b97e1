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

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from inspect import iscoroutinefunction
from typing import Protocol, TypeAlias, TypeVar

from roundsman.checks import check_name, check_type
from roundsman.errors import DefinitionError, PermanentError, TransientError
from roundsman.events import Outcome
from roundsman.messages import AgentRequest, Reply
from roundsman.ports import Clock
from roundsman.task import StepError, step_of
from roundsman.values import MINUTE, SECOND, Json, canonical_json, milliseconds, parse_json, spoken
from roundsman.workflow import LARGEST_RESULT, Step

REPLY_WITHIN = 2 * SECOND  # of the function's own time, kept for sending the reply with a repeat
WITHOUT_HANDLER_RETRY_AFTER = MINUTE  # about what a deployment of the missing code takes
NO_TIME_RETRY_AFTER = SECOND  # the next invocation has its full time at once
LONGEST_WAIT = timedelta(days=365)  # an instant must stay one that can be said
LONGEST_TYPE, LONGEST_MESSAGE = 100, 1_000  # the reason goes into the record, which is 400 KB

NO_HANDLER = "NoHandler"
NO_TIME_LEFT = "NoTimeLeft"
RESULT_NOT_JSON = "ResultNotJson"
RESULT_TOO_LARGE = "ResultTooLarge"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRequest:
    """One attempt at a step, as the author's function sees it.

    `idempotency_key` is the same in every attempt at this effect: pass it on. `perform_key` is
    the key of the perform: of this very one, or of the one that an undo undoes. `complete_by`
    is epoch ms; what is answered after it is thrown away. `outcome_unknown` says that an earlier
    attempt may have had its effect. `input` is the order; `results` are those of the steps that
    came before, by step.
    """

    task_id: str
    workflow: str
    step: str
    operation: str
    idempotency_key: str
    perform_key: str
    attempt: int
    complete_by: int
    outcome_unknown: bool
    input: Mapping[str, Json]
    results: Mapping[str, Json]
    ends_at: int = field(repr=False)
    clock: Clock = field(repr=False, compare=False)

    def time_left(self) -> timedelta:
        """What is left until complete-by or until the function must reply; zero when over."""
        return timedelta(milliseconds=max(0, self.ends_at - self.clock()))


Perform: TypeAlias = Callable[[StepRequest], object]
"""What is bound to a step; it returns the step's result, which must be JSON."""

F = TypeVar("F", bound=Perform)


@dataclass(frozen=True, slots=True)
class Silence:
    """Nothing may be said of this request any more; `reason` is for the log."""

    reason: str


Answer: TypeAlias = Reply | Silence
Report: TypeAlias = Callable[[Exception], None]


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

    @property
    def lambda_handler(self) -> Handler:
        """The function's entry point: `handler = payment.lambda_handler`."""
        # The one arrow from the core to its adapters. An author's module then names nothing of
        # AWS; and since nothing is imported before this is asked for, an agent without Lambda
        # (a test, another host) needs no Powertools. Asked for at import, it is paid for in
        # Lambda's init phase, which has a whole processor, and not by the first request.
        from roundsman.aws.agent_lambda import handler_of

        return handler_of(self)

    def answer(
        self,
        request: AgentRequest,
        *,
        clock: Clock,
        function_ends_at: int,
        report: Report = lambda _: None,
    ) -> Answer:
        """Make the attempt, and say how it ended, or nothing where complete-by has passed.

        `function_ends_at` is epoch ms. `report` is given each exception that nobody foresaw:
        its text may hold order contents, so it goes into no reply. Exceptions that end the
        process (SystemExit, KeyboardInterrupt) pass through.
        """
        if late := _late(request, clock()):
            return Silence(f"read {late} after complete-by; not attempted")
        ended = self._attempt(request, clock, function_ends_at, report)
        if late := _late(request, now := clock()):
            return Silence(f"finished {late} after complete-by")
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
        )

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

    def _attempt(
        self, request: AgentRequest, clock: Clock, function_ends_at: int, report: Report
    ) -> "_Ended":
        function = self._functions.get((step_of(request.step), request.operation))
        if function is None:
            # Code older or newer than the plan: a deployment mends it, so nothing is given up.
            message = (
                f"the code of the {self.name} agent cannot {request.operation} {request.step}; "
                "deploy agent and plan of one version"
            )
            return _transient(NO_HANDLER, message, WITHOUT_HANDLER_RETRY_AFTER)
        if not isinstance(request.input, Mapping):
            return _permanent("InputNotObject", "the order in the request is not a JSON object")
        ends_at = min(request.complete_by, function_ends_at - REPLY_WITHIN)
        if clock() >= ends_at:
            message = "those before it in its batch left no time for it; not attempted"
            return _transient(NO_TIME_LEFT, message, NO_TIME_RETRY_AFTER)
        return self._call(function, _step_request(request, request.input, ends_at, clock), report)

    def _call(self, function: Perform, request: StepRequest, report: Report) -> "_Ended":
        try:
            return _succeeded(function(request))
        except TransientError as error:
            return _transient(type(error).__name__, str(error), _wait(error.retry_after))
        except PermanentError as error:
            return _permanent(error.error_type, error.message)
        except Exception as error:  # noqa: BLE001  # whatever an author's code raises is transient
            report(error)
            message = f"unexpected error, see the log of the {self.name} agent"
            return _transient(type(error).__name__, message, None)


@dataclass(frozen=True, slots=True)
class _Ended:
    outcome: Outcome
    result: Json = None
    error: StepError | None = None
    retry_after: int | None = None


def _late(request: AgentRequest, now: int) -> str | None:
    """How long after complete-by it is; at that very instant the right to act has ended."""
    return spoken(now - request.complete_by) if now >= request.complete_by else None


def _step_request(
    request: AgentRequest, order: Mapping[str, Json], ends_at: int, clock: Clock
) -> StepRequest:
    return StepRequest(
        task_id=request.task_id,
        workflow=request.workflow,
        step=request.step,
        operation=request.operation,
        idempotency_key=request.idempotency_key,
        perform_key=request.perform_key or _perform_key(request.idempotency_key),
        attempt=request.attempt,
        complete_by=request.complete_by,
        outcome_unknown=request.outcome_unknown,
        input=order,
        results=request.results,
        ends_at=ends_at,
        clock=clock,
    )


def _perform_key(key: str) -> str:
    """The key of the perform that belongs to an effect's key: `o-1/charge/undo` undoes
    `o-1/charge/perform`."""
    task, step, operation, *rest = [*key.split("/"), "", ""]
    return "/".join([task, step, "perform", *rest[:-2]]) if operation == "undo" else key


def _succeeded(result: object) -> _Ended:
    try:
        text = canonical_json(result)  # type: ignore[arg-type]  # whether it is JSON is seen here
        value = parse_json(text)  # as every reader will see it: keys as strings, tuples as lists
        size = len(text.encode())  # half a surrogate pair is no text that can be sent
    except (TypeError, ValueError, RecursionError):
        found = type(result).__name__
        return _permanent(RESULT_NOT_JSON, f"the function returned a {found} that is not JSON")
    if size > LARGEST_RESULT:
        message = f"the result is {size} bytes of JSON; at most {LARGEST_RESULT} fit"
        return _permanent(RESULT_TOO_LARGE, message)
    return _Ended(Outcome.SUCCEEDED, result=value)


def _transient(error_type: str, message: str, retry_after: int | None) -> _Ended:
    return _Ended(
        Outcome.TRANSIENT, error=_step_error(error_type, message), retry_after=retry_after
    )


def _permanent(error_type: str, message: str) -> _Ended:
    return _Ended(Outcome.PERMANENT, error=_step_error(error_type, message))


def _step_error(error_type: object, message: object) -> StepError:
    """An author may have passed anything; a reply that cannot be sent would be worse."""
    name = _sendable(error_type)[:LONGEST_TYPE] or "PermanentError"
    return StepError(name, _sendable(message)[:LONGEST_MESSAGE])


def _sendable(value: object) -> str:
    """Its text, without halves of surrogate pairs, which no message can carry."""
    return str(value).encode(errors="replace").decode()


def _wait(asked: object) -> int | None:
    if not isinstance(asked, timedelta):
        return None
    return milliseconds(min(max(asked, timedelta(0)), LONGEST_WAIT))
