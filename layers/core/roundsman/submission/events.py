"""Reads the messages of the SubmissionQueue: order events, cancel events and signals.

In an order event, `orderId` and `processing` belong to the engine. Every other field is the
workflow's input, and the workflow's input type defines what is valid. A cancel event has `orderId`
and `cancel`, a signal has `orderId` and `signal`, and neither has another field.

An event is accepted or rejected as a whole, and a rejection lists every problem. Unknown fields
are rejected where the type is known: otherwise a typo in `processing` would be ignored silently,
and the order would be processed differently from what the application asked for. No problem quotes
a value, since a value may be a payment token or an address.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Never, NotRequired, TypeAlias, TypedDict, cast

from roundsman.definition.expressions import ANYTHING, Shape
from roundsman.definition.input_types import (
    InputShape,
    Pattern,
    Text,
    field_names,
    given_shape,
    given_type,
    read_fields,
    valid_input,
)
from roundsman.definition.workflow import Workflow
from roundsman.errors import InvalidInput, Problem, RejectedOrder
from roundsman.model.checks import ENGINE_FIELDS, NAME
from roundsman.model.corrections import DEEPEST_INPUT, LARGEST_INPUT
from roundsman.model.json import (
    Json,
    canonical_json,
    copied,
    levels,
    numbers_that_lose_digits,
    parse_json,
    sha256,
    size_in_bytes,
)
from roundsman.model.record_limits import LARGEST_SIGNAL
from roundsman.ports import EventSources
from roundsman.submission.processing import Processing, ProcessingFields, read_processing
from roundsman.submission.submission import CancelAsked, EventOfOrder, SignalSent, ValidOrder
from roundsman.wire.commands import SIGNAL_ID, SIGNAL_ID_WORDS

LARGEST_EVENT = LARGEST_INPUT  # bytes; keeps order and task, with results, below 400 KB per item
DEEPEST_EVENT = DEEPEST_INPUT
LONGEST_ID = 128
LONGEST_REASON = 500
MOST_PROBLEMS = 1_000  # keeps a rejection small enough to send

ORDER_ID = "orderId"
PROCESSING = "processing"
CANCEL = "cancel"
SIGNAL = "signal"

Asked: TypeAlias = ValidOrder | CancelAsked | SignalSent | EventOfOrder
"""What an event asks for."""

_MAY_BE_AN_ENVELOPE = re.compile(r'"(?:TopicArn|Records|detail-type)"\s*:|"s3:TestEvent"')
"""What a message of a service has in it, so that other messages are not read twice."""

_OrderId = Annotated[
    str,
    Pattern(rf"[A-Za-z0-9._~-]{{1,{LONGEST_ID}}}", "1 to 128 letters, digits or any of . _ ~ -"),
]


class OrderIdField(TypedDict):
    """The field that every event has."""

    orderId: _OrderId


class CancelFields(TypedDict, total=False):
    """The `cancel` object. Both fields are optional; null means the same as absent."""

    undo: bool | None
    reason: Annotated[str, Text(LONGEST_REASON)] | None


class CancelEvent(OrderIdField):
    """A cancel event."""

    cancel: CancelFields


class SignalFields(TypedDict):
    """The `signal` object. `id` and `data` are optional; null means the same as absent."""

    name: Annotated[str, Pattern(NAME.pattern, "1 to 40 characters of a-z, 0-9 and _")]
    id: NotRequired[Annotated[str, Pattern(SIGNAL_ID.pattern, SIGNAL_ID_WORDS)] | None]
    data: NotRequired[Json]


class SignalEvent(OrderIdField):
    """A signal."""

    signal: SignalFields


class EventFields(OrderIdField, total=False):
    """The fields of an event that belong to the engine."""

    processing: ProcessingFields
    cancel: CancelFields
    signal: SignalFields


@dataclass(frozen=True)
class EventShape(Shape):
    """What is known of an event: the fields of the engine, and an order's input."""

    input: Shape

    def field(self, name: str) -> Shape:
        """The shape of a field."""
        own = name in ENGINE_FIELDS
        return (InputShape(EventFields, "event") if own else self.input).field(name)


ENGINE_MESSAGE = (
    "it is a message to the scheduler or to an agent, which send these themselves; an order event "
    "has an orderId"
)
"""The problem of a command, a request or a reply that was sent to the SubmissionQueue."""


def given_order_id(event: Mapping[str, Json]) -> str | None:
    """Return the id that the order of an event gets, valid or not; None if the event has none.

    One run of a schedule has its time in the id.
    """
    order_id = event.get(ORDER_ID)
    if not isinstance(order_id, str) or not order_id:
        return None
    options = event.get(PROCESSING)
    run = read_processing(options, now=0, workflows={}, reply_queue_problem=lambda _: None).run
    return f"{order_id}-{run}" if run else order_id


def content_hash(event: Mapping[str, Json], order_id: str) -> str:
    """Return what identifies the content of an order event; two with one id and hash are one order.

    It is that of all fields but `processing`, with the id that the order gets.
    """
    given = {name: value for name, value in event.items() if name != PROCESSING}
    return sha256(canonical_json({**given, ORDER_ID: order_id}))


class EventReader:
    """Reads events for the workflows of an application.

    An order that names no workflow runs the first one. A reference to a payload is rejected if the
    stack has no PayloadBucket (`has_bucket`).
    """

    def __init__(self, workflows: Mapping[str, Workflow], *, has_bucket: bool = True) -> None:
        self.workflows = workflows
        self.has_bucket = has_bucket

    def read(self, body: str, now: int, reply_queue_problem: Callable[[str], str | None]) -> Asked:
        """Read the text of an event.

        `now` is in epoch ms. `reply_queue_problem` takes the URL of a queue and returns None if
        statuses may be sent to it, else a sentence with the reason. Raises RejectedOrder with all
        problems.
        """
        event = _json_object(body)
        too_large = _too_large(body) or _too_deep(event)
        processing = read_processing(
            event.get(PROCESSING),
            now=now,
            workflows=self.workflows,
            reply_queue_problem=reply_queue_problem,
        )
        valid, problems = read_fields(
            OrderIdField, {name: event[name] for name in (ORDER_ID,) if name in event}
        )
        order_id = cast("str | None", valid.get(ORDER_ID))
        kind = next((name for name in (CANCEL, SIGNAL) if name in event), None)
        if kind is not None:
            mixed = self._mixed(event, kind, processing.workflow)
            if not (too_large or mixed):
                return _cancellation(event) if kind == CANCEL else self._signal(body, event)
            # The other problems of the order are irrelevant then.
            _reject(too_large or [*mixed, *problems], order_id, processing, is_order=False)
        if ORDER_ID not in event and "taskId" in event:
            _reject([Problem("", ENGINE_MESSAGE)], None, processing, is_order=False)
        given = {n: v for n, v in event.items() if n not in (ORDER_ID, PROCESSING)}
        if too_large:
            _reject(too_large, order_id, processing)
        content, more = self._input(processing.workflow, given)
        problems = sorted([*problems, *more], key=_by_field) + processing.problems
        problems = problems or _not_text(event) or not_kept(body)
        run = None
        if order_id is not None and processing.run:
            from roundsman.model.schedules import Overlap, RecurringRun  # late: few orders recur

            run = RecurringRun(order_id, Overlap(processing.overlap), processing.even_if_paused)
            order_id = f"{order_id}-{processing.run}"
            problems = problems or _too_long(order_id)
        problems = problems or self._of_payloads(body, content, order_id)
        if problems or processing.workflow is None or order_id is None:
            _reject(problems, order_id, processing)
        return ValidOrder(
            order_id=order_id,
            content={**content, ORDER_ID: order_id},
            content_hash=content_hash(event, order_id),
            plan=processing.workflow.plan,
            options=processing.options,
            run=run,
        )

    def read_message(
        self,
        body: str,
        now: int,
        reply_queue_problem: Callable[[str], str | None],
        sources: Callable[[], EventSources],
    ) -> list[Asked | RejectedOrder]:
        """Read a message: one event, or the events that a service of AWS delivers in an envelope.

        Of several events each is read for itself, and one that is rejected is the reason. A test
        event of S3 has none. Raises RejectedOrder if the whole message is rejected, and TryAgain
        and CallRefused if it is not known which sources are listed.
        """
        if not _MAY_BE_AN_ENVELOPE.search(body):
            return [self.read(body, now, reply_queue_problem)]
        # Only an application with such events needs this module.
        from roundsman.submission.service_events import OpenedEvent, opened

        def read(event: OpenedEvent) -> Asked | RejectedOrder:
            asked: Asked | RejectedOrder
            try:
                asked = self.read(event.body, now, reply_queue_problem)
            except RejectedOrder as rejected:
                asked = rejected.within(event.place)
            if event.content_hash is not None and isinstance(asked, ValidOrder):
                asked = replace(asked, content_hash=event.content_hash)
            if event.signal is not None and isinstance(asked, ValidOrder | RejectedOrder):
                return EventOfOrder(event.signal, asked)
            return asked

        found = opened(body, sources, self.workflows)
        if found is None:
            return [self.read(body, now, reply_queue_problem)]
        return [one if isinstance(one, RejectedOrder) else read(one) for one in found]

    def shape(self, event: Json) -> Shape:
        """Return what is known of an event: that of its workflow, if it names one that exists."""
        options = event.get(PROCESSING) if isinstance(event, Mapping) else None
        name = options.get("workflow") if isinstance(options, Mapping) else None
        named = self.workflows.get(name) if isinstance(name, str) else None
        first = next(iter(self.workflows.values()), None) if name is None else None
        workflow = named or first
        return EventShape(ANYTHING if workflow is None else given_shape(workflow.input))

    def _mixed(
        self, event: Mapping[str, Json], kind: str, workflow: Workflow | None
    ) -> list[Problem]:
        """The problem of a cancel event or a signal with fields of an order; empty if none.

        `kind` is CANCEL or SIGNAL.
        """
        typed = None if workflow is None else given_type(workflow.input)
        others = set(event) - {ORDER_ID, kind}
        if typed is not None:
            others &= {PROCESSING, SIGNAL, *field_names(typed)}
        if not others:
            return []
        sentence = (
            f"a {kind} message may have no order field except orderId; "
            "send the order in a separate message"
        )
        return [Problem(kind, sentence)]

    def _signal(self, body: str, event: Mapping[str, Json]) -> SignalSent:
        valid, problems = read_fields(SignalEvent, event)
        problems = problems or _not_text(event) or not_kept(body)
        given, order_id = event[SIGNAL], cast("str | None", valid.get(ORDER_ID))
        data = given.get("data") if isinstance(given, Mapping) else None
        size = size_in_bytes(data)
        if not problems and size > LARGEST_SIGNAL:
            sentence = f"has {size} bytes; at most {LARGEST_SIGNAL} are allowed"
            problems = [Problem("signal.data", sentence)]
        problems = problems or self._of_payloads(body, data, order_id, "signal.data")
        if problems:
            raise RejectedOrder(_shortened(problems), order_id=order_id)
        signal = cast("SignalFields", valid[SIGNAL])
        return SignalSent(cast("str", valid[ORDER_ID]), signal["name"], data, signal.get("id"))

    def _of_payloads(
        self, body: str, value: Json, order_id: str | None, path: str = ""
    ) -> list[Problem]:
        """The problems of references to payloads in a value; empty if there is none.

        The name of the field may be written with escapes, and is then not found: the agent, which
        checks each reference, refuses it.
        """
        if '"payload"' not in body:
            return []
        from roundsman.model.payloads import payload_problems  # late: few orders have payloads

        return payload_problems(value, order_id, has_bucket=self.has_bucket, path=path)

    def _input(
        self, workflow: Workflow | None, given: Mapping[str, Json]
    ) -> tuple[Mapping[str, Json], list[Problem]]:
        """The valid input, and the problems of an invalid one.

        An order with an unknown workflow is checked too if the application has only one.
        Text that cannot be stored is a problem of the whole event if the type does not define it.
        """
        if workflow is None and len(self.workflows) == 1:
            (workflow,) = self.workflows.values()
        if workflow is None:
            return given, []
        if given_type(workflow.input) is None and (unreadable := _not_text(given)):
            return given, unreadable
        # The application's code may change what it gets, and the event is hashed as it was sent.
        own = cast("Mapping[str, Json]", copied(given))
        try:
            content = valid_input(workflow.input, own, beside=(ORDER_ID, PROCESSING))
        except InvalidInput as error:
            from roundsman.submission.masked_problems import masked_problems  # late: needed rarely

            return given, [*masked_problems(workflow, given, error.problems)]
        return content, [] if content is own else _not_storable(content)


def _not_storable(content: Mapping[str, Json]) -> list[Problem]:
    """The problems of an input that the workflow's function returned; empty if it can be stored.

    The function is the application's own code, so the event is rejected instead of tried again.
    """
    where = "the input that the workflow's function returned"
    for name in (ORDER_ID, PROCESSING):
        if name in content:
            return [Problem("", f"{where} has the field {name}, which belongs to the engine")]
    if _not_text(content):
        return [Problem("", f"{where} has half of a surrogate pair in a text or a name")]
    size, deep = size_in_bytes(content), levels(content)
    if size > LARGEST_EVENT:
        return [Problem("", f"{where} has {size} bytes; at most {LARGEST_EVENT} are allowed")]
    if deep > DEEPEST_EVENT:
        sentence = f"{where} is nested {deep} levels; at most {DEEPEST_EVENT} are allowed"
        return [Problem("", sentence)]
    return []


def _by_field(problem: Problem) -> str:
    """Sorts by the field of the event and keeps the order within a field."""
    return problem.path.partition(".")[0].partition("[")[0]


def _cancellation(event: Mapping[str, Json]) -> CancelAsked:
    valid, problems = read_fields(CancelEvent, event)
    if problems:
        order_id = cast("str | None", valid.get(ORDER_ID))
        raise RejectedOrder(_shortened(problems), order_id=order_id)
    cancel = cast("CancelFields", valid[CANCEL])
    return CancelAsked(
        cast("str", valid[ORDER_ID]), cancel.get("undo") is not False, cancel.get("reason") or ""
    )


def _reject(
    problems: list[Problem],
    order_id: str | None,
    processing: Processing,
    *,
    is_order: bool = True,
) -> Never:
    raise RejectedOrder(
        _shortened(problems),
        order_id=order_id,
        reply_to=processing.options.reply_to,
        correlation_id=processing.options.correlation_id,
        is_order=is_order,
    )


def with_signal_id(body: str, message_id: str) -> str:
    """Return the body of a message that is sent again as another message.

    A signal without an id of its own gets that of its first message, `message_id`, so that it still
    counts once. Any other body, also an invalid one, is returned unchanged.
    """
    try:
        event = parse_json(body)
        if not isinstance(event, Mapping):
            return body
        signal = event.get(SIGNAL)
        if not isinstance(signal, Mapping) or signal.get("id") is not None:
            return body
        return canonical_json({**event, SIGNAL: {**signal, "id": message_id}})
    except (ValueError, RecursionError):
        return body


def _json_object(body: str) -> Mapping[str, Json]:
    try:
        value = parse_json(body)
    except ValueError as error:
        # The parser's message may quote a key of any length; it never quotes a value.
        reason = str(error)
        if len(reason) > 200:
            reason = f"{reason[:100]}...{reason[-50:]}"
        raise RejectedOrder([*_too_large(body), Problem("", f"not JSON: {reason}")]) from error
    if not isinstance(value, Mapping):
        raise RejectedOrder([*_too_large(body), Problem("", "must be an object")])
    return value


def _too_large(body: str) -> list[Problem]:
    size = len(body.encode("utf-8", "surrogatepass"))
    if size <= LARGEST_EVENT:
        return []
    return [Problem("", f"the event has {size} bytes; at most {LARGEST_EVENT} are allowed")]


def _too_deep(event: Mapping[str, Json]) -> list[Problem]:
    found = levels(event)
    if found <= DEEPEST_EVENT:
        return []
    return [Problem("", f"the event is nested {found} levels; at most {DEEPEST_EVENT} are allowed")]


def _not_text(event: Mapping[str, Json]) -> list[Problem]:
    """The problem of an event with text that cannot be stored; empty if none."""
    try:
        canonical_json(event).encode()
    except UnicodeEncodeError:
        return [Problem("", "a text or a name has half of a surrogate pair")]
    return []


def not_kept(body: str) -> list[Problem]:
    """Return the problems of numbers that would be stored with other digits; empty if none."""
    sentence = "has more digits than a JSON number keeps; send fewer digits, or a text field"
    return [Problem(path, sentence) for path in numbers_that_lose_digits(body)]


def _too_long(order_id: str) -> list[Problem]:
    """The problem of an order id that is too long with the time of its run; empty if none."""
    if len(order_id) <= LONGEST_ID:
        return []
    sentence = (
        f"has {len(order_id)} characters with the time of its run; at most {LONGEST_ID} are allowed"
    )
    return [Problem(ORDER_ID, sentence)]


def _shortened(problems: list[Problem]) -> list[Problem]:
    """The first MOST_PROBLEMS problems, followed by one that states how many are left out."""
    more = len(problems) - MOST_PROBLEMS
    if more <= 0:
        return problems
    return [*problems[:MOST_PROBLEMS], Problem("", f"{more} more problems are not listed")]
