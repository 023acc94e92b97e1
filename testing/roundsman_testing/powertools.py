"""What Powertools' circuit breaker takes from the process, replaced during a test.

It asks the machine for the time, and counts calls in globals of the process.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime as Moment
from types import ModuleType
from typing import Final, cast

from aws_lambda_powertools.utilities.circuit_breaker import base
from aws_lambda_powertools.utilities.circuit_breaker.persistence import base as persistence
from aws_lambda_powertools.utilities.circuit_breaker.persistence import dynamodb

from roundsman.model.instants import SECOND

CLOCKED: Final[Sequence[ModuleType]] = (base, persistence, dynamodb)
"""The modules that call `dt.datetime.now()`."""


@dataclass(frozen=True, slots=True)
class Datetime:
    """Replaces the module `datetime` in `CLOCKED`. `clock` is the present in epoch ms."""

    clock: Callable[[], int]

    @property
    def datetime(self) -> "Datetime":
        """Replaces the class `datetime.datetime`."""
        return self

    def now(self) -> Moment:
        """The present in the local time zone, without tzinfo, as `datetime.now()` returns it."""
        return Moment.fromtimestamp(self.clock() / SECOND)  # noqa: DTZ006  # Powertools does so too


def counts() -> Sequence[dict[str, object]]:
    """Return what is kept about circuits in globals of the process, each by circuit.

    These are the failures and the successes in a row, the state as last seen, and who tries the
    service.
    """
    found = (
        base._LOCAL_FAILURES,
        base._LOCAL_SUCCESSES,
        base._LAST_OBSERVED_STATE,
        base._PROBE_OWNER.__dict__,
    )
    return cast("Sequence[dict[str, object]]", found)


def set_counts(wanted: Sequence[Mapping[str, object]]) -> None:
    """Put other counts in place of those of the process."""
    for kept, values in zip(counts(), wanted, strict=True):
        kept.clear()
        kept.update(values)


@contextmanager
def replaced(modules: Sequence[ModuleType], **names: object) -> Iterator[None]:
    """Replace what these modules have imported under these names."""
    before = [{name: vars(module)[name] for name in names} for module in modules]
    for module in modules:
        vars(module).update(names)
    try:
        yield
    finally:
        for module, found in zip(modules, before, strict=True):
            vars(module).update(found)
