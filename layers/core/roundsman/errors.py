"""Errors, named by what happens next."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta


class RoundsmanError(Exception):
    """The base of everything that Roundsman raises on purpose."""


class DefinitionError(RoundsmanError):
    """A workflow or an agent that could never run; raised at import, says what to change."""


class TransientError(RoundsmanError):
    """Raised by an agent's code: this attempt failed, another may succeed.

    `retry_after` is the wait that the remote service asked for; without it the step's own
    backoff decides. Any exception that is neither this nor PermanentError counts as transient.
    """

    def __init__(self, message: str, *, retry_after: timedelta | None = None) -> None:
        super().__init__(message)
        if retry_after is not None and not isinstance(retry_after, timedelta):
            raise TypeError(f"retry_after must be a timedelta, not {retry_after!r}")
        self.retry_after = retry_after


class Busy(TransientError):
    """The service answered, and asked to come again later: 429, 425, the same key in progress.

    It is no sign that the service is down, so it is not held against it.
    """


class PermanentError(RoundsmanError):
    """Raised by an agent's code: no repetition will help.

    `error_type` is a short name that plans and alerts refer to (`CardDeclined`); `message` is
    for people and must carry no secret and no order contents.
    """

    def __init__(self, error_type: str, message: str = "") -> None:
        super().__init__(f"{error_type}: {message}" if message else error_type)
        self.error_type = error_type
        self.message = message


class InvalidToken(RoundsmanError):
    """What was given as a callback's token is none; copy it whole, as the agent was given it."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a message: where (`lines[0].quantity`), and what."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class InvalidMessage(RoundsmanError):
    """A message that can never be handled; it belongs in the RejectedQueue with its problems."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("; ".join(map(str, problems)))
        self.problems = tuple(problems)


class RejectedOrder(InvalidMessage):
    """An order event that is put aside; says whom to tell, as far as the event said it usably."""

    def __init__(
        self,
        problems: Sequence[Problem],
        *,
        order_id: str | None = None,
        reply_to: str | None = None,
        correlation_id: str | None = None,
    ) -> None:
        super().__init__(problems)
        self.order_id = order_id
        self.reply_to = reply_to
        self.correlation_id = correlation_id


class NoTransition(RoundsmanError):
    """A pair of state and event that the transition table does not have: a defect, not a race."""


class Refused(RoundsmanError):
    """A command that makes no sense for the task as it is; says why, and changes nothing."""


class SchemaTooNew(RoundsmanError):
    """A record written by newer code than this; left alone for a newer instance."""


class TryAgain(RoundsmanError):
    """Nothing was decided or nothing is known of it; the message must be delivered again."""


class CallRefused(RoundsmanError):
    """AWS refused a call and will again: missing rights, a missing table or queue, a bad request.

    Nothing was decided. The message comes again and ends in its dead-letter queue, with an
    alarm, unless someone repairs the stack first. `code` is AWS's name for the refusal.
    """

    def __init__(self, message: str, code: str = "") -> None:
        super().__init__(message)
        self.code = code


class UnreadableRecord(RoundsmanError):
    """A stored record that cannot be what this code wrote; only a person can repair it.

    `record` is the task's, order's or plan's id, `field` the path of the field that is wrong.
    """

    def __init__(self, record: str, field: str, problem: str) -> None:
        super().__init__(f"the record {record} cannot be read: {field} {problem}")
        self.record = record
        self.field = field
        self.problem = problem


class UnknownAgent(RoundsmanError):
    """A request for an agent that the stack has no queue for; sending it again cannot help."""

    def __init__(self, agent: str, priority: str) -> None:
        super().__init__(f"the stack has no {priority} request queue for the agent {agent!r}")
        self.agent = agent
        self.priority = priority
