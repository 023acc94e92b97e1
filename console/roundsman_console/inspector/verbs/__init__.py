"""What a person may ask of a stack: each verb is declared once, here."""

from collections.abc import Sequence

from roundsman_console.inspector.verbs.agents import HoldVerb, ReleaseVerb
from roundsman_console.inspector.verbs.bulk_runs import OF_RUNS
from roundsman_console.inspector.verbs.callbacks import AnswerVerb
from roundsman_console.inspector.verbs.messages import (
    DropDeadLetterVerb,
    DropRejectedVerb,
    RedriveVerb,
)
from roundsman_console.inspector.verbs.orders import OF_ORDERS
from roundsman_console.inspector.verbs.stacks import ReconcileVerb
from roundsman_console.inspector.verbs.verb import Verb

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
