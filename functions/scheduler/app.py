"""The scheduler: the only part that claims and starts steps."""

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
    """Handle a batch of commands or replies; answers with those that must come again."""
    return _parts()(event)
