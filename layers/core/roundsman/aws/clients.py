"""The boto3 clients: each is created when it is first used, and then kept by the instance.

An endpoint that hangs must not take the whole time of an invocation: what the function has already
done for its other messages would be lost with its answer. So a client of a function counts the time
that is left (`begin_invocation`). Once a try has timed out, a client begins another, at whichever
endpoint, only if that can time out as well and still leave RESERVE. As long as every endpoint
answers, they are called as long as there is time at all.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import ConnectTimeoutError, HTTPClientError, ReadTimeoutError

from roundsman.model.instants import SECOND

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient

# Without this, botocore builds a user agent twice in each call: a fifth of its processor time.
USER_AGENT = f"Boto3/{boto3.__version__} Roundsman"

TRIES = 3  # then SQS redelivers

CONFIG = Config(
    user_agent=USER_AGENT,
    connect_timeout=2,  # seconds; within a region a connection takes milliseconds
    read_timeout=5,
    retries={"mode": "standard", "total_max_attempts": TRIES},
    tcp_keepalive=True,  # otherwise the connection of an idle instance is dropped silently
)
"""For a caller without a limit of its own, such as an application."""

CONNECT_TIMEOUT, READ_TIMEOUT = 1, 3  # seconds; a call within a region takes milliseconds

LONGEST_TRY = (CONNECT_TIMEOUT + READ_TIMEOUT) * SECOND
"""ms that a try takes at an endpoint that hangs."""

RESERVE = SECOND // 2
"""ms of an invocation that are left for its answer."""

# AWS validates each request itself, and a parameter whose name botocore does not know is a KeyError
# without its validation too: so no runtime can leave a condition out of a write by its name.
FUNCTION_CONFIG = CONFIG.merge(
    Config(connect_timeout=CONNECT_TIMEOUT, read_timeout=READ_TIMEOUT, parameter_validation=False)
)
"""For a function, whose shortest timeout is 5 s: it takes a try that hangs, and the answer."""


def longest_pause(tries: int) -> int:
    """The longest time (ms) that botocore waits after so many tries, before the next one.

    Its standard mode waits for a random part of 1, 2, 4 ... s, and at most 20 s.
    """
    return min(1 << (tries - 1), 20) * SECOND


def another_try_fits(time_left: int, pause: int = 0) -> bool:
    """Whether a try that begins after `pause` can hang and leave RESERVE. Both are in ms."""
    return time_left - pause >= LONGEST_TRY + RESERVE


class Invocation(Protocol):
    """The part of Lambda's context object that the clients use."""

    def get_remaining_time_in_millis(self) -> int:
        """The time left before Lambda ends this invocation, in ms."""


@dataclass
class _Present:
    """What the clients of this process know of the present invocation."""

    invocation: Invocation | None = None
    """None outside of a function: then nothing limits the tries."""
    hanging: set[int] = field(default_factory=set)
    """The clients (`id`) whose last try in this invocation timed out."""

    def has_time_for_a_try(self, pause: int = 0) -> bool:
        """Whether a try may begin after `pause` (ms)."""
        if self.invocation is None or not self.hanging:
            return True
        return another_try_fits(self.invocation.get_remaining_time_in_millis(), pause)


_present = _Present()


def begin_invocation(context: Invocation) -> None:
    """Give the clients the time of this invocation. A handler calls it first."""
    _present.invocation = context
    _present.hanging.clear()


class NoTimeLeft(HTTPClientError):
    """A call was not begun: an endpoint has timed out, and this one may take all the time left."""

    fmt = "an endpoint timed out, and the time left is too short for a call that does as well"


def timed_out(error: BaseException) -> bool:
    """Whether a try failed with this error because its endpoint did not go on in time.

    botocore has no error for an endpoint that stops reading a large request: it reports a closed
    connection, raised while the socket's TimeoutError was handled.
    """
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, (ConnectTimeoutError, ReadTimeoutError, TimeoutError)):
            return True
        link = link.__context__
    return False


class _Patience:
    """Decides, for one client, whether another try may begin.

    Registered for botocore's events: `request-created` is before each try, `needs-retry` after it,
    before botocore waits for the next one.
    """

    def before_a_try(self, **_rest: object) -> None:
        """Raise NoTimeLeft if an endpoint hangs and this try could take too long."""
        if not _present.has_time_for_a_try():
            raise NoTimeLeft

    def after_a_try(
        self, attempts: int, caught_exception: BaseException | None = None, **_rest: object
    ) -> None:
        """Note whether the try timed out. Raises its error if there is no time for another one."""
        if caught_exception is None or not timed_out(caught_exception):
            _present.hanging.discard(id(self))
            return
        _present.hanging.add(id(self))
        if not _present.has_time_for_a_try(longest_pause(attempts)):
            raise caught_exception


Client = TypeVar("Client", "DynamoDBClient", "SQSClient", "SNSClient", "S3Client")


def limited(client: Client) -> Client:
    """The same client, which from now on begins no try that an invocation has no time for."""
    patience = _Patience()
    client.meta.events.register("request-created", patience.before_a_try)
    client.meta.events.register_first("needs-retry", patience.after_a_try)
    return client


class Clients:
    """One client per service. Region, endpoint and credentials come from the environment."""

    @cached_property
    def dynamodb(self) -> "DynamoDBClient":
        """The client for the tables."""
        client: DynamoDBClient = boto3.client("dynamodb", config=FUNCTION_CONFIG)
        return limited(client)

    @cached_property
    def sqs(self) -> "SQSClient":
        """The client for the queues."""
        client: SQSClient = boto3.client("sqs", config=FUNCTION_CONFIG)
        return limited(client)

    @cached_property
    def sns(self) -> "SNSClient":
        """The client for the AlertTopic."""
        client: SNSClient = boto3.client("sns", config=FUNCTION_CONFIG)
        return limited(client)
