"""The scheduler function: the only function that claims and starts steps."""

from collections.abc import Callable
from functools import cache

from roundsman.aws.handlers.scheduler import scheduler_handler
from roundsman.aws.observability import observed
from roundsman.aws.settings import SchedulerSettings


@cache
def _parts() -> Callable[[dict[str, object]], object]:
    return scheduler_handler(SchedulerSettings.from_env())


@observed
def handler(event: dict[str, object], _context: object) -> object:
    """Handle a batch of commands or replies.

    Returns a partial batch response that lists the messages to deliver again.
    """
    return _parts()(event)
