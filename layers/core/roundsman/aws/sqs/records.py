"""The SQS messages of an event, as Lambda hands them over."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast


@dataclass(frozen=True, slots=True)
class SqsRecord:
    """One message: its body, its id (kept by redeliveries), the name of its queue, and the rest.

    `system` are the attributes that SQS itself gives a message, `own` those of its sender.
    """

    body: str
    message_id: str
    queue: str
    receipt_handle: str
    system: Mapping[str, object] = field(default_factory=dict)
    own: Mapping[str, Mapping[str, object]] = field(default_factory=dict)

    @property
    def receives(self) -> int:
        """How often it was received, this time included."""
        return self.number("ApproximateReceiveCount", 1)

    def number(self, name: str, absent: int) -> int:
        """One of SQS's own attributes that is a number."""
        said = str(self.system.get(name, absent))
        return int(said) if said.isdecimal() else absent


def entries_of(event: Mapping[str, object]) -> list[object]:
    """What an event brings, whatever it is."""
    entries = event.get("Records")
    return list(entries) if isinstance(entries, list) else []


def read_record(entry: object) -> SqsRecord | None:
    """The message; None where SQS never made it."""
    given = _mapping(entry)
    body, message_id = given.get("body"), id_of(entry)
    arn, handle = given.get("eventSourceARN"), given.get("receiptHandle")
    if not isinstance(body, str) or not isinstance(arn, str) or not isinstance(handle, str):
        return None
    if message_id is None:
        return None
    own = cast("Mapping[str, Mapping[str, object]]", _mapping(given.get("messageAttributes")))
    queue = arn.rpartition(":")[2]
    return SqsRecord(body, message_id, queue, handle, _mapping(given.get("attributes")), own)


def id_of(entry: object) -> str | None:
    """The message's id, as far as it can be read."""
    found = _mapping(entry).get("messageId")
    return found if isinstance(found, str) and found else None


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
