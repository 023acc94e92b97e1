"""What a person may ask of a stack: each verb is declared once, here."""

from collections.abc import Sequence

from roundsman_console.acts.bulk.verbs import OF_RUNS
from roundsman_console.acts.callback.verbs import AnswerVerb
from roundsman_console.acts.hold.verbs import HoldVerb, ReleaseVerb
from roundsman_console.acts.order.verbs import OF_ORDERS
from roundsman_console.acts.reconcile.verbs import ReconcileVerb
from roundsman_console.acts.set_aside.verbs import (
    DropDeadLetterVerb,
    DropRejectedVerb,
    RedriveVerb,
)
from roundsman_console.acts.verb import Verb

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
)
"""Those that are declared."""
