"""The verbs on a bulk run: pause, resume and stop."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from roundsman.model.bulk_run import RequestAction
from roundsman_console.acts.documents.bulk import BulkRunRequestDocument
from roundsman_console.acts.verb import Argument, Verb


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkRunVerb(Verb):
    """What a person asks of a bulk run."""

    reason = "Reason, stored with the run."
    document = BulkRunRequestDocument
    action: ClassVar[RequestAction]

    run: Annotated[str, Argument(metavar="RUN", help="The run's id: b-1a2b3c4d.", label="")]

    @property
    def anyway(self) -> bool:
        """Whether orders are also sent that would wait for a held agent."""
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseVerb(BulkRunVerb):
    """Pause a bulk run. It continues where it was when you resume it.

    Commands of the next 20 seconds are sent already, and take effect.

    Example: roundsman bulk pause b-1a2b3c4d --reason "the carrier is slow"
    """

    name = "bulk pause"
    title = "Pause"
    action = RequestAction.PAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeVerb(BulkRunVerb):
    """Resume a bulk run. One that was stopped begins with a canary again.

    Example: roundsman bulk resume b-1a2b3c4d --reason "the carrier is back"
    """

    name = "bulk resume"
    title = "Resume"
    action = RequestAction.RESUME

    anyway: Annotated[
        bool, Argument("--anyway", "Also send orders that would wait for a held agent.")
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StopVerb(BulkRunVerb):
    """Stop a bulk run. Commands of the next 20 seconds are sent already, and take effect.

    Example: roundsman bulk stop b-1a2b3c4d --reason "the carrier asked us to"
    """

    name = "bulk stop"
    title = "Stop"
    action = RequestAction.STOP


OF_RUNS: Sequence[type[BulkRunVerb]] = (PauseVerb, ResumeVerb, StopVerb)
