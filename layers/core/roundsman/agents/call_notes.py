"""Call notes: an agent proves with them that its requests for a step had no effect.

A step with several agents may move to the next agent only if it had no effect at the first one.
An agent that returned a request without a call is not enough: SQS may deliver a copy of the request
later, to an instance that makes the call. So an attempt to perform notes its call under the
idempotency key before it calls the service, and an attempt that ends without an effect closes the
key for its own and all earlier requests. Each is a conditional write to the same row, so one of
them comes first:

- If the call was noted first, closing the key fails, and nothing is proved.
- If the key was closed first, no copy of these requests can call any more. That is the proof.

Notes expire, so nothing is proved for a request after an earlier attempt that may have had its
effect. Between two polls of an outside job the outcome is known, but only from the notes: once they
may be gone, the scheduler sends the request with an unknown outcome.

Requests are ordered by the number of their claim, not by the time they were sent: the request of
one claim may be sent twice, and clocks differ.
"""

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Protocol

from roundsman.agents.guard import NotCalled
from roundsman.errors import CallRefused, TryAgain
from roundsman.model.events import Outcome, claim_of
from roundsman.model.task import Effect
from roundsman.ports import Clock
from roundsman.wire.messages import AgentRequest, AttemptResult


class Begun(Enum):
    """The result of noting a call."""

    FIRST = "no call was noted under the key before, but such as had no effect"
    AGAIN = "another call was noted before, or may have been"
    CLOSED = "the request may not call any more; nothing was noted"


class CallNotes(Protocol):
    """The store of one agent's call notes. A key belongs to one agent and one effect."""

    def begin(self, key: str, claim: int) -> Begun:
        """Note that a request of claim number `claim` is about to call the service.

        If a write is repeated because its response was lost, it finds its own note and returns
        AGAIN. Raises TryAgain and CallRefused; the call may or may not have been noted then.
        """

    def close(self, key: str, claim: int, *, begun: bool) -> bool:
        """Forbid further calls by requests of this claim, or an earlier one, under the key.

        The key is closed only if no call is noted under it. With `begun`, the caller's own call,
        which had no effect, may be noted; its note is removed. True proves that the key has no
        effect, also if another attempt has closed it. False proves nothing. Raises TryAgain and
        CallRefused.
        """


class NoNotes:
    """Notes and proves nothing: for steps with one agent, and for agents without a table."""

    def begin(self, key: str, claim: int) -> Begun:  # noqa: ARG002  # part of CallNotes
        """Return AGAIN: the call may be made, and nothing can be proved about it."""
        return Begun.AGAIN

    def close(self, key: str, claim: int, *, begun: bool) -> bool:  # noqa: ARG002
        """Return False: nothing is proved."""
        return False


NO_NOTES = NoNotes()


class NotNoted(NotCalled):
    """The call was not made, because it is forbidden or could not be noted now."""


@dataclass(kw_only=True)
class CallNote:
    """The call note of one attempt, and the proof that the attempt had no effect."""

    notes: CallNotes
    request: AgentRequest
    ends_at: int
    """Epoch ms; the key is not closed after it, because the reply needs the time."""
    clock: Clock
    _begun: Begun | None = field(default=None, init=False)

    def before_call(self) -> None:
        """Note the call; must precede each call that may have the effect.

        Raises NotNoted if the call may not be made, and CallRefused.
        """
        if self._begun is not None:
            return
        # Claims without a number are older than all others. Nothing is proved about them.
        claim = claim_of(self.request.lock) or 0
        try:
            begun = self.notes.begin(self.request.idempotency_key, claim)
        except TryAgain as error:
            raise NotNoted("the note of the call could not be written; not attempted") from error
        if begun is Begun.CLOSED:
            raise NotNoted(
                "an attempt for this request has already ended without an effect; not attempted"
            )
        self._begun = begun

    def proven(self, ended: AttemptResult, *, calls: int, without_effect: int = 0) -> AttemptResult:
        """Return the result of the attempt, with Effect.NONE if that can be proved.

        `calls` is how often the attempt called the service. A refusal of the only call is as good
        as no call. After several calls it is not: an earlier one may have had the effect, and the
        service may have refused the last one because of it. `without_effect` is how many of the
        calls ended with the promise that the service did nothing: these are as good as no call.
        After a refusal among calls side by side, the outcome is unknown and nothing is proved.
        """
        given_back = ended.outcome is Outcome.HELD and not ended.outcome_unknown
        may_have_acted = calls - without_effect
        refused = ended.outcome is Outcome.PERMANENT and ended.effect is None
        refused = refused and may_have_acted == 1 and not ended.outcome_unknown
        failed = ended.outcome is Outcome.TRANSIENT and calls > 0 and not may_have_acted
        if not (given_back or refused or failed) or self.request.outcome_unknown:
            return ended
        if calls and self.request.read_before:
            return ended  # its earlier reader may have called, too
        if self._begun is Begun.AGAIN or self.clock() >= self.ends_at:
            return ended  # closing would fail, or take the time that the reply needs
        return replace(ended, effect=Effect.NONE) if self._closed() else ended

    def _closed(self) -> bool:
        key, claim = self.request.idempotency_key, claim_of(self.request.lock)
        if claim is None:
            return False
        try:
            return self.notes.close(key, claim, begun=self._begun is Begun.FIRST)
        except (TryAgain, CallRefused):
            return False
