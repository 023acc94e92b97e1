"""Buffers the outgoing messages of one batch, so that they are sent in few requests.

    with send_buffer.opened():
        send_buffer.attribute_to(message_id)  # or several, if they are handled together
        handle(...)                       # calls send_buffer.send
        send_buffer.flush()
        send_buffer.problem_of(message_id)    # the message is done only if this is None

A process that dies loses nothing: all buffered messages follow from stored records, and the
redelivery of the incoming messages sends them again.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from roundsman.aws.clock import now
from roundsman.aws.sqs.outgoing import OutgoingMessage, send_messages
from roundsman.errors import TryAgain
from roundsman.ports import Clock

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
from roundsman.model.instants import SECOND, format_duration


class _Kept(NamedTuple):
    message_ids: tuple[str, ...]
    post: OutgoingMessage


@dataclass(eq=False)
class SendBuffer:
    """Sends together what several incoming messages cause, and records the failures of each.

    Outside a batch nothing is buffered: `send` sends at once. `late` is called with each message
    that is not sent because its `until` has come. `clock` is in epoch ms.
    """

    sqs: "SQSClient"
    _: KW_ONLY
    clock: Clock = now
    late: Callable[[OutgoingMessage], None] = lambda _: None
    _is_open: bool = field(default=False, init=False)
    _account: tuple[str, ...] = field(default=(), init=False)
    _kept: dict[str, list[_Kept]] = field(default_factory=dict, init=False)
    _problems: dict[str, Exception] = field(default_factory=dict, init=False)
    _oldest: int | None = field(default=None, init=False)

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Buffer messages during one batch; at its end, unsent messages are discarded."""
        self._is_open = True
        try:
            yield
        finally:
            self._is_open = False
            self._forget()

    def attribute_to(self, *message_ids: str) -> None:
        """Attribute the messages sent from now on to each of these incoming messages."""
        self._account = message_ids

    def send(self, url: str, posts: Sequence[OutgoingMessage]) -> list[Exception]:
        """Buffer the messages; outside a batch, send them and return the failures."""
        if not self._is_open:
            return [each for each in send_messages(self.sqs, url, posts) if each is not None]
        if self._oldest is None and posts:
            self._oldest = self.clock()
        self._kept.setdefault(url, []).extend(_Kept(self._account, post) for post in posts)
        return []

    def flush(self, *, but: str | None = None) -> None:
        """Send all buffered messages, except those for the queue `but`, and record the failures.

        If this raises, the messages for the queue in question stay in the buffer, because other
        incoming messages may have caused them.
        """
        if self._oldest is None:
            return
        for url in [url for url in self._kept if url != but]:
            self._deliver(url, self._kept[url])
            del self._kept[url]
        if not self._kept:
            self._oldest = None

    def flush_what_waited(self, longest: int) -> None:
        """Send all buffered messages if the oldest has waited for `longest` ms."""
        if self._oldest is not None and self.clock() - self._oldest >= longest:
            self.flush()

    def problem_of(self, message_id: str) -> Exception | None:
        """Why a message that this incoming message caused was not accepted; None if all were.

        TryAgain if it may be accepted another time.
        """
        return self._problems.get(message_id)

    @property
    def oldest(self) -> int | None:
        """Since when (epoch ms) a message is in the buffer; None if the buffer is empty."""
        return self._oldest

    @property
    def wanted_by(self) -> int | None:
        """The earliest `wanted_by` (epoch ms) of the buffered messages; None if none has one."""
        found = [kept.post.wanted_by for posts in self._kept.values() for kept in posts]
        return min((at for at in found if at is not None), default=None)

    def _deliver(self, url: str, found: Sequence[_Kept]) -> None:
        in_time: list[_Kept] = []
        for kept in found:
            if kept.post.until is not None and self.clock() >= kept.post.until:
                self.late(kept.post)
            else:
                in_time.append(kept)
        outcomes = send_messages(self.sqs, url, [kept.post for kept in in_time])
        for kept, failure in zip(in_time, outcomes, strict=True):
            if failure is None:
                continue
            for message_id in kept.message_ids:
                known = self._problems.get(message_id)
                if known is None or not isinstance(known, TryAgain):
                    self._problems[message_id] = failure

    def _forget(self) -> None:
        self._kept.clear()
        self._problems.clear()
        self._oldest = None
        self._account = ()


WAITS_FOR = 100
"""ms that the oldest reply may wait. A quick attempt takes less."""

SENT_WITHIN = SECOND // 4
"""ms reserved for sending the replies before the first of them is due."""


def why_sent_first(*, since: int, until: int, attempt_ends_at: int, now: int) -> str | None:
    """Why the buffered replies are sent before the next attempt; None if they may wait for its end.

    `since` is when the oldest of them was buffered, and `until` when the first of them should be
    sent. All instants are in epoch ms.
    """
    if now - since >= WAITS_FOR:
        return f"a reply has waited for {format_duration(now - since)}"
    if attempt_ends_at + SENT_WITHIN > until:
        return "the next attempt may end too late for a waiting reply"
    return None
