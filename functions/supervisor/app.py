"""The supervisor: makes the rounds of what may be overdue."""

from collections.abc import Callable
from functools import cache
from typing import Protocol

from roundsman.aws.handlers.supervisor import supervisor_handler
from roundsman.aws.observability import observed
from roundsman.aws.settings import SupervisorSettings


class Context(Protocol):
    """What the supervisor asks of its Lambda context."""

    def get_remaining_time_in_millis(self) -> int:
        """The time left to this invocation."""


@cache
def _parts() -> Callable[[int], None]:
    return supervisor_handler(SupervisorSettings.from_env())


@observed
def handler(_event: object, context: Context) -> None:
    """Make the passes of one tick of the timer."""
    _parts()(context.get_remaining_time_in_millis())
