"""The supervisor function: checks the tasks that may be overdue."""

from collections.abc import Callable
from functools import cache
from typing import Protocol

from roundsman.aws.handlers.supervisor import supervisor_handler
from roundsman.aws.observability import observed
from roundsman.aws.settings import SupervisorSettings


class Context(Protocol):
    """The part of Lambda's context object that the supervisor uses."""

    def get_remaining_time_in_millis(self) -> int:
        """The time left before Lambda ends this invocation, in ms."""


@cache
def _parts() -> Callable[[int], None]:
    return supervisor_handler(SupervisorSettings.from_env())


@observed
def handler(_event: object, context: Context) -> None:
    """Make the passes that belong to one tick of the timer."""
    _parts()(context.get_remaining_time_in_millis())
