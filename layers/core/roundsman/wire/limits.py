"""Makes texts valid for SQS and SNS: within the size limits, with allowed characters only."""

import re
from collections.abc import Callable, Mapping, Sequence

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
    """Return the JSON of an alert; if it has more than `limit` bytes, its long strings are cut.

    Each string is then cut to LONGEST_TEXT characters.
    """
    whole = wire_text(body)
    if len(whole.encode()) <= limit:
        return whole
    return wire_text(canonical_json(_cut(parse_json(body))))


def _cut(value: Json) -> Json:
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else f"{value[:LONGEST_TEXT]}..."
    if isinstance(value, Mapping):
        return {key: _cut(inner) for key, inner in value.items()}
    if isinstance(value, Sequence):
        return [_cut(inner) for inner in value]
    return value


def rejection_text(queue: str, body: str, problems: Sequence[Problem], limit: int) -> str:
    """Return the message for the RejectedQueue, in at most `limit` bytes.

    If it would be longer, first problems and then the end of the body are left out. An additional
    problem says so.
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
        kept.append(Problem("", f"and {left_out} problems more"))
    said = Problem("", f"the message has {len(body)} characters; its end is left out here")
    if len(text(body, kept).encode()) <= limit:
        return text(body, kept)
    kept.append(said)
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
