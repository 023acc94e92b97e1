"""`roundsman submit`: sends an order event to the SubmissionQueue, as an application does."""

import json
from typing import Annotated

import typer

from roundsman.client import Client
from roundsman.command_line import command_line
from roundsman.errors import RoundsmanError, TryAgain
from roundsman.model.task import TASK_ID
from roundsman.wire.limits import MESSAGE_LIMIT
from roundsman_console.application import check_event, order_id_of
from roundsman_console.cli.options import AsJson, NoWait
from roundsman_console.cli.stack_option import StackOption
from roundsman_console.cli.target import announced_stack
from roundsman_console.cli_errors import ConsoleError, sentences
from roundsman_console.clock import now, wait_for
from roundsman_console.documents import SubmitDocument
from roundsman_console.hints import hint
from roundsman_console.stack.stack import DeployedStack
from roundsman_console.verbs.limits import WAIT
from roundsman_console.verbs.reading import read_file

ANYWAY = " Correct it, or add --anyway to send it nevertheless."


def submit_command(
    file: Annotated[str, typer.Argument(help="A file with one order event, or - for stdin.")],
    stack: StackOption = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Send it even if it would be rejected.")
    ] = False,
    wait: Annotated[
        float, typer.Option(min=0, help="Seconds to wait until the stack has the order.")
    ] = WAIT,
    no_wait: NoWait = False,
    as_json: AsJson = False,
) -> None:
    """Send an order event, unchanged, and wait until the stack has the order.

    The submission function checks it. In the folder of the application, an event that its
    workflows would reject is not sent.

    Example: roundsman submit events/first.json
    """
    with sentences():
        found = announced_stack(stack)
        found.output("SubmissionQueueUrl")  # raises if it is no stack of Roundsman
        name = "Standard input" if file == "-" else file
        body = _read(file, name)
        if not anyway:
            check_event(name, body, ANYWAY)
        order_id = order_id_of(body)
        message_id = Client(found.outputs, sqs=found.sqs).submit_text(body)
        late = order_id is not None and not no_wait and _is_late(found, order_id, wait)
        if as_json:
            print(json.dumps(SubmitDocument(messageId=message_id, orderId=order_id)))
        elif order_id is None:
            print(hint("Sent, but it is not an order event. See: roundsman rejected ls"))
        elif late:
            print(
                hint(
                    "Sent, but the order is not known to the stack yet: it may still be on its "
                    "way, or have been rejected. See: roundsman rejected ls"
                )
            )
        else:
            print(hint(f"Sent. See: {command_line('show', order_id)}"))


def _is_late(stack: DeployedStack, order_id: str, within: float) -> bool:
    """Return whether the stack still has no such order after `within` seconds.

    False if that cannot be read: who may send orders need not be allowed to read them.
    """
    if not TASK_ID.fullmatch(order_id):
        return True

    def look() -> bool | None:
        try:
            return stack.tasks.load(order_id, now()) is not None or None
        except TryAgain:
            return None
        except RoundsmanError:
            return False

    return wait_for(look, within) is None


def _read(file: str, name: str) -> str:
    body = read_file(file, stdin=True)
    if not body.strip():
        raise ConsoleError(f"{name} is empty; SQS does not accept an empty message.")
    size = len(body.encode())
    if size > MESSAGE_LIMIT:
        raise ConsoleError(f"{name} has {size} bytes; SQS accepts at most {MESSAGE_LIMIT}.")
    return body
