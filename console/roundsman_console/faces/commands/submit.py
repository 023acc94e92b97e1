"""`roundsman submit`: sends an order event to the SubmissionQueue, as an application does."""

import json
from collections.abc import Mapping
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
from roundsman.model.instants import SECOND, format_duration
from roundsman.model.json import Json
from roundsman.model.states import TaskState
from roundsman.model.task import TASK_ID
from roundsman.submission.events import CANCEL, SIGNAL, content_hash
from roundsman.submission.service_events import is_envelope
from roundsman.submission.submission import TAKEN
from roundsman.wire.limits import MESSAGE_LIMIT
from roundsman_console.acts.documents.events import SubmitDocument, SubmitOutcome
from roundsman_console.acts.order.acceptance import (
    Became,
    command_became,
    is_stored,
    order_became,
    other_order,
)
from roundsman_console.acts.order.following import client_of, follow
from roundsman_console.acts.order.payload_files import read_payload_files, with_files
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.errors import UNCONFIRMED, USAGE, ConsoleError
from roundsman_console.base.limits import WAIT
from roundsman_console.base.result import CommandOutcome
from roundsman_console.base.sanitize import inert
from roundsman_console.base.typed_inputs import read_file
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.options import AsJson, NoWait
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import announced_stack
from roundsman_console.faces.cli.text.acceptance import tell_acceptance
from roundsman_console.faces.cli.verb_options import UnaskedYes
from roundsman_console.facts.application import check_event, order_id_of
from roundsman_console.facts.set_aside.messages import problem_documents

_OUTCOMES: Mapping[type[WaitResult], SubmitOutcome] = {
    OrderEnded: "ended",
    OrderRemoved: "removed",
    OrderRejected: "rejected",
    OrderOpen: "stillOpen",
    OrderUnknown: "neverHeardOf",
}

_ACCEPTANCE: Mapping[CommandOutcome, SubmitOutcome] = {
    CommandOutcome.DONE: "accepted",
    CommandOutcome.REFUSED: "rejected",
    CommandOutcome.UNCONFIRMED: "notKnown",
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
    payloads: Annotated[
        list[str] | None,
        typer.Option(
            "--payload",
            metavar="FIELD=FILE",
            help="Store a file of up to 50 MB for the order, and put the reference to it into this "
            "field of the event; may be repeated.",
        ),
    ] = None,
    no_wait: NoWait = False,
    as_json: AsJson = False,
    yes: UnaskedYes = False,  # noqa: ARG001  # nothing is asked
) -> None:
    """Send an order event, unchanged, and wait until the stack has accepted or rejected it.

    The submission function checks it. In the folder of the application, an event that its
    workflows would reject is not sent. Elsewhere only what holds for each workflow is checked, so
    of an event that repeats a stored order it may stay unknown whether it was accepted. The exit
    code is 0 if the event was accepted, 1 if it was rejected, and 4 if that is not known yet. With
    --wait, it is 0 only if the order is completed; it is 1 if it was rejected or has ended
    otherwise, and 4 if that is not known.

    Example: roundsman submit events/first.json --wait 300

    Example: roundsman submit claim.json --payload scan=scan.pdf
    """
    with sentences():
        if wait is not None and no_wait:
            raise ConsoleError("Give either --wait or --no-wait.", USAGE)
        found = announced_stack(stack)
        found.output("SubmissionQueueUrl")  # raises if it is no stack of Roundsman
        name = "Standard input" if file == "-" else file
        files = read_payload_files(payloads or ())
        body = _read(file, name)
        order = with_files(found, name, body, files) if files else None
        body = body if order is None else _sendable(order.body, name)
        judged = not anyway and check_event(name, body, ANYWAY, found.reply_queue_problem)
        sent = _Sent(found, body, order_id_of(body), judged=judged)
        if sent.is_another_order and not anyway:
            raise ConsoleError(f"{name} would be rejected: {TAKEN}. Nothing was sent.{ANYWAY}")
        client = client_of(found)
        if order is not None:
            order.store(client)
        message_id = client.submit_text(body)
        became, watch = None, WAIT if wait is None else min(wait, WAIT)
        waits_for_end = wait is not None and not sent.is_another_order
        if not no_wait and (not waits_for_end or sent.is_in_doubt):
            became = sent.became(message_id, watch)
        refused = became is not None and became.outcome is CommandOutcome.REFUSED
        if wait is not None and waits_for_end and not refused:
            left = wait if became is None else wait - watch
            ended = _waited(client, sent.order_id, message_id, left)
            if as_json:
                print(json.dumps(_document(message_id, sent.order_id, ended)))
            _tell_end(sent.order_id, ended, wait)
            return
        if as_json:
            print(json.dumps(_accepted_document(message_id, sent.order_id, became)))
        which = sent.order_id or "The event"
        see = command_line("show", sent.order_id) if sent.order_id else command_line("rejected ls")
        tell_acceptance(became, which, see, quiet=as_json)


class _Sent:
    """An event that is sent, and what was known of its order before.

    `is_another_order` is whether another order has its id, and `is_in_doubt` whether an order with
    the id is stored, which does not show that submission has accepted the event.
    """

    def __init__(
        self, stack: DeployedStack, body: str, order_id: str | None, *, judged: bool
    ) -> None:
        """`judged` is whether the workflows of the application accept the event."""
        self.order_id = order_id
        self._stack = stack
        self._event: Mapping[str, Json] = json.loads(body) if order_id is not None else {}
        self._is_valid = order_id is not None and TASK_ID.fullmatch(order_id) is not None
        self._is_envelope = is_envelope(body)
        self.is_another_order, self.is_in_doubt = False, False
        if order_id is None or not self._is_valid or self._asks:
            return
        differs = self._differs(order_id)
        self.is_another_order = differs is True
        # Submission reads the whole of an event that repeats an order, and may reject it.
        self.is_in_doubt = is_stored(stack, order_id) if differs is None else differs or not judged

    def _differs(self, order_id: str) -> bool | None:
        """Whether another order has the id; None if that is not known, or if no order has it."""
        try:
            content = content_hash(self._event, order_id)
        except (ValueError, RecursionError):
            return None  # it is no order that could be stored
        return other_order(self._stack, order_id, content)

    @property
    def _asks(self) -> bool:
        """Whether it is a cancellation of an order or a signal to it."""
        return CANCEL in self._event or SIGNAL in self._event

    def became(self, message_id: str, within: float) -> Became:
        """Wait until it is known what became of the event, at most `within` seconds.

        That is not known of the envelope of a service of AWS, whose events are several orders.
        """
        if self._is_envelope:
            why = "what becomes of an envelope of SNS, S3 or EventBridge is not followed"
            return Became(CommandOutcome.UNCONFIRMED, why)
        if self.order_id is None or not self._is_valid:
            return Became(CommandOutcome.REFUSED, "it is not an order event")
        if not self._asks:
            return order_became(
                self._stack, self.order_id, message_id, is_new=not self.is_in_doubt, within=within
            )
        signal = self._event.get(SIGNAL)
        named = signal.get("id") if isinstance(signal, Mapping) else None
        command = named if isinstance(named, str) else message_id
        return command_became(self._stack, self.order_id, command, within)


def _waited(
    client: Client, order_id: str | None, message_id: str, within: float
) -> WaitResult | None:
    """Wait until the order has ended, and print each change of it on standard error."""
    if order_id is None or not TASK_ID.fullmatch(order_id):
        return None  # it is sent only if asked explicitly, and is rejected
    err = Console(stderr=True, highlight=False, markup=False, soft_wrap=True)

    def show(status: OrderStatus) -> None:
        err.print(inert(_in_words(status)))

    return follow(client, order_id, within, show, message_id)


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


def _accepted_document(
    message_id: str, order_id: str | None, became: Became | None
) -> SubmitDocument:
    return {
        "messageId": message_id,
        "orderId": order_id,
        "outcome": None if became is None else _ACCEPTANCE[became.outcome],
        "state": None,
        "problems": problem_documents(() if became is None else became.problems),
    }


def _read(file: str, name: str) -> str:
    return _sendable(read_file(file, stdin=True), name)


def _sendable(body: str, name: str) -> str:
    """Return the text of an event. Raises ConsoleError if SQS does not accept it."""
    if not body.strip():
        raise ConsoleError(f"{name} is empty; SQS does not accept an empty message.")
    size = len(body.encode())
    if size > MESSAGE_LIMIT:
        raise ConsoleError(f"{name} has {size} bytes; SQS accepts at most {MESSAGE_LIMIT}.")
    return body
