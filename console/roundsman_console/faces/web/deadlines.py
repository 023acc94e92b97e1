"""How long may a page read? Deadlines of the calls to AWS, and of the pages that make them.

A service of AWS that does not answer one call is not asked again for that page, and a service that
has not answered yet is asked only while there is time for a whole call. So the rest of the page is
shown in time, and only what could not be read is missing.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError
from starlette.concurrency import run_in_threadpool

from roundsman_console.base.clock import moment
from roundsman_console.base.errors import InspectorError

T = TypeVar("T")

CALL_SECONDS = 5.0
"""How long AWS may take to answer one try of a call."""
TRIES = 3
"""The number of tries of a call; a page makes no further try after CALL_SECONDS."""
PAGE_SECONDS = 10.0
"""How long the reading of a page may take."""


class NoAnswer(BotoCoreError):
    """A service of AWS did not answer in time."""

    fmt = "{service} did not answer within {seconds:g} s. Check the network and the way to AWS."


class CallNotMade(BotoCoreError):
    """A call was not made: the time of the page is used up."""

    fmt = "{service} was not asked, because the page may take {seconds:g} s. Load it again."


class PageTimedOut(InspectorError):
    """A page was not read in time."""


@dataclass(slots=True)
class PageReading:
    """One reading of a page."""

    ends: float
    """By the clock of `moment`, in seconds."""
    silent: set[str] = field(default_factory=set)
    """The services that did not answer a call."""
    answered: set[str] = field(default_factory=set)
    """The services that answered a call."""


_READING: ContextVar[PageReading | None] = ContextVar("reading", default=None)
"""The page that is being read. A thread that reads for a page gets a copy of its context."""
_BEGAN: ContextVar[float] = ContextVar("began", default=0.0)
"""When the call of this thread began."""


def limit_calls() -> None:
    """Give every client of AWS that is created from now on the deadlines of a page."""
    core = botocore.session.get_session()
    core.set_default_client_config(
        Config(
            connect_timeout=CALL_SECONDS,
            read_timeout=CALL_SECONDS,
            retries={"mode": "standard", "total_max_attempts": TRIES},
        )
    )
    core.register("before-call", _note_call)
    core.register("before-send", _check_try)
    core.register("after-call", _note_answer)
    boto3.setup_default_session(botocore_session=core)


async def read_in_time(read: Callable[[], T]) -> T:
    """Return what `read` returns, which runs in a thread. Raises PageTimedOut after PAGE_SECONDS.

    The thread then goes on until its present call ends, and what it returns is thrown away.
    """
    reading = _READING.set(PageReading(moment() + PAGE_SECONDS))
    try:
        task = asyncio.ensure_future(run_in_threadpool(read))
    finally:
        _READING.reset(reading)
    await asyncio.wait({task}, timeout=PAGE_SECONDS)
    if not task.done():
        task.add_done_callback(_forget)
        raise PageTimedOut(
            f"AWS did not answer all calls of this page within {PAGE_SECONDS:g} s. "
            "Check the network and the way to AWS."
        )
    return task.result()


def _forget(task: asyncio.Future[T]) -> None:
    if not task.cancelled():
        task.exception()


def _note_call(**_: object) -> None:
    _BEGAN.set(moment())


def _note_answer(**event: object) -> None:
    reading = _READING.get()
    if reading is not None:
        reading.answered.add(_service_of(event))


def _check_try(**event: object) -> None:
    """Let a try of a call pass, or raise why it is not made. Only pages have these limits."""
    reading, service, at = _READING.get(), _service_of(event), moment()
    if reading is None:
        return
    if at - _BEGAN.get() >= CALL_SECONDS:
        reading.silent.add(service)
    if service in reading.silent:
        raise NoAnswer(service=_name(service), seconds=CALL_SECONDS)
    left = reading.ends - at
    if left <= 0 or (left < CALL_SECONDS and service not in reading.answered):
        raise CallNotMade(service=_name(service), seconds=PAGE_SECONDS)


def _service_of(event: Mapping[str, object]) -> str:
    """Return the service that an event of botocore is about: `before-send.dynamodb.Query`."""
    return str(event["event_name"]).split(".")[1]


def _name(service: str) -> str:
    return _NAMES.get(service, service)


_NAMES = {
    "cloudformation": "CloudFormation",
    "cloudwatch": "CloudWatch",
    "dynamodb": "DynamoDB",
    "lambda": "Lambda",
    "sns": "SNS",
    "sqs": "SQS",
    "sts": "STS",
}
