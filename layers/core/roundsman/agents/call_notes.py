"""Notes of calls: how an agent proves that nothing happened, where another agent may take the step.

A step with several agents may act at the next one only once it is known that nothing happened at
the first. That a request was given back uncalled does not say so: SQS may deliver a copy of it
later, to an instance that calls. So before an attempt to perform calls the service, it notes so
under its key; and an attempt that ends without an effect closes the key for all requests up to
its own. Both are one conditional write to one row, so one of them comes first:

- The call was noted first: closing fails, and nothing is proved.
- The key was closed first: no copy of these requests calls any more, and that is the proof.

What is proved is what the notes know of. A request that says itself that an earlier attempt may
have had its effect gets no proof: the note of that call may be gone by then.

Which request came first is said by the number of its claim. When it was sent does not say so: the
request of one claim may be sent twice, and clocks differ.
"""

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Protocol

from roundsman.agents.guard import NotCalled
from roundsman.agents.outcomes import AttemptResult
from roundsman.errors import CallRefused, TryAgain
from roundsman.model.events import Outcome, claim_of
from roundsman.model.task import Effect
from roundsman.ports import Clock
from roundsman.wire.messages import AgentRequest


class Begun(Enum):
    """What noting a call has found."""

    FIRST = "no call was noted under the key before, but such as had no effect"
    AGAIN = "another call was noted before, or may have been"
    CLOSED = "the request may not call any more; nothing was noted"


class CallNotes(Protocol):
    """Where one agent notes its calls. A key belongs to one agent and one effect."""

    def begin(self, key: str, claim: int) -> Begun:
        """Note that a request of the claim with this number is about to call the service.

        Raises TryAgain and CallRefused: whether it was noted is unknown then. A write that is
        repeated because its answer was lost finds itself, and says AGAIN.
        """

    def close(self, key: str, claim: int, *, begun: bool) -> bool:
        """Let no request under this key of this claim, or an earlier one, call any more.

        Only where no call is noted; or, where `begun`, none but the caller's own, which had no
        effect and is forgotten. True is a proof, also where somebody else has closed the key;
        False proves nothing. Raises TryAgain and CallRefused.
        """


class NoNotes:
    """Notes nothing and proves nothing: for steps with one agent, and where there is no table."""

    def begin(self, key: str, claim: int) -> Begun:  # noqa: ARG002  # the shape of CallNotes
        """The call may be made, and is none that anything could be proved of."""
        return Begun.AGAIN

    def close(self, key: str, claim: int, *, begun: bool) -> bool:  # noqa: ARG002
        """Nothing is proved."""
        return False


NO_NOTES = NoNotes()


class NotNoted(NotCalled):
    """The call may not be made, or could not be noted for now; so it was not made."""


@dataclass(kw_only=True)
class CallNote:
    """What one attempt notes, and what it can prove when it has ended, until `ends_at`."""

    notes: CallNotes
    request: AgentRequest
    ends_at: int
    clock: Clock
    _begun: Begun | None = field(default=None, init=False)

    def before_call(self) -> None:
        """To be said before each call that may have the effect. Raises NotNoted and CallRefused."""
        if self._begun is not None:
            return
        # Of a claim without a number nothing is proved; it is older than all that have one.
        claim = claim_of(self.request.lock) or 0
        try:
            begun = self.notes.begin(self.request.idempotency_key, claim)
        except TryAgain as error:
            raise NotNoted("its call could not be noted; not attempted") from error
        if begun is Begun.CLOSED:
            raise NotNoted("a copy of a request that was given back; not attempted")
        self._begun = begun

    def proven(self, ended: AttemptResult, *, calls: int) -> AttemptResult:
        """The same end of the attempt, saying that there is no effect where that can be proved.

        `calls` is how often it called the service. A refusal of its only call is as good as no
        call; after several, an earlier one may have had the effect that the last was refused for.
        """
        given_back = ended.outcome is Outcome.HELD and not ended.outcome_unknown
        refused = ended.outcome is Outcome.PERMANENT and ended.effect is None
        refused = refused and calls == 1 and not self.request.read_before
        if not (given_back or refused) or self.request.outcome_unknown:
            return ended
        if self._begun is Begun.AGAIN or self.clock() >= self.ends_at:
            return ended  # it would fail, or take the time that the reply needs
        return replace(ended, effect=Effect.NONE) if self._closed() else ended

    def _closed(self) -> bool:
        key, claim = self.request.idempotency_key, claim_of(self.request.lock)
        if claim is None:
            return False
        try:
            return self.notes.close(key, claim, begun=self._begun is Begun.FIRST)
        except (TryAgain, CallRefused):
            return False
