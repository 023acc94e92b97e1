"""Masking the bodies of messages that are shown: order events, requests and replies."""

import json

from roundsman.aws.clock import now
from roundsman.errors import SchemaTooNew, UnreadableRecord
from roundsman.model.json import Json, parse_json
from roundsman.model.masked_values import MASK, MaskedPaths
from roundsman_console.dead_letter.assess import order_of
from roundsman_console.order.lookup import mask_of_order
from roundsman_console.order.masks import NO_MASK, Mask
from roundsman_console.stack.stack import DeployedStack

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
    own = _of_request(value)
    mask, readable = _mask_of(stack, body)
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
    # In the order of the message, so that a person recognizes it.
    return body if found == value else json.dumps(found, ensure_ascii=False)


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
