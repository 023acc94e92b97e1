"""Reads the SQS messages of a Lambda event."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast


@dataclass(frozen=True, slots=True)
class SqsRecord:
    """One SQS message of a Lambda event."""

    body: str
    message_id: str
    """Stays the same on a redelivery."""
    queue: str
    """The queue's name."""
    receipt_handle: str
    system: Mapping[str, object] = field(default_factory=dict)
    """The attributes that SQS sets, such as `SentTimestamp`."""
    own: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """The attributes that the sender set (`messageAttributes`)."""

    @property
    def receives(self) -> int:
        """How often the message was received, including this time."""
        return self.number("ApproximateReceiveCount", 1)

    @property
    def sender(self) -> str | None:
        """The principal that sent the message, as SQS authenticated it; None if it is not there.

        That is the `SenderId`: `AROAEXAMPLE:session` for a role, `AIDAEXAMPLE` for an IAM user.
        """
        found = self.system.get("SenderId")
        return found if isinstance(found, str) and found else None

    @property
    def trace(self) -> str | None:
        """The trace header; None if the message has none."""
        found = self.system.get("AWSTraceHeader")
        return found if isinstance(found, str) else None

    def number(self, name: str, absent: int) -> int:
        """The attribute `name` of `system` as a number; `absent` if it is not one."""
        found = str(self.system.get(name, absent))
        return int(found) if found.isdecimal() else absent


def entries_of(event: Mapping[str, object]) -> list[object]:
    """The entries of `Records`, not checked; empty if the event has none."""
    entries = event.get("Records")
    return list(entries) if isinstance(entries, list) else []


def read_record(entry: object) -> SqsRecord | None:
    """The message; None if the entry is not an SQS message."""
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
    """The entry's message id; None if it has none."""
    found = _mapping(entry).get("messageId")
    return found if isinstance(found, str) and found else None


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}
