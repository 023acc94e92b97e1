"""Masking the bodies of messages that are shown: events and envelopes, requests and replies."""

import json

from roundsman.aws.clock import now
from roundsman.errors import SchemaTooNew, UnreadableRecord
from roundsman.model.json import Json, canonical_json, parse_json
from roundsman.model.masked_values import MASK, MaskedPaths
from roundsman.submission.events import ORDER_ID
from roundsman.submission.service_events import DETAIL, MESSAGE, RECORDS
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.facts.order.lookup import mask_of_order
from roundsman_console.facts.order.masks import NO_MASK, Mask
from roundsman_console.facts.set_aside.assess import order_of

TASK = "taskId"
"""The field of the messages of the engine that has the id of the order."""
INPUT = "input"
"""The field of a request with the order's input; in an order event, the fields are its own."""
CONTENTS = (INPUT, "results", "result", "error")
"""The fields of requests, replies and commands that may have values of the order."""


def masked_body(stack: DeployedStack, body: str) -> str:
    """Return the body as it is shown: with MASK for the values that a workflow masks.

    The fields are those of the workflows that are known here, and of the plan of the order's task,
    if it has one. Text that is not JSON is returned unchanged.
    """
    try:
        value = parse_json(body)
    except ValueError:
        return body
    found = _masked_message(stack, value)
    # In the order of the message, so that a person recognizes it.
    return body if found == value else json.dumps(found, ensure_ascii=False)


def _masked_message(stack: DeployedStack, value: Json) -> Json:
    if isinstance(value, dict) and not {ORDER_ID, TASK} & set(value):
        value = _masked_envelope(stack, value)
    own = _of_request(value)
    mask, readable = _mask_of(stack, canonical_json(value))
    known = stack.events.workflows.values() if stack.events else ()
    paths = MaskedPaths(
        (
            *mask.paths.patterns,
            *MaskedPaths.of(p for one in known for p in one.masked_paths()).patterns,
        )
    )
    found = _masked(paths, mask, value if own is None else own.masked(value))
    if not readable and isinstance(found, dict):
        found = {**found, **{name: MASK for name in CONTENTS if name in found}}
    return found


def _masked_envelope(stack: DeployedStack, envelope: dict[str, Json]) -> dict[str, Json]:
    """Mask the events in the envelope of a service of AWS; what is none is returned as it is.

    A message of SNS is text: it is masked as a whole if a part of it is.
    """
    found = dict(envelope)
    records, text = found.get(RECORDS), found.get(MESSAGE)
    if isinstance(records, list):
        found[RECORDS] = [_masked_event(stack, one) for one in records]
    if DETAIL in found and "detail-type" in found:
        found[DETAIL] = _masked_event(stack, found[DETAIL])
    if isinstance(text, str) and "TopicArn" in found:
        try:
            event = parse_json(text)
        except ValueError:
            event = text
        found[MESSAGE] = text if _masked_event(stack, event) == event else MASK
    return found


def _masked_event(stack: DeployedStack, event: Json) -> Json:
    """Mask the values of an event, or all of it if they are not known by their paths in it.

    An expression of a declaration (`From.input`) takes values from other paths than they have in
    the order.
    """
    known = stack.events.workflows.values() if stack.events else ()
    declared = (each for one in known if one.masked_paths() for each in one.events)
    if stack.events is None or any(each.input is not None for each in declared):
        return MASK
    return _masked_message(stack, event)


def _of_request(value: Json) -> MaskedPaths | None:
    """The masked values of a request, which it names itself; None if it is none, or names none."""
    named = value.get("masked") if isinstance(value, dict) else None
    if not isinstance(named, list):
        return None
    return MaskedPaths.of(one for one in named if isinstance(one, str))


def _masked(paths: MaskedPaths, mask: Mask, value: Json) -> Json:
    found = mask.json(paths.masked(value))
    if isinstance(found, dict) and isinstance(found.get(INPUT), dict):
        return {**found, INPUT: paths.masked(found[INPUT])}
    return found


def _mask_of(stack: DeployedStack, body: str) -> tuple[Mask, bool]:
    """The mask of the message's task, and whether the task and its plan can be read."""
    order = order_of(body)
    try:
        task = stack.tasks.load(order, now()) if order else None
        return (NO_MASK if task is None else mask_of_order(stack, task)), True
    except (SchemaTooNew, UnreadableRecord):
        return NO_MASK, False
