"""`roundsman answer`: sends the reply that a step waits for from an external system.

The reply goes to the agent's reply queue, like a reply from the external system. The history
names the principal that sent it; `roundsman resolve` also records a name and a reason.
"""

import typer
from rich.console import Console

from roundsman_console.callback.answers import check_answer, send_answer
from roundsman_console.callback.verbs import AnswerVerb
from roundsman_console.cli.act import CODES
from roundsman_console.cli.options import DEFAULT_WAIT, AsJson, NoWait, Wait
from roundsman_console.cli.stack_option import StackOption
from roundsman_console.cli.target import announced_stack
from roundsman_console.cli_errors import complain, sentences
from roundsman_console.errors import Interrupted
from roundsman_console.hints import hint, hinted_json
from roundsman_console.order.commands import CommandOutcome
from roundsman_console.verbs.commands import command_of


@command_of(AnswerVerb)
def answer_command(
    verb: AnswerVerb,
    stack: StackOption = None,
    as_json: AsJson = False,
    wait: Wait = DEFAULT_WAIT,
    no_wait: NoWait = False,
) -> None:
    with sentences():
        check_answer(verb)
        try:
            answered = send_answer(announced_stack(stack), verb, wait=0 if no_wait else wait)
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
