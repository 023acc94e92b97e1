"""`roundsman submit`: sends an order event to the SubmissionQueue, as an application does."""

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated

import typer
from rich.console import Console

from roundsman.client import (
    Client,
    OrderEnded,
    OrderOpen,
    OrderRejected,
    OrderRemoved,
    OrderStatus,
    OrderUnknown,
    WaitResult,
)
from roundsman.command_line import command_line
from roundsman.errors import RoundsmanError, TryAgain
from roundsman.model.instants import SECOND, format_duration
from roundsman.model.states import TaskState
from roundsman.model.task import TASK_ID
from roundsman.wire.limits import MESSAGE_LIMIT
from roundsman_console.application import check_event, order_id_of
from roundsman_console.cli.options import AsJson, NoWait
from roundsman_console.cli.stack_option import StackOption
from roundsman_console.cli.target import announced_stack
from roundsman_console.cli_errors import UNCONFIRMED, USAGE, ConsoleError, sentences
from roundsman_console.clock import moment, now, pause, wait_for
from roundsman_console.dead_letter.rejections import problem_documents
from roundsman_console.documents import SubmitDocument, SubmitOutcome
from roundsman_console.hints import hint
from roundsman_console.sanitize import inert
from roundsman_console.stack.stack import DeployedStack
from roundsman_console.verbs.limits import WAIT
from roundsman_console.verbs.reading import read_file

_OUTCOMES: Mapping[type[WaitResult], SubmitOutcome] = {
    OrderEnded: "ended",
    OrderRemoved: "removed",
    OrderRejected: "rejected",
    OrderOpen: "stillOpen",
    OrderUnknown: "neverHeardOf",
}

ANYWAY = " Correct it, or add --anyway to send it nevertheless."


def submit_command(
    file: Annotated[str, typer.Argument(help="A file with one order event, or - for stdin.")],
    stack: StackOption = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Send it even if it would be rejected.")
    ] = False,
    wait: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=86_400,
            help="Seconds to wait until the order has ended, with its progress. Without it, only "
            "until the stack has the order.",
        ),
    ] = None,
    no_wait: NoWait = False,
    as_json: AsJson = False,
) -> None:
    """Send an order event, unchanged, and wait until the stack has the order.

    The submission function checks it. In the folder of the application, an event that its
    workflows would reject is not sent. With --wait, the exit code is 0 only if the order is
    completed; it is 1 if it was rejected or has ended otherwise, and 4 if that is not known.

    Example: roundsman submit events/first.json --wait 300
    """
    with sentences():
        if wait is not None and no_wait:
            raise ConsoleError("Give either --wait or --no-wait.", USAGE)
        found = announced_stack(stack)
        found.output("SubmissionQueueUrl")  # raises if it is no stack of Roundsman
        name = "Standard input" if file == "-" else file
        body = _read(file, name)
        if not anyway:
            check_event(name, body, ANYWAY)
        order_id = order_id_of(body)
        client = Client(found.outputs, sqs=found.sqs, dynamodb=found.dynamodb)
        message_id = client.submit_text(body)
        if wait is not None:
            became = None if order_id is None else _waited(client, order_id, message_id, wait)
            if as_json:
                print(json.dumps(_document(message_id, order_id, became)))
            _tell_end(order_id, became, wait)
            return
        late = order_id is not None and not no_wait and _is_late(found, order_id, WAIT)
        if as_json:
            print(json.dumps(_document(message_id, order_id, None)))
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


def _waited(client: Client, order_id: str, message_id: str, within: float) -> WaitResult | None:
    """Wait until the order has ended, and print each change of it on standard error."""
    if not TASK_ID.fullmatch(order_id):
        return None  # it is sent only if asked explicitly, and is rejected
    err = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)
    return client.wait(
        order_id,
        timeout=timedelta(seconds=within),
        message_id=message_id,
        on_change=lambda status: err.print(inert(_in_words(status))),
        sleep=pause,
        moment=moment,
    )


def _in_words(status: OrderStatus) -> str:
    """The state of the order and of its steps in a line, without order contents."""
    steps = (f"{name} {state}" for name, state in status.steps.items())
    return f"{status.order_id}: {', '.join([status.state, *steps])}"


def _document(message_id: str, order_id: str | None, became: WaitResult | None) -> SubmitDocument:
    problems = became.problems if isinstance(became, OrderRejected) else ()
    return {
        "messageId": message_id,
        "orderId": order_id,
        "outcome": None if became is None else _OUTCOMES[type(became)],
        "state": became.status.state if isinstance(became, OrderEnded | OrderOpen) else None,
        "problems": problem_documents(problems),
    }


def _tell_end(order_id: str | None, became: WaitResult | None, waited: float) -> None:
    """Return if the order is completed. Otherwise raise ConsoleError with what is known of it."""
    time = format_duration(round(waited * SECOND))
    show = f"See: {command_line('show', order_id)}" if order_id else ""
    match became:
        case OrderEnded(status) if status.state is TaskState.COMPLETED:
            return
        case OrderEnded(status):
            raise ConsoleError(f"{order_id} is {status.state}, not completed. {show}")
        case OrderRemoved():
            raise ConsoleError(
                f"{order_id} has ended, and its record was removed: how it ended is not kept.",
                UNCONFIRMED,
            )
        case OrderRejected(problems=problems):
            listed = "; ".join(map(str, problems))
            raise ConsoleError(f"{order_id} was rejected: {listed}. See: roundsman rejected ls")
        case OrderOpen():
            raise ConsoleError(f"{order_id} has not ended after {time}. {show}", UNCONFIRMED)
        case _:
            raise ConsoleError(
                f"Sent, but {order_id or 'the order'} is not known after {time}: it may still be "
                "on its way. See: roundsman rejected ls",
                UNCONFIRMED,
            )


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
