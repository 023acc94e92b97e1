"""What an agent or an outside system may do when it is asked, and what it then says.

An ending is what a call comes to; an answer is the reply that follows from it, if any.
"""

from typing import NamedTuple

from roundsman.model.events import Outcome
from roundsman.model.json import Json
from roundsman.model.record_limits import LARGEST_RESULT
from roundsman.model.task import EarlyEnd, Effect


class Answer(NamedTuple):
    """The part of a reply that differs. `error` is the type of its error."""

    outcome: Outcome
    effect: Effect | None = None
    outcome_unknown: bool = False
    callback: bool = False
    error: str = "Failed"
    reminds: bool = False
    unexpected: bool = False
    adds: tuple[str, ...] = ()
    """The names of the steps that it adds."""
    ends: EarlyEnd | None = None
    result: Json = None

    @property
    def reports_an_effect(self) -> bool:
        """Whether it may count for a later claim, too: the effect is the same under one key."""
        return self.outcome is Outcome.SUCCEEDED or self.effect is Effect.STANDS or self.callback


ANSWERS = {
    "succeeded": Answer(Outcome.SUCCEEDED),
    "succeeded, and adds a step": Answer(Outcome.SUCCEEDED, adds=("leg[a]",)),
    "succeeded, and adds what it may not": Answer(Outcome.SUCCEEDED, adds=("leg[a]", "other[a]")),
    "succeeded, and its result is too long": Answer(Outcome.SUCCEEDED, result="x" * LARGEST_RESULT),
    "transient": Answer(Outcome.TRANSIENT),
    "transient, and nothing happened": Answer(Outcome.TRANSIENT, effect=Effect.NONE),
    "unexpected": Answer(Outcome.TRANSIENT, unexpected=True),
    "succeeded, and ends it early": Answer(Outcome.SUCCEEDED, ends=EarlyEnd("not wanted")),
    "succeeded, and takes all back": Answer(Outcome.SUCCEEDED, ends=EarlyEnd("no", undo=True)),
    "permanent": Answer(Outcome.PERMANENT),
    "permanent, and nothing happened": Answer(Outcome.PERMANENT, effect=Effect.NONE),
    "permanent, though it happened": Answer(
        Outcome.PERMANENT, effect=Effect.STANDS, error="ResultTooLarge"
    ),
    "held": Answer(Outcome.HELD),
    "held, and nothing happened": Answer(Outcome.HELD, effect=Effect.NONE),
    "held after a call": Answer(Outcome.HELD, outcome_unknown=True),
    "progress": Answer(Outcome.PROGRESS),
    "not yet": Answer(Outcome.POLLING),
    "waiting": Answer(Outcome.WAITING),
    "waiting, with reminders": Answer(Outcome.WAITING, reminds=True),
    "yes": Answer(Outcome.SUCCEEDED, callback=True),
    "no": Answer(Outcome.PERMANENT, callback=True),
}
"""By what the model calls them."""


class Ending(NamedTuple):
    """What a call comes to. `says` is the answer that is sent, empty where it is lost.

    `acts`: the effect comes about, or has before. `proves`: nothing has come about under this key,
    and from here on no copy of a request that was sent under it acts any more. `refuses`: whoever
    knows the key, and that it was done, does not say so. `goes_on`: the call is not over yet.
    `asks`: somebody outside acts and answers later.
    """

    says: str = ""
    acts: bool = False
    proves: bool = False
    refuses: bool = False
    goes_on: bool = False
    asks: bool = False


ENDINGS = {
    "done": Ending("succeeded", acts=True),
    "answer lost": Ending(acts=True),
    "done, and adds a step": Ending("succeeded, and adds a step", acts=True),
    "done, and adds what it may not": Ending("succeeded, and adds what it may not", acts=True),
    "done, and ends it early": Ending("succeeded, and ends it early", acts=True),
    "done, and takes all back": Ending("succeeded, and takes all back", acts=True),
    "done, its result too long": Ending("succeeded, and its result is too long", acts=True),
    "unavailable": Ending("transient"),
    "unavailable, and proves it": Ending("transient, and nothing happened", proves=True),
    "has a bug": Ending("unexpected"),
    "done, and has a bug": Ending("unexpected", acts=True),
    "refused": Ending("permanent", refuses=True),
    "done, and says unavailable": Ending("transient", acts=True),
    "done, and says refused": Ending("permanent", acts=True),
    "done, its answer too large": Ending("permanent, though it happened", acts=True),
    "refused, and proves it": Ending("permanent, and nothing happened", refuses=True, proves=True),
    "given back": Ending("held"),
    "given back, and proves it": Ending("held, and nothing happened", proves=True),
    "done, and given back": Ending("held after a call", acts=True),
    "shows progress": Ending("progress", goes_on=True),
    "begun, and is not done": Ending("not yet", acts=True),
    "asks outside": Ending("waiting", asks=True),
    "asks outside, and reminds": Ending("waiting, with reminders", asks=True),
    "fenced": Ending("permanent"),
    # Of somebody outside, who has a token:
    "yes": Ending("yes", acts=True),
    "yes, and it is lost": Ending(acts=True),
    "no": Ending("no", refuses=True),
    "no, since it was undone": Ending("no"),
}
"""By what happens, in words."""
