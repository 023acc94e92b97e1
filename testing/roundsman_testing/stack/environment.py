"""Replaces the clock, the randomness and the AWS credentials of the process during a test.

Time stands still until a test moves it. Four parts depend on time: the functions use
`roundsman.aws.clock`, moto uses a function of its own, Powertools' circuit breaker uses the
standard library, and botocore sleeps between its retries. All of them get the same `Clock`, so
visibility timeouts, delayed messages, complete-bys, recovery times and retention pass without
waiting.
"""

import datetime
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from unittest.mock import patch

import boto3
import moto.core.utils

import roundsman.aws.clock
from roundsman.model.instants import SECOND
from roundsman_testing.powertools import CLOCKED, Datetime, counts, replaced
from roundsman_testing.stack.computed_once import computed_once

MORNING = 1_800_000_000_000
"""The start of every test, in epoch ms: 2027-01-15T08:00:00Z."""

FAKE_AWS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_SESSION_TOKEN": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_REGION": "us-east-1",
    # Empty files, so that no AWS profile of the machine is read.
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""Fake credentials. All other `AWS_` variables are removed during a test."""


def new_session() -> boto3.Session:
    """Create a session without hooks and make it the default session of the process."""
    session = boto3.Session()
    boto3.DEFAULT_SESSION = session
    return session


@dataclass
class Clock:
    """A clock that moves only when the test moves it."""

    now: int = MORNING
    """The present in epoch ms."""
    spans: list[int] = field(default_factory=list)
    """The durations (ms) of the next calls that the services handle, in order."""

    def __call__(self) -> int:
        """The present in epoch ms."""
        return self.now

    def time_ns(self) -> int:
        """Replaces time.time_ns."""
        return self.now * 1_000_000

    def sleep(self, seconds: float) -> None:
        """Replaces time.sleep: moves the clock and returns at once."""
        self.now += round(seconds * SECOND)

    def at_the_services(self) -> int:
        """The clock of the services, in epoch ms.

        The services read it when an effect happens; each reading moves the clock by the next of
        `spans`, the duration of the call.
        """
        if self.spans:
            self.now += self.spans.pop(0)
        return self.now

    def utcnow(self) -> datetime.datetime:
        """Replaces moto's utcnow."""
        return datetime.datetime.fromtimestamp(self.now / 1000, tz=datetime.UTC).replace(
            tzinfo=None
        )


@contextmanager
def taken_over(clock: Clock) -> Iterator[None]:
    """Run the process with this clock, no randomness, fake AWS credentials and closed circuits.

    Everything is restored at the end. `random.random`, used for the jitter of waits, always
    returns 0.5.
    """
    aws = {name for name in os.environ if name.startswith("AWS_")}
    forget_circuits()
    with ExitStack() as changes:
        changes.enter_context(computed_once())
        changes.enter_context(patch.dict(os.environ, FAKE_AWS))
        for name in aws - FAKE_AWS.keys():
            del os.environ[name]  # restored with the others at the end
        changes.enter_context(patch.object(boto3, "DEFAULT_SESSION", None))
        changes.enter_context(patch("random.random", lambda: 0.5))
        changes.enter_context(patch.object(roundsman.aws.clock, "time", clock))
        changes.enter_context(patch.object(moto.core.utils, "utcnow", clock.utcnow))
        changes.enter_context(patch("botocore.endpoint.time", SimpleNamespace(sleep=clock.sleep)))
        changes.enter_context(replaced(CLOCKED, dt=Datetime(clock)))
        yield
    forget_circuits()


def forget_circuits(circuits: frozenset[str] | None = None) -> None:
    """Remove what Powertools keeps in globals about these circuits; None means all circuits."""
    for kept in counts():
        for name in list(kept):
            if circuits is None or name in circuits:
                del kept[name]


def circuits_known() -> frozenset[str]:
    """The names of the circuits for which Powertools keeps state in this process."""
    failures, _, last_observed, _ = counts()
    return frozenset(failures) | frozenset(last_observed)
