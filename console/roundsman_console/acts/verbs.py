"""What a person may ask of a stack: each verb is declared once, here."""

from collections.abc import Sequence

from roundsman_console.acts.bulk.verbs import OF_RUNS
from roundsman_console.acts.callback.answers import AnswerVerb
from roundsman_console.acts.hold.verbs import HoldVerb, ReleaseVerb
from roundsman_console.acts.order.verbs import OF_ORDERS
from roundsman_console.acts.reconcile.verbs import ReconcileVerb
from roundsman_console.acts.rollback import RollbackVerb
from roundsman_console.acts.set_aside.verbs import (
    DropDeadLetterVerb,
    DropRejectedVerb,
    RedriveVerb,
)
from roundsman_console.acts.verb import StackVerb, Verb

VERBS: Sequence[type[Verb]] = (
    *OF_ORDERS,
    AnswerVerb,
    HoldVerb,
    ReleaseVerb,
    *OF_RUNS,
    RedriveVerb,
    DropDeadLetterVerb,
    DropRejectedVerb,
    ReconcileVerb,
    RollbackVerb,
)
"""Those that are declared."""


def stack_verbs() -> list[type[StackVerb]]:
    """Return those of which command and form are made."""
    return [one for one in VERBS if issubclass(one, StackVerb)]
