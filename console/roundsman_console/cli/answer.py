"""`roundsman answer`: sends the reply that a step waits for from an external system.

The reply goes to the agent's reply queue, like a reply from the external system. The history
names the principal that sent it; `roundsman resolve` also records a name and a reason.
"""

from typing import Annotated

import typer
from rich.console import Console

from roundsman.errors import PermanentError
from roundsman_console.arguments import StackOption
from roundsman_console.cli._act import CODES
from roundsman_console.cli._options import DEFAULT_WAIT, AsJson, NoWait, Wait
from roundsman_console.cli_errors import USAGE, ConsoleError, complain, sentences
from roundsman_console.hints import hint, hinted_json
from roundsman_console.inspector.errors import Interrupted
from roundsman_console.inspector.operate.answers import check_answer, send_answer, token_of_step
from roundsman_console.inspector.operate.commands import CommandOutcome
from roundsman_console.inspector.verbs.reading import read_failure, read_result
from roundsman_console.target import announced_stack


def answer_command(
    wait_of: Annotated[
        str,
        typer.Argument(
            metavar="TOKEN|ORDER",
            help="The callback token that the agent handed out, or the id of the order.",
        ),
    ],
    step: Annotated[str | None, typer.Argument(help="With an order: the step that waits.")] = None,
    result: Annotated[
        str | None, typer.Option(help="The step succeeded; its result, as JSON or @file.")
    ] = None,
    failed: Annotated[
        str | None, typer.Option(help="The step failed for good; the error type, one word.")
    ] = None,
    message: Annotated[str, typer.Option(help="With --failed: the error message.")] = "",
    stack: StackOption = None,
    as_json: AsJson = False,
    wait: Wait = DEFAULT_WAIT,
    no_wait: NoWait = False,
) -> None:
    """Answer a step that waits for a callback, by the token of the callback or by its order.

    Example: roundsman answer eyJhZ2Vu... --result '{"approvedBy": "j.doe"}'
    """
    with sentences():
        failure = _failure(result, failed, message)
        answer = None if failure else read_result(result)
        if step is None:
            check_answer(wait_of, result=answer, failure=failure)
        deployed = announced_stack(stack)
        token = wait_of if step is None else token_of_step(deployed, wait_of, step)
        try:
            answered = send_answer(
                deployed,
                token,
                result=answer,
                failure=failure,
                wait=0 if no_wait else wait,
            )
        except Interrupted as interrupted:
            answered = interrupted.result
        if as_json:
            print(hinted_json(answered.document()))
        code = CODES.get(answered.outcome, 0)
        if code:
            complain(answered.sentence)
            raise typer.Exit(code)
        if as_json:
            return
        console = Console(highlight=False, soft_wrap=True)
        console.print(hint(answered.sentence), markup=False)
        if answered.outcome is CommandOutcome.DONE and answered.task is not None:
            console.print(f"{answered.task.task_id} is {answered.task.state}.")


def _failure(result: str | None, failed: str | None, message: str) -> PermanentError | None:
    """Return the failure to report; None if the answer is a result."""
    if (result is None) == (failed is None):
        raise ConsoleError(
            "Give either --result or --failed. For no result, give --result null.", USAGE
        )
    return read_failure(failed, message)
