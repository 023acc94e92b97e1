"""`roundsman signal`: sends a signal to an order, as its application does."""

import json
from collections.abc import Mapping
from typing import Annotated

import typer

from roundsman.client import Client
from roundsman.command_line import command_line
from roundsman.engine.eligibility import decided
from roundsman.errors import Refused, RoundsmanError
from roundsman.model.events import CommandSource, Signalled
from roundsman.model.json import Json
from roundsman.wire.commands import APPLICATION
from roundsman_console.acts.documents.events import SignalDocument, SignalOutcome
from roundsman_console.acts.order.acceptance import Became, command_became
from roundsman_console.acts.order.sent import new_command_id
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import now
from roundsman_console.base.errors import InspectorError
from roundsman_console.base.limits import WAIT
from roundsman_console.base.result import CommandOutcome
from roundsman_console.base.sanitize import inert
from roundsman_console.base.typed_inputs import read_result
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.options import AsJson, NoWait, Wait
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import announced_stack
from roundsman_console.faces.cli.text.acceptance import tell_acceptance
from roundsman_console.faces.cli.verb_options import UnaskedYes
from roundsman_console.facts.order.lookup import find_task


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
    wait: Wait = WAIT,
    no_wait: NoWait = False,
    yes: UnaskedYes = False,  # noqa: ARG001  # nothing is asked
) -> None:
    """Send a signal to an order, as its application does, and wait until it is accepted.

    The step that waits for it is done, at once or when it begins. A signal that the order cannot
    take, as read just before, is not sent; one that it cannot take any more when it comes becomes a
    rejected message. The exit code is 0 if it was accepted, 1 if it was refused, and 4 if that is
    not known yet. In the place of a signal that will never come, a person resolves the step.

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
        became = None if no_wait else command_became(found, order, sent_as, wait)
        if as_json:
            print(json.dumps(_document(order, name, sent_as, became)))
        which = f"The signal {inert(name)} to {order}"
        see = command_line("why", order)
        tell_acceptance(became, which, see, named=sent_as, quiet=as_json)


_OUTCOMES: Mapping[CommandOutcome, SignalOutcome] = {
    CommandOutcome.DONE: "done",
    CommandOutcome.REFUSED: "refused",
    CommandOutcome.UNCONFIRMED: "unconfirmed",
}


def _document(order: str, name: str, sent_as: str, became: Became | None) -> SignalDocument:
    return {
        "orderId": order,
        "name": name,
        "id": sent_as,
        "outcome": "sent" if became is None else _OUTCOMES[became.outcome],
        "why": (became.why or None) if became else None,
    }


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
