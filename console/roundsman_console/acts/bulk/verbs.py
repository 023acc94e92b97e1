"""The verbs on a bulk run: pause, resume and stop."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar, Literal

from roundsman.command_line import command_line
from roundsman.model.bulk_run import RequestAction
from roundsman_console.acts.bulk.start import DONE, POSSIBLE, ask, find_run
from roundsman_console.acts.verb import Argument, Asked, Form, Preview, StackVerb, Subject
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.constraints import RunId
from roundsman_console.base.errors import NotPossible
from roundsman_console.base.result import Noun, Result


@dataclass(frozen=True, slots=True)
class BulkRunRequest(Result):
    """A bulk run that was asked to pause, resume or stop."""

    run_id: RunId
    command: Literal["pause", "resume", "stop"]
    sentence: str

    def words(self) -> Sequence[str]:
        return [self.sentence]

    def lines(self) -> Sequence[str]:
        return [f"{self.sentence} Watch it with: {command_line('bulk watch', self.run_id)}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkRunVerb(StackVerb):
    """What a person asks of a bulk run."""

    reason = "Reason, stored with the run."
    document = BulkRunRequest
    noun = Noun.RUNS
    action: ClassVar[RequestAction]

    run: Annotated[str, Argument(metavar="RUN", help="The run's id: b-1a2b3c4d.", label="")]

    @property
    def anyway(self) -> bool:
        """Whether orders are also sent that would wait for a held agent."""
        return False

    @classmethod
    def subject(cls, stack: DeployedStack, given: Form) -> Subject:
        run = find_run(stack, given.get("run", ""))[0].run.id
        return Subject(run, {"run": run})

    def preview(self, stack: DeployedStack) -> Preview:
        state = find_run(stack, self.run)[0].state
        if state not in POSSIBLE[self.action]:
            raise NotPossible(f"{self.run} cannot be {DONE[self.action]}: it is {state.value}.")
        would = f"{self.run} is {state.value}. It would be {DONE[self.action]}."
        return Preview(would, partial(self._ask, stack), state.value)

    def _ask(self, stack: DeployedStack, asked: Asked) -> BulkRunRequest:
        by, why = asked.by, asked.reason
        sentence = ask(stack, self.run, self.action, by=by, reason=why, anyway=self.anyway)
        return BulkRunRequest(self.run, self.action.value, sentence)


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
