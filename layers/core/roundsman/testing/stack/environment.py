"""What a stack in a test takes over of the process: its clock, its chance, its AWS credentials.

Time stands still until a test moves it. Few places know what time it is: the functions ask
`roundsman.aws.clock`, moto asks one function of its own, Powertools' circuit breaker the standard
library, and botocore waits between its tries. All of them are given one `Clock`, so visibility
time-outs, delayed messages, complete-bys, recovery times and retention pass without waiting.
"""

import datetime
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime as Moment
from types import SimpleNamespace
from unittest.mock import patch

import boto3
import botocore.session
import moto.core.utils
from aws_lambda_powertools.utilities.circuit_breaker import base as powertools
from botocore.loaders import create_loader

import roundsman.aws.clock
from roundsman.model.instants import SECOND

MORNING = 1_800_000_000_000
"""When every story begins: 2027-01-15T08:00:00Z."""

FAKE_AWS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_SESSION_TOKEN": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_REGION": "us-east-1",
    # Empty files, so that no profile of this machine is ever read.
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}
"""Credentials that are nobody's; no other `AWS_` variable is left beside them."""

CLOCKS_OF_POWERTOOLS = (
    "aws_lambda_powertools.utilities.circuit_breaker.base.dt",
    "aws_lambda_powertools.utilities.circuit_breaker.persistence.base.dt",
    "aws_lambda_powertools.utilities.circuit_breaker.persistence.dynamodb.dt",
)


_DESCRIPTIONS = create_loader()
"""AWS's descriptions of its services, megabytes of JSON: read once a process, not each session."""


def new_session() -> boto3.Session:
    """Give the process a default session that knows nothing of calls made before."""
    core = botocore.session.get_session()
    session = boto3.Session(botocore_session=core)
    core.register_component("data_loader", _DESCRIPTIONS)
    boto3.DEFAULT_SESSION = session
    return session


@dataclass
class Clock:
    """Epoch ms that move only when told to; `spans` (ms) is what the next effects will take."""

    now: int = MORNING
    spans: list[int] = field(default_factory=list)

    def __call__(self) -> int:
        """The present."""
        return self.now

    def time_ns(self) -> int:
        """Stands in for time.time_ns."""
        return self.now * 1_000_000

    def sleep(self, seconds: float) -> None:
        """Stands in for time.sleep: a function that waits, waits without delay."""
        self.now += round(seconds * SECOND)

    def at_the_services(self) -> int:
        """The services' clock. They ask it as an effect happens: what calls take passes here."""
        if self.spans:
            self.now += self.spans.pop(0)
        return self.now

    def utcnow(self) -> datetime.datetime:
        """Stands in for moto's own."""
        return datetime.datetime.fromtimestamp(self.now / 1000, tz=datetime.UTC).replace(
            tzinfo=None
        )


@dataclass(frozen=True)
class Datetime:
    """Stands in for the module `datetime` where Powertools asks `datetime.datetime.now()`."""

    clock: Clock

    @property
    def datetime(self) -> "Datetime":
        """The class of the same name."""
        return self

    def now(self) -> Moment:
        """The clock's, in the machine's own time zone, as the real one."""
        return Moment.fromtimestamp(self.clock.now / 1000)  # noqa: DTZ006  # as Powertools has it


@contextmanager
def taken_over(clock: Clock) -> Iterator[None]:
    """Give the process this clock, no chance, fake AWS credentials and circuits without a past.

    Chance is the jitter of waits: half of what it may be, each time.
    """
    aws = {name for name in os.environ if name.startswith("AWS_")}
    forget_circuits()
    with ExitStack() as changes:
        changes.enter_context(patch.dict(os.environ, FAKE_AWS))
        for name in aws - FAKE_AWS.keys():
            del os.environ[name]  # put back with the rest
        changes.enter_context(patch("random.random", lambda: 0.5))
        changes.enter_context(patch.object(roundsman.aws.clock, "time", clock))
        changes.enter_context(patch.object(moto.core.utils, "utcnow", clock.utcnow))
        changes.enter_context(patch("botocore.endpoint.time", SimpleNamespace(sleep=clock.sleep)))
        for name in CLOCKS_OF_POWERTOOLS:
            changes.enter_context(patch(name, Datetime(clock)))
        yield
    forget_circuits()


def forget_circuits(circuits: frozenset[str] | None = None) -> None:
    """Let this process know nothing of these circuits, or of any: Powertools counts in globals."""
    counted = (
        powertools._LOCAL_FAILURES,
        powertools._LOCAL_SUCCESSES,
        powertools._LAST_OBSERVED_STATE,
        powertools._PROBE_OWNER.__dict__,
    )
    for counts in counted:
        for name in list(counts):
            if circuits is None or name in circuits:
                del counts[name]


def circuits_known() -> frozenset[str]:
    """The circuits of which this process has counted anything."""
    return frozenset(powertools._LOCAL_FAILURES) | frozenset(powertools._LAST_OBSERVED_STATE)
