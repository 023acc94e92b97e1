"""`roundsman submit`: sends an order event to the SubmissionQueue, as an application does."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from roundsman.client import Client
from roundsman.inspector.read.stack import find_stack
from roundsman_console.arguments import StackOption
from roundsman_console.cli_errors import ConsoleError, sentences
from roundsman_console.documents import SubmitDocument
from roundsman_console.hints import hint

LARGEST_MESSAGE = 1024 * 1024  # bytes, the limit of SQS; the limit of submission is lower


def submit_command(
    file: Annotated[str, typer.Argument(help="A file with one order event, or - for stdin.")],
    stack: StackOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Send an order event, unchanged. The submission function checks it.

    Example: roundsman submit events/good.json
    """
    with sentences():
        body = _read(file)
        found = find_stack(stack)
        order_id = _order_id(body)
        found.output("SubmissionQueueUrl")  # raises if it is no stack of Roundsman
        message_id = Client(found.outputs, sqs=found.sqs).submit_text(body)
        if as_json:
            print(json.dumps(SubmitDocument(messageId=message_id, orderId=order_id)))
        elif order_id is None:
            print("Sent, but it is not an order event: expect it in the RejectedQueue.")
        else:
            print(hint(f"Sent. See: roundsman show {order_id}"))


def _read(file: str) -> str:
    name = "Standard input" if file == "-" else file
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
