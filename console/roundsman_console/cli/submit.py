"""`roundsman submit`: sends an order event to the SubmissionQueue, as an application does."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from roundsman.client import Client
from roundsman.errors import Problem, RejectedOrder
from roundsman.inspector.clock import now
from roundsman.inspector.errors import InspectorError
from roundsman.inspector.read.stack import find_stack
from roundsman_console.application import application_events
from roundsman_console.arguments import StackOption
from roundsman_console.cli_errors import ConsoleError, sentences
from roundsman_console.documents import SubmitDocument
from roundsman_console.hints import hint

MOST_PROBLEMS = 10
LARGEST_MESSAGE = 1024 * 1024  # bytes, the limit of SQS; the limit of submission is lower


def submit_command(
    file: Annotated[str, typer.Argument(help="A file with one order event, or - for stdin.")],
    stack: StackOption = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Send it even if it would be rejected.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Send an order event, unchanged. The submission function checks it.

    In the folder of the application, an event that its workflows would reject is not sent.

    Example: roundsman submit events/first.json
    """
    with sentences():
        found = find_stack(stack)
        found.output("SubmissionQueueUrl")  # raises if it is no stack of Roundsman
        body = _read(file)
        if not anyway:
            _check(_name(file), body)
        order_id = _order_id(body)
        message_id = Client(found.outputs, sqs=found.sqs).submit_text(body)
        if as_json:
            print(json.dumps(SubmitDocument(messageId=message_id, orderId=order_id)))
        elif order_id is None:
            print(hint("Sent, but it is not an order event. See: roundsman rejected ls"))
        else:
            print(hint(f"Sent. See: roundsman show {order_id}"))


def _name(file: str) -> str:
    return "Standard input" if file == "-" else file


def _check(name: str, body: str) -> None:
    """Raise ConsoleError with all problems of an event that would be rejected.

    Without an application in this folder, only checks that it is an object with an order id.
    """
    problem = "" if _order_id(body) is not None else "it is not a JSON object with an orderId"
    try:
        events = application_events()
    except InspectorError:
        events = None  # what is deployed may be right nevertheless
    if events is not None:
        try:
            events.read(body, now(), lambda _: None)
        except RejectedOrder as error:
            problem = "; ".join(_said(one) for one in error.problems[:MOST_PROBLEMS])
    if problem:
        raise ConsoleError(
            f"{name} would be rejected: {problem}. Nothing was sent. "
            "Correct it, or add --anyway to send it nevertheless."
        )


def _said(problem: Problem) -> str:
    return f"{problem.path}: {problem.message}" if problem.path else problem.message


def _read(file: str) -> str:
    name = _name(file)
    try:
        text = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
        body = text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConsoleError(f"{name} is not UTF-8 text.") from error
    except OSError as error:
        raise ConsoleError(f"{name} cannot be read: {error.strerror}.") from error
    if not body.strip():
        raise ConsoleError(f"{name} is empty; SQS does not accept an empty message.")
    if len(text) > LARGEST_MESSAGE:
        raise ConsoleError(f"{name} has {len(text)} bytes; SQS accepts at most {LARGEST_MESSAGE}.")
    return body


def _order_id(body: str) -> str | None:
    try:
        event = json.loads(body)
    except (ValueError, RecursionError):
        return None
    found = event.get("orderId") if isinstance(event, dict) else None
    return found if isinstance(found, str) and found else None
