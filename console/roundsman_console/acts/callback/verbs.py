"""The verb on a callback: answer."""

from dataclasses import dataclass
from typing import Annotated

from roundsman.errors import PermanentError
from roundsman.model.json import Json
from roundsman_console.acts.documents.order import AnswerDocument
from roundsman_console.acts.verb import Argument, Verb
from roundsman_console.base.errors import WrongFields
from roundsman_console.base.typed_inputs import read_failure, read_json, read_result


@dataclass(frozen=True, slots=True)
class GivenResult:
    """The result that an answer gives."""

    value: Json
    """None for a step without a result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerVerb(Verb):
    """Answer a step that waits for a callback, by the token of the callback or by its order.

    The history names the principal that sent the answer; resolve also records a name and a reason.

    Example: roundsman answer eyJhZ2Vu... --result '{"approvedBy": "j.doe"}'
    """

    name = "answer"
    title = "Answer a callback"
    reason = ""
    reason_options = ()
    needs_reason = "none"
    document = AnswerDocument

    callback: Annotated[
        str,
        Argument(
            metavar="TOKEN|ORDER",
            help="The callback token that the agent handed out, or the id of the order.",
            missing="Give the callback token, or the id of the order and its step.",
        ),
    ]
    step: Annotated[str | None, Argument(help="With an order: the step that waits.")] = None
    result: Annotated[
        GivenResult | None,
        Argument(
            "--result",
            "The step succeeded; its result, as JSON or @file.",
            label="The step succeeded; its result, as JSON",
            hint="null if it has none",
            read=lambda text: GivenResult(read_result(text)),
            read_field=lambda text: GivenResult(read_json(text)),
        ),
    ] = None
    failed: Annotated[
        str | None, Argument("--failed", "The step failed for good; the error type, one word.")
    ] = None
    message: Annotated[
        str,
        Argument(
            "--message",
            "With --failed: the error message.",
            label="The error message, if it failed",
        ),
    ] = ""

    @property
    def failure(self) -> PermanentError | None:
        """The failure to report; None if the step succeeded."""
        return read_failure(self.failed, self.message)

    def check(self) -> None:
        if (self.result is None) == (self.failure is None):
            why = "Give either --result or --failed. For no result, give --result null."
            raise WrongFields({"result": why})
