"""JSON texts as SQS and SNS take them: within their size, of characters that they let pass."""

import re
from collections.abc import Callable, Mapping, Sequence

from roundsman.errors import Problem
from roundsman.model.json import Json, canonical_json, parse_json
from roundsman.wire.alert import Alert
from roundsman.wire.messages import rejection_body

MESSAGE_LIMIT = 1_048_576  # bytes: SQS's 1 MiB, for one message and for a batch together
ALERT_LIMIT = 262_144  # bytes: SNS's 256 KiB

# The rest of what XML 1.0 cannot say, the control characters, JSON escapes by itself.
UNSENDABLE = re.compile("[\ud800-\udfff\ufffe\uffff]")

LONGEST_SMS = 140  # characters: what is longer is sent in parts
LONGEST_TEXT = 2_000  # characters of any one text in an alert that would be too long
PROBLEMS_KEPT = 50
LONGEST_PROBLEM = 500  # characters


def wire_text(text: str) -> str:
    """JSON text that is the same JSON, with the characters escaped that would be refused.

    Of other text (an attribute's value) these characters become readable escapes.
    """
    return UNSENDABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def alert_message(alert: Alert, limit: int) -> str:
    """The versions of an alert for its subscribers by their protocol, in at most `limit` bytes.

    SNS takes it apart where it is told that `MessageStructure` is `json`: mail programs get words,
    a telephone one sentence, everybody else the JSON. As a text within JSON that JSON is up to
    twice as long, and the words are beside it.
    """
    versions: dict[str, Json] = {"default": alert_text(alert.body, limit // 4)}
    if alert.text:
        versions["email"] = alert.text[: limit // 16]
    if alert.sms:
        versions["sms"] = alert.sms[:LONGEST_SMS]
    return wire_text(canonical_json(versions))


def alert_text(body: str, limit: int) -> str:
    """An alert's JSON as it is or, where it has more bytes than `limit`, its long texts cut."""
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
    """What the RejectedQueue keeps, in at most `limit` bytes.

    Where it would be more, problems and then the body's end are left out, and a problem says so.
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
    """The greatest length up to `most` that fits, where each shorter one fits too."""
    least = 0
    while least < most:
        middle = (least + most + 1) // 2
        if fits(middle):
            least = middle
        else:
            most = middle - 1
    return least
