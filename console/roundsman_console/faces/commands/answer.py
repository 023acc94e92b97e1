"""`roundsman answer`: sends the reply that a step waits for from an external system.

The reply goes to the agent's reply queue, like a reply from the external system. The history
names the principal that sent it; `roundsman resolve` also records a name and a reason.
"""

from roundsman_console.acts.callback.answers import check_answer, send_answer
from roundsman_console.acts.callback.verbs import AnswerVerb
from roundsman_console.acts.order.commands import CommandOutcome
from roundsman_console.base.errors import Interrupted
from roundsman_console.base.limits import WAIT
from roundsman_console.faces.cli.act import print_sent
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.options import AsJson, NoWait, Wait
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import announced_stack
from roundsman_console.faces.cli.verb_options import command_of


@command_of(AnswerVerb)
def answer_command(
    verb: AnswerVerb,
    stack: StackOption = None,
    as_json: AsJson = False,
    wait: Wait = WAIT,
    no_wait: NoWait = False,
) -> None:
    with sentences():
        check_answer(verb)
        try:
            answered = send_answer(announced_stack(stack), verb, wait=0 if no_wait else wait)
        except Interrupted as interrupted:
            answered = interrupted.result
        lines = [answered.sentence]
        if answered.outcome is CommandOutcome.DONE and answered.task is not None:
            lines.append(f"{answered.task.task_id} is {answered.task.state}.")
        print_sent(answered, lines, as_json=as_json)
