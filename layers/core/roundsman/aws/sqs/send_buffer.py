"""What the messages of one batch have to send, kept until it goes out in few requests.

    with mailbag.opened():
        mailbag.on_account_of(message_id)
        handle(...)                       # puts posts in
        mailbag.flush()
        mailbag.problem_of(message_id)    # the message is done only if there is none

Nothing depends on what lies in here: it all follows from records that are stored, so a process
that dies with it loses nothing that the redelivery of its messages does not bring back.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from roundsman.aws.clock import now
from roundsman.aws.sqs.outgoing import OutgoingMessage, send_messages
from roundsman.errors import TryAgain
from roundsman.ports import Clock

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
from roundsman.model.instants import SECOND, spoken


class _Kept(NamedTuple):
    message_id: str
    post: OutgoingMessage


class SendBuffer:
    """Posts of several messages, sent together; one whose post was not accepted is told by name.

    Outside of a batch nothing waits: what is sent is sent at once. `late` is told of each post
    that was not sent since its `until` had come. `clock` is in epoch ms.
    """

    def __init__(
        self,
        sqs: "SQSClient",
        *,
        clock: Clock = now,
        late: Callable[[OutgoingMessage], None] = lambda _: None,
    ) -> None:
        self._sqs = sqs
        self._clock = clock
        self._late = late
        self._is_open = False
        self._account = ""
        self._kept: dict[str, list[_Kept]] = {}
        self._problems: dict[str, Exception] = {}
        self._oldest: int | None = None

    @contextmanager
    def opened(self) -> Iterator[None]:
        """For one batch. What it leaves, where it is broken off, is forgotten."""
        self._is_open = True
        try:
            yield
        finally:
            self._is_open = False
            self._forget()

    def attribute_to(self, message_id: str) -> None:
        """What is sent from now on is what this message caused."""
        self._account = message_id

    def send(self, url: str, posts: Sequence[OutgoingMessage]) -> list[Exception]:
        """Put them in, or send them, where no batch is handled; why some were not accepted then."""
        if not self._is_open:
            return [each for each in send_messages(self._sqs, url, posts) if each is not None]
        if self._oldest is None and posts:
            self._oldest = self._clock()
        self._kept.setdefault(url, []).extend(_Kept(self._account, post) for post in posts)
        return []

    def flush(self, *, but: str | None = None) -> None:
        """Send all there is, `but` what is for that queue. What was not accepted is remembered.

        Should this raise, what was being sent is still in here: it may be another message's.
        """
        if self._oldest is None:
            return
        for url in [url for url in self._kept if url != but]:
            self._deliver(url, self._kept[url])
            del self._kept[url]
        if not self._kept:
            self._oldest = None

    def flush_what_waited(self, longest: int) -> None:
        """Send all there is where some of it has waited for so many ms."""
        if self._oldest is not None and self._clock() - self._oldest >= longest:
            self.flush()

    def problem_of(self, message_id: str) -> Exception | None:
        """Why something that this message caused was not accepted; TryAgain where it may yet be."""
        return self._problems.get(message_id)

    @property
    def oldest(self) -> int | None:
        """Since when (epoch ms) something lies in here; None where nothing does."""
        return self._oldest

    @property
    def wanted_by(self) -> int | None:
        """The first instant (epoch ms) by which something in here should have been sent."""
        found = [kept.post.wanted_by for posts in self._kept.values() for kept in posts]
        return min((at for at in found if at is not None), default=None)

    def _deliver(self, url: str, found: Sequence[_Kept]) -> None:
        in_time: list[_Kept] = []
        for kept in found:
            if kept.post.until is not None and self._clock() >= kept.post.until:
                self._late(kept.post)
            else:
                in_time.append(kept)
        outcomes = send_messages(self._sqs, url, [kept.post for kept in in_time])
        for kept, failure in zip(in_time, outcomes, strict=True):
            if failure is None:
                continue
            known = self._problems.get(kept.message_id)
            if known is None or not isinstance(known, TryAgain):
                self._problems[kept.message_id] = failure

    def _forget(self) -> None:
        self._kept.clear()
        self._problems.clear()
        self._oldest = None
        self._account = ""


WAITS_FOR = 100
"""ms, of the reply that has waited for longest. A quick attempt is over in less."""

SENT_WITHIN = SECOND // 4
"""What sending the replies takes at most, of the first one's time."""


def why_sent_first(*, since: int, until: int, attempt_ends_at: int, now: int) -> str | None:
    """Why replies go out before the next attempt begins; None where they may wait for its end.

    The oldest of them has waited `since`, and the first of them may not be sent from `until` on.
    All instants are epoch ms.
    """
    if now - since >= WAITS_FOR:
        return f"a reply has waited for {spoken(now - since)}"
    if attempt_ends_at + SENT_WITHIN > until:
        return "the next attempt may end too late for a reply that waits"
    return None
