"""What a person may ask of a stack: each verb is declared once, here."""

from collections.abc import Sequence

from roundsman_console.acts.bulk.verbs import OF_RUNS
from roundsman_console.acts.callback.answers import AnswerVerb
from roundsman_console.acts.hold.lift import LiftVerb
from roundsman_console.acts.hold.verbs import HoldVerb, ReleaseVerb
from roundsman_console.acts.note import NoteVerb
from roundsman_console.acts.order.verbs import (
    CancelVerb,
    EraseVerb,
    ExtendVerb,
    MoveVerb,
    OrderVerb,
    ResolveVerb,
    ResubmitVerb,
    RunVerb,
    UndoVerb,
)
from roundsman_console.acts.reconcile.verbs import ReconcileVerb
from roundsman_console.acts.rollback import RollbackVerb
from roundsman_console.acts.schedule.verbs import OF_SCHEDULES
from roundsman_console.acts.set_aside.verbs import (
    DropDeadLetterVerb,
    DropRejectedVerb,
    RedriveVerb,
)
from roundsman_console.acts.verb import StackVerb, Verb
from roundsman_console.acts.workflow.verbs import AgentVersionsVerb

VERBS: Sequence[type[Verb]] = (
    ResubmitVerb,
    UndoVerb,
    CancelVerb,
    ResolveVerb,
    AnswerVerb,
    ExtendVerb,
    RunVerb,
    MoveVerb,
    EraseVerb,
    *OF_RUNS,
    DropRejectedVerb,
    RedriveVerb,
    DropDeadLetterVerb,
    HoldVerb,
    ReleaseVerb,
    LiftVerb,
    NoteVerb,
    ReconcileVerb,
    RollbackVerb,
    AgentVersionsVerb,
    *OF_SCHEDULES,
)
"""Those that are declared."""


def order_verbs() -> list[type[OrderVerb]]:
    """Return those that are sent to the task of an order."""
    return [one for one in VERBS if issubclass(one, OrderVerb)]


def stack_verbs() -> list[type[StackVerb]]:
    """Return those that say themselves what they would do."""
    return [one for one in VERBS if issubclass(one, StackVerb)]
