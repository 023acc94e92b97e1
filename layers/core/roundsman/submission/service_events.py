"""Opens the messages in which SNS, S3 and EventBridge deliver events to the SubmissionQueue.

Such a message has no `orderId`: it is an envelope, and the event is in it. The event of a
notification of SNS is the message that was published, which may be an envelope of S3 or EventBridge
itself; that of S3 is each of its records; that of EventBridge is its `detail`. An event for which a
workflow has a declaration (`Workflow(events=...)`) becomes an order of it. Any other event must be
what an application sends: an order event, a cancellation or a signal.

The queue's policy decides which services may send. An envelope is opened only if its source is one
of those that the policy lists, so that nothing is made of an envelope that came by another way. A
rule of EventBridge is not named in its events: they are opened if any rule is listed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from roundsman.definition.expressions import evaluate, type_in_words
from roundsman.definition.service_events import From, is_like
from roundsman.errors import Problem, RejectedOrder
from roundsman.model.json import Json, canonical_json, parse_json, sha256, size_in_bytes
from roundsman.model.record_limits import LARGEST_SIGNAL
from roundsman.model.task import TASK_ID
from roundsman.ports import EventSources
from roundsman.submission.events import (
    CANCEL,
    ORDER_ID,
    PROCESSING,
    SIGNAL,
    not_kept,
    with_signal_id,
)
from roundsman.submission.submission import SignalSent

if TYPE_CHECKING:
    from roundsman.definition.workflow import Workflow

SNS, S3, EVENTBRIDGE = "sns", "s3", "events"
"""The services, as the ARNs of their topics, buckets and rules name them."""

MESSAGE, RECORDS, DETAIL = "Message", "Records", "detail"
TEST_EVENT = "s3:TestEvent"

_LIST_IT = "list it in SubmitterSources, or send the order itself"
UNLISTED_TOPIC = Problem(
    "TopicArn", f"is a topic of SNS that SubmitterSources does not list; {_LIST_IT}"
)
UNLISTED_BUCKET = f"is a bucket of S3 that SubmitterSources does not list; {_LIST_IT}"
UNLISTED_RULE = Problem(
    "detail-type",
    "is an event of EventBridge, and SubmitterSources lists no rule of it; list the rule, or send "
    "the order itself",
)

Origin: TypeAlias = tuple[str, str, str]
"""Where an event came from: `topic`, `bucket` or `source`, its name, and the detail-type."""


@dataclass(frozen=True, slots=True)
class ListedSources:
    """The sources that a stack admits, as patterns of ARNs like those of IAM."""

    patterns: Sequence[str]

    def lists(self, service: str, arn: str | None) -> bool:
        """Whether one of them is this topic, bucket or rule; None for any of the service."""
        return any(_is_listed(pattern, service, arn) for pattern in self.patterns)


@dataclass(frozen=True, slots=True)
class OpenedEvent:
    """An event of an envelope, as the message that an application would have sent."""

    body: str
    place: str
    """Where the event is in the envelope; its problems begin with it."""
    content_hash: str | None
    """The hash of the event itself, if it was made an order by a declaration; else None."""
    signal: SignalSent | None = None
    """The signal that it is to its order, if that is there; None if it is none."""


@dataclass(frozen=True, slots=True)
class _Event:
    content: Json
    text: str | None
    """The event as it was sent; None if it is a part of another message."""
    identity: str
    """Identifies the event, however often it is delivered."""
    origins: Sequence[Origin]
    place: str


def opened(
    body: str, sources: Callable[[], EventSources], workflows: Mapping[str, "Workflow"]
) -> list[OpenedEvent | RejectedOrder] | None:
    """Return the events of an envelope, in its order; None for a message that is none.

    An event that cannot become an order is the reason of its rejection. A test event of S3 has no
    events. Raises RejectedOrder for an envelope whose source is not listed.
    """
    envelope = _object(body)
    if envelope is None or not _is_envelope(envelope):
        return None
    _check_listed(envelope, sources())
    found: list[OpenedEvent | RejectedOrder] = []
    for event in _events(body, envelope, (), ""):
        try:
            found.append(_opened(event, workflows))
        except RejectedOrder as rejected:
            found.append(rejected)
    return found


def is_envelope(body: str) -> bool:
    """Whether a message is the envelope of a service, from whatever source."""
    found = _object(body)
    return found is not None and _is_envelope(found)


def _is_envelope(message: Mapping[str, Json]) -> bool:
    return ORDER_ID not in message and (
        _is_notification(message)
        or _is_test_event(message)
        or bool(_records(message))
        or _is_of_a_bus(message)
    )


def _is_notification(message: Mapping[str, Json]) -> bool:
    texts = ("TopicArn", "MessageId", MESSAGE)
    return message.get("Type") == "Notification" and _are_texts(message, texts)


def _is_of_a_bus(message: Mapping[str, Json]) -> bool:
    return DETAIL in message and _are_texts(message, ("id", "source", "detail-type"))


def _is_test_event(message: Mapping[str, Json]) -> bool:
    return message.get("Event") == TEST_EVENT and _are_texts(message, ("Bucket",))


def _records(message: Mapping[str, Json]) -> Sequence[Mapping[str, Json]]:
    """The records of a notification of S3; empty if it is none."""
    given = message.get(RECORDS)
    found = [one for one in given if isinstance(one, Mapping)] if isinstance(given, list) else []
    is_all = isinstance(given, list) and len(found) == len(given)
    return found if is_all and all(_bucket(one, "arn") for one in found) else ()


def _bucket(record: Mapping[str, Json], name: str) -> str:
    """A field of the bucket of a record; empty if it is no record of S3."""
    entity = record.get("s3") if record.get("eventSource") == "aws:s3" else None
    bucket = entity.get("bucket") if isinstance(entity, Mapping) else None
    found = bucket.get(name) if isinstance(bucket, Mapping) else None
    return found if isinstance(found, str) else ""


def _are_texts(message: Mapping[str, Json], names: Sequence[str]) -> bool:
    return all(isinstance(message.get(name), str) for name in names)


def _check_listed(envelope: Mapping[str, Json], sources: EventSources) -> None:
    """Raise RejectedOrder if the policy of the queue does not admit the source."""
    problems = list[Problem]()
    if _is_notification(envelope):
        if not sources.lists(SNS, str(envelope["TopicArn"])):
            problems.append(UNLISTED_TOPIC)
    elif _is_test_event(envelope):
        if not sources.lists(S3, f"arn:aws:s3:::{envelope['Bucket']}"):
            problems.append(Problem("Bucket", UNLISTED_BUCKET))
    elif records := _records(envelope):
        # One is enough: to ask for each could take longer than the function may run.
        for number, record in enumerate(records):
            if not sources.lists(S3, _bucket(record, "arn")):
                problems.append(Problem(f"{RECORDS}[{number}].s3.bucket.arn", UNLISTED_BUCKET))
                break
    elif not sources.lists(EVENTBRIDGE, None):
        problems.append(UNLISTED_RULE)
    if problems:
        raise RejectedOrder(problems)


def _is_listed(pattern: str, service: str, arn: str | None) -> bool:
    """Whether a pattern names an ARN of a service; each part is compared by itself, as IAM does.

    The partition is that of the stack, since it is of the queue.
    """
    wanted = pattern.split(":", 5)
    if len(wanted) != 6 or not is_like(wanted[2], service):
        return False
    given = [] if arn is None else arn.split(":", 5)
    if arn is not None and (len(given) != 6 or given[2] != service):
        return False
    return all(map(is_like, wanted[3:], given[3:]))


def _events(
    text: str, envelope: Mapping[str, Json], via: Sequence[Origin], place: str
) -> Iterator[_Event]:
    """Yield the events of an envelope, which came through the origins `via`."""
    if _is_test_event(envelope):
        return
    if _is_notification(envelope):
        yield from _published(envelope, place)
        return
    if lost := not_kept(text):
        raise RejectedOrder([Problem(_joined(place, one.path), one.message) for one in lost])
    records = _records(envelope)
    for number, record in enumerate(records):
        at = _joined(place, f"{RECORDS}[{number}]")
        origins = (("bucket", _bucket(record, "name"), ""), *via)
        yield _Event(record, None, sha256(canonical_json(record)), origins, at)
    if not records:
        origin = "source", str(envelope["source"]), str(envelope["detail-type"])
        at = _joined(place, DETAIL)
        yield _Event(envelope[DETAIL], None, str(envelope["id"]), (origin, *via), at)


def _published(notification: Mapping[str, Json], place: str) -> Iterator[_Event]:
    """Yield the events of a message that was published to a topic."""
    text, at = str(notification[MESSAGE]), _joined(place, MESSAGE)
    topic = "topic", str(notification["TopicArn"]).rpartition(":")[2], ""
    content = _object(text)
    if content is not None and _is_envelope(content) and not _is_notification(content):
        yield from _events(text, content, (topic,), at)
    else:
        identity = str(notification["MessageId"])
        yield _Event(text if content is None else content, text, identity, (topic,), at)


def _opened(event: _Event, workflows: Mapping[str, "Workflow"]) -> OpenedEvent:
    """Return the event as an application would send it. Raises RejectedOrder."""
    content = event.content
    if not isinstance(content, Mapping):
        raise _rejected(event, _why_no_object(event))
    text = canonical_json(content) if event.text is None else event.text
    if ORDER_ID in content and set(content) - {ORDER_ID} in ({CANCEL}, {SIGNAL}):
        return OpenedEvent(with_signal_id(text, event.identity), event.place, None)
    for workflow in workflows.values():
        declared = next((one for one in workflow.events if _takes(one, event.origins)), None)
        if declared is not None:
            return _order(event, content, workflow.name, declared)
    if ORDER_ID not in content:
        kind = event.origins[0][0]
        example = f"From({kind}=...)" if kind != "source" else "From(source=..., detail_type=...)"
        raise _rejected(
            event,
            f"has no orderId, and no workflow takes the events of this {kind}; declare it in "
            f"events of a workflow, as {example}, or publish order events",
        )
    return OpenedEvent(with_signal_id(text, event.identity), event.place, None)


def _takes(declared: From, origins: Sequence[Origin]) -> bool:
    return any(declared.takes(*origin) for origin in origins)


def _order(
    event: _Event, content: Mapping[str, Json], workflow: str, declared: From
) -> OpenedEvent:
    """Return the event as an order of the workflow that declares it."""
    if event.text is not None and (lost := not_kept(event.text)):
        raise RejectedOrder([Problem(_joined(event.place, one.path), one.message) for one in lost])
    order_id = _order_id(event, content, declared)
    given = content
    if declared.input is not None:
        found = _evaluated(event, "input", declared.input)
        if not isinstance(found, Mapping):
            wrong = type_in_words(found)
            raise _rejected(event, f"input {declared.input!r} must give an object, not {wrong}")
        given = found
    options = given.get(PROCESSING)
    fields = {name: value for name, value in given.items() if name not in (ORDER_ID, PROCESSING)}
    order: dict[str, Json] = {**fields, ORDER_ID: order_id}
    if options is None or isinstance(options, Mapping):
        order[PROCESSING] = {**(options or {}), "workflow": workflow}
    else:
        order[PROCESSING] = options  # read with its problem
    inner = {name: value for name, value in content.items() if name not in (ORDER_ID, PROCESSING)}
    # Another id that the event has is part of it: with another one it is another event.
    own = content.get(ORDER_ID, order_id)
    identified: Json = order_id if own == order_id else [order_id, own]
    content_hash = sha256(canonical_json({**inner, ORDER_ID: identified}))
    signal = None
    if declared.signal is not None:
        signal = SignalSent(order_id, declared.signal, fields, content_hash)
        size = size_in_bytes(fields)
        if size > LARGEST_SIGNAL:
            sentence = f"has {size} bytes as a signal; at most {LARGEST_SIGNAL} are allowed"
            raise _rejected(event, f"{sentence}: declare an input with less")
    return OpenedEvent(_order_text(event, order, declared), event.place, content_hash, signal)


def _order_text(event: _Event, order: Mapping[str, Json], declared: From) -> str:
    try:
        return canonical_json(order)
    except (TypeError, ValueError) as error:  # of what only the expression can have made
        sentence = f"input {declared.input!r} gives what JSON does not have, such as NaN"
        raise _rejected(event, sentence) from error


def _order_id(event: _Event, content: Mapping[str, Json], declared: From) -> str:
    """The id of the order that the event becomes; a hash where it does not fit the rules."""
    if declared.id is None:
        what, found = ORDER_ID, content.get(ORDER_ID, event.identity)
    else:
        what, found = f"id {declared.id!r}", _evaluated(event, "id", declared.id)
    if isinstance(found, int) and not isinstance(found, bool):
        found = str(found)
    if not isinstance(found, str) or not found:
        wrong = "an empty text" if found == "" else type_in_words(found)
        raise _rejected(event, f"{what} must give a text or a whole number, not {wrong}")
    return found if TASK_ID.fullmatch(found) else sha256(found)


def _evaluated(event: _Event, what: str, expression: str) -> Json:
    try:
        return evaluate(what, expression, event.content)
    except ValueError as problem:
        raise _rejected(event, str(problem)) from problem


def _why_no_object(event: _Event) -> str:
    text = event.text or ""
    if text.lstrip().startswith("{"):
        try:
            parse_json(text)
        except ValueError as error:
            return f"not JSON: {error}"
    return "must be a JSON object"


def _rejected(event: _Event, sentence: str) -> RejectedOrder:
    return RejectedOrder([Problem(event.place, sentence)])


def _object(text: str) -> Mapping[str, Json] | None:
    try:
        found = parse_json(text)
    except ValueError:
        return None
    return found if isinstance(found, Mapping) else None


def _joined(place: str, path: str) -> str:
    return f"{place}.{path}" if place and path else place or path
