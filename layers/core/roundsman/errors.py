"""The exceptions of Roundsman. Each type stands for one reaction of the caller."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

UNTYPED = "PermanentError"
"""The type of a permanent error whose author gave none."""

TENANT_RATE = "TenantRate"
"""The error type of a step that its agent gives back because its tenant is at its rate."""


def kind_of(value: object) -> str:
    """Return the type of a value in words: `an int`.

    For the message of a call that is refused while an order is processed: it is shown in alerts,
    and the value itself may be of the order.
    """
    name = type(value).__name__
    return f"{'an' if name[:1] in 'AEIOUaeiou' else 'a'} {name}"


class RoundsmanError(Exception):
    """The base class of all exceptions that Roundsman defines."""


class DefinitionError(RoundsmanError):
    """A workflow or an agent is defined in a way that can never run.

    Raised when the module that contains the definition is imported. The message states what to
    change.
    """


class TransientError(RoundsmanError):
    """Raised by an agent's code: this attempt failed, but another attempt may succeed.

    `retry_after` is the wait that the remote service requested; if it is None, the step's
    exponential backoff applies. Any exception that is neither a TransientError nor a
    PermanentError counts as transient too. Unless it is an OSError, it is unexpected: a defect, for
    which the step is retried for longer, with an alert. Raises TypeError if `retry_after` is not a
    timedelta, or `no_effect` is not a bool.

    `no_effect` is a promise: the service has done nothing because of this call, and will not do it
    later. A step of several agents may then go on at another one, and its probe is not asked.

    `cause` is what failed, in a few words that quote nothing of the order, for example "answered
    503". If the circuit opens, its alert and everything that waits for it name the cause; they
    never quote `message`.
    """

    def __init__(
        self,
        message: str,
        *,
        retry_after: timedelta | None = None,
        cause: str = "",
        no_effect: bool = False,
    ) -> None:
        super().__init__(message)
        self.cause = cause
        if not isinstance(no_effect, bool):
            raise TypeError(f"no_effect must be True or False, not {kind_of(no_effect)}")
        self.no_effect = no_effect
        if retry_after is not None and not isinstance(retry_after, timedelta):
            raise TypeError(f"retry_after must be a timedelta, not {kind_of(retry_after)}")
        self.retry_after = retry_after


class Busy(TransientError):
    """The service answered and asked the caller to retry later.

    Examples are HTTP 429, HTTP 425, and 409 because a request with the same idempotency key is in
    progress. The service is up, so the circuit breaker does not count this as a failure.
    """


class AccessError(TransientError):
    """The service did not serve the call, for a reason that is not the order's.

    The credential or the address is wrong, and a person must repair it. The step is retried as
    after an unexpected error, and nothing is concluded about the order. The circuit breaker counts
    the call as failed and puts the message into its alert, so it must contain no secret.
    """


class CredentialRefused(AccessError):
    """The service refused the credential, for example with HTTP 401."""


class WrongAddress(AccessError):
    """The address is not the service's, for example HTTP 404 without the service's own error."""


class PermanentError(RoundsmanError):
    """Raised by an agent's code: a retry cannot succeed.

    `error_type` is a short name that plans and alerts refer to, for example `CardDeclined`.
    `message` is for people. It must not contain secrets or order contents.

    A sentence without a type is taken as the message of the type `PermanentError`, and `untyped` is
    true. Tests refuse it; an exception here would make a permanent failure a transient one.
    """

    def __init__(self, error_type: str, message: str = "") -> None:
        self.untyped = not message and len(str(error_type).split()) > 1
        if self.untyped:
            error_type, message = UNTYPED, str(error_type)
        super().__init__(f"{error_type}: {message}" if message else error_type)
        self.error_type = error_type
        self.message = message


class PayloadError(RoundsmanError):
    """A payload that can be neither read nor stored as asked, or that no retry finds.

    It is larger than allowed, belongs to another order, or is not in the bucket; or the stack has
    no bucket. The message gives the reason. Raised by an agent's function, it is an unexpected
    error: the step is retried for longer, with an alert.
    """


class InvalidToken(RoundsmanError):
    """The text is not a callback token. Copy the complete token that the agent received."""


class NotWaiting(RoundsmanError):
    """The step waits for no callback, or its agent is not known, so nothing can answer it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem in a message."""

    path: str
    """The field that is wrong, for example `lines[0].quantity`; empty for the whole message."""
    message: str
    """What is wrong with the field."""

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class InvalidMessage(RoundsmanError):
    """A message that can never be handled.

    The caller sends it to the RejectedQueue together with its problems.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = tuple(problems)


class InvalidInput(InvalidMessage, ValueError):
    """An input that its workflow does not accept, with all of its problems.

    Raised by the function of a workflow's `input`, by `__post_init__` of a dataclass, or by a
    validator of a pydantic model, which may raise ValueErrors only. The problems must not quote a
    value.
    """


class RejectedOrder(InvalidMessage):
    """A message of the SubmissionQueue that is rejected.

    `order_id`, `reply_to` and `correlation_id` are for sending the `rejected` status. Each is
    None if the event has no usable value for it. `is_order` says that the event was to store an
    order: a cancellation or a signal of an order can be rejected, too.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        *,
        order_id: str | None = None,
        reply_to: str | None = None,
        correlation_id: str | None = None,
        is_order: bool = False,
    ) -> None:
        super().__init__(problems)
        self.is_order = is_order
        self.order_id = order_id
        self.reply_to = reply_to
        self.correlation_id = correlation_id

    def within(self, place: str) -> "RejectedOrder":
        """Return the same rejection of an event that is at the path `place` of a message."""
        return RejectedOrder(
            [
                Problem(f"{place}.{one.path}" if one.path else place, one.message)
                for one in self.problems
            ],
            order_id=self.order_id,
            reply_to=self.reply_to,
            correlation_id=self.correlation_id,
            is_order=self.is_order,
        )


def rejected_together(rejected: Sequence[RejectedOrder]) -> RejectedOrder:
    """Return one rejection of a message for those of its events; one alone is returned as it is."""
    if len(rejected) == 1:
        return rejected[0]
    return RejectedOrder([problem for one in rejected for problem in one.problems])


class NoTransition(RoundsmanError):
    """The transition table has no entry for this state and event: a defect, not a race."""


class Refused(RoundsmanError):
    """A command that does not apply to the task in its current state.

    The message gives the reason. The task is not changed.
    """


class SchemaTooNew(RoundsmanError):
    """A record that newer code wrote. This code leaves it unchanged for a newer instance."""


class TryAgain(RoundsmanError):
    """No decision was made, or its result is not known; the message must be redelivered."""


class Throttled(TryAgain):
    """AWS refused a call because of too many calls; a redelivery that comes later helps more."""


class CallRefused(RoundsmanError):
    """AWS refused a call, and would refuse a retry.

    The cause is a missing permission, a missing table or queue, or an invalid request. No decision
    was made. The message is redelivered, and an alarm goes off. Unless somebody repairs the stack
    first, SQS moves it to its dead-letter queue in the end. `code` is the AWS error code.
    """

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class UnreadableRecord(RoundsmanError):
    """A stored record that this code cannot have written. Only a person can repair it.

    `record` is the id of the task, order or plan. `field` is the path of the field that is wrong.
    """

    def __init__(self, record: str, field: str, problem: str) -> None:
        super().__init__(f"the record {record} cannot be read: {field} {problem}")
        self.record = record
        self.field = field
        self.problem = problem


class UnknownAgent(RoundsmanError):
    """The stack has no request queue for this agent and priority; a retry cannot succeed."""

    def __init__(self, agent: str, priority: str) -> None:
        super().__init__(f"the stack has no {priority} request queue for the agent {agent!r}")
        self.agent = agent
        self.priority = priority
