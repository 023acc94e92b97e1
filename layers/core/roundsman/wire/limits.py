"""Makes texts valid for SQS and SNS: within the size limits, with allowed characters only."""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from roundsman.errors import Problem
from roundsman.model.json import Json, canonical_json, parse_json
from roundsman.wire.alert import Alert
from roundsman.wire.messages import rejection_body

MESSAGE_LIMIT = 1_048_576  # bytes: SQS's 1 MiB, for one message and for a batch together
ALERT_LIMIT = 262_144  # bytes: SNS's 256 KiB

# SQS and SNS accept only characters that XML 1.0 allows. The other characters that XML 1.0 does not
# allow are control characters, and JSON text contains those only as escapes.
UNSENDABLE = re.compile("[\ud800-\udfff\ufffe\uffff]")

LONGEST_SMS = 140  # characters; a longer SMS is sent in several parts
LONGEST_TEXT = 2_000  # characters of each string in an alert that is too long
PROBLEMS_KEPT = 50
LONGEST_PROBLEM = 500  # characters


def wire_text(text: str) -> str:
    """Replace the characters that SQS and SNS refuse by `\\uXXXX` escapes.

    JSON text keeps its meaning. In other text, such as the value of a message attribute, the
    escapes stay visible.
    """
    return UNSENDABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def alert_message(alert: Alert, limit: int) -> str:
    """Return an alert as an SNS message with one version per protocol, in at most `limit` bytes.

    Publish it with `MessageStructure` `json`. SNS then sends `alert.text` by e-mail, `alert.sms` by
    SMS, and the JSON to all other subscribers. The JSON may use only a quarter of `limit`: it is a
    string within JSON, which can double its length, and the message contains the text too.
    """
    versions: dict[str, Json] = {"default": alert_text(alert.body, limit // 4)}
    if alert.text:
        versions["email"] = alert.text[: limit // 16]
    if alert.sms:
        versions["sms"] = alert.sms[:LONGEST_SMS]
    return wire_text(canonical_json(versions))


def alert_text(body: str, limit: int) -> str:
    """Return the JSON of an alert, a JSON object, in at most `limit` bytes; `limit` is at least 32.

    If it would be longer, each string is cut to LONGEST_TEXT characters. If that is not enough,
    each list and object keeps as many of its first elements as fit, and strings are cut to that
    number of characters too. The field `leftOut` then counts the elements that were left out.
    """
    whole = wire_text(body)
    if len(whole.encode()) <= limit:
        return whole
    document = parse_json(body)

    def text(most: int) -> str:
        found, left_out = _cut(document, min(most, LONGEST_TEXT), most)
        if left_out and isinstance(found, dict):
            found["leftOut"] = left_out
        return wire_text(canonical_json(found))

    def fits(most: int) -> bool:
        return len(text(most).encode()) <= limit

    most = len(body)  # more than there are elements
    return text(most if fits(most) else _longest(most, fits))


def _cut(value: Json, longest: int, most: int) -> tuple[Json, int]:
    """Cut each string to `longest` characters, and each list and object to `most` elements.

    Returns the result and the number of elements that were left out. The elements within an element
    that was left out are not counted.
    """
    if isinstance(value, str):
        return (value if len(value) <= longest else f"{value[:longest]}..."), 0
    if isinstance(value, Mapping):
        cut = {key: _cut(inner, longest, most) for key, inner in islice(value.items(), most)}
        left_out = len(value) - len(cut) + sum(inner for _, inner in cut.values())
        return {key: inner for key, (inner, _) in cut.items()}, left_out
    if isinstance(value, Sequence):
        each = [_cut(inner, longest, most) for inner in value[:most]]
        left_out = len(value) - len(each) + sum(inner for _, inner in each)
        return [inner for inner, _ in each], left_out
    return value, 0


def rejection_text(queue: str, body: str, problems: Sequence[Problem], limit: int) -> str:
    """Return the message for the RejectedQueue, in at most `limit` bytes.

    If it would be longer, first problems and then the end of the body are left out. An additional
    problem states it.
    """

    def text(body: str, problems: Sequence[Problem]) -> str:
        return wire_text(rejection_body(queue, body, tuple(problems)))

    whole = text(body, problems)
    if len(whole.encode()) <= limit:
        return whole
    kept = [
        Problem(problem.path[:LONGEST_PROBLEM], problem.message[:LONGEST_PROBLEM])
        for problem in problems[:PROBLEMS_KEPT]
    ]
    left_out = len(problems) - len(kept)
    if left_out:
        kept.append(Problem("", f"and {left_out} more problems"))
    cut_off = Problem("", f"the message has {len(body)} characters; its end is left out here")
    if len(text(body, kept).encode()) <= limit:
        return text(body, kept)
    kept.append(cut_off)
    room = _longest(len(body), lambda length: len(text(body[:length], kept).encode()) <= limit)
    return text(body[:room], kept)


def _longest(most: int, fits: Callable[[int], bool]) -> int:
    """Return the greatest length up to `most` that fits, by binary search.

    If a length fits, every shorter length must fit too.
    """
    least = 0
    while least < most:
        middle = (least + most + 1) // 2
        if fits(middle):
            least = middle
        else:
            most = middle - 1
    return least
