"""`roundsman signal`: sends a signal to an order, as its application does."""

import json
from typing import Annotated

import typer

from roundsman.aws.clock import now
from roundsman.client import Client
from roundsman.command_line import command_line
from roundsman.engine.eligibility import decided
from roundsman.errors import Refused, RoundsmanError
from roundsman.model.events import CommandSource, Signalled
from roundsman.model.json import Json
from roundsman.wire.commands import APPLICATION
from roundsman_console.cli.options import AsJson
from roundsman_console.cli.stack_option import StackOption
from roundsman_console.cli.target import announced_stack
from roundsman_console.cli_errors import sentences
from roundsman_console.command.commands import new_command_id
from roundsman_console.documents import SignalDocument
from roundsman_console.errors import InspectorError
from roundsman_console.hints import hint
from roundsman_console.order.lookup import find_task
from roundsman_console.sanitize import inert
from roundsman_console.stack.stack import DeployedStack
from roundsman_console.verbs.reading import read_result


def signal_command(
    order: Annotated[str, typer.Argument(help="The order.")],
    name: Annotated[str, typer.Argument(help="The name for which a step of it waits.")],
    stack: StackOption = None,
    data: Annotated[
        str | None,
        typer.Option(help="The data of the signal, as JSON or @file: the result of the step."),
    ] = None,
    signal_id: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="The id of the signal; without it, a new one. One that is sent twice with one id "
            "counts once.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Send a signal to an order, as its application does.

    The step that waits for it is done, at once or when it begins. A signal that the order cannot
    take, as read just before, is not sent; one that it cannot take any more when it comes becomes a
    rejected message. In the place of a signal that will never come, a
    person resolves the step.

    Example: roundsman signal ord-1001 paid --data '{"amount": 40}'
    """
    with sentences():
        found = announced_stack(stack)
        found.output("SubmissionQueueUrl")  # raises if it is no stack of Roundsman
        given = read_result(data, "--data")
        why = why_refused(found, order, name, given, signal_id)
        if why is not None:
            raise InspectorError(
                f"The signal {inert(name)} to {order} is refused, nothing was sent: {why}."
            )
        client = Client(found.outputs, sqs=found.sqs)
        sent_as = client.signal(order, name, given, signal_id=signal_id)
        if as_json:
            print(json.dumps(SignalDocument(orderId=order, name=name, id=sent_as)))
        else:
            print(hint(f"Sent, with the id {sent_as}. See: {command_line('why', order)}"))


def why_refused(
    stack: DeployedStack, order: str, name: str, data: Json, signal_id: str | None
) -> str | None:
    """Return why the order, as its record is now, would refuse the signal; None if it would not.

    None also if that is not known: the order is not there yet, or cannot be read.
    """
    asked = CommandSource(signal_id or new_command_id(), APPLICATION)
    try:
        task, plan = find_task(stack, order)
        decided(plan, task, Signalled(asked, name, data), now())
    except Refused as refused:
        return str(refused)
    except RoundsmanError:
        return None
    return None
