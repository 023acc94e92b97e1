"""Files that go with an order: each is stored as a payload, and the event has the reference to it.

The reference is computed before anything is stored, so that an event that would be rejected leaves
nothing in the bucket.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BufferedReader
from os import SEEK_END
from pathlib import Path

from roundsman.client import Client
from roundsman.model.json import Json, canonical_json, parse_json
from roundsman.model.payloads import NO_BUCKET, reference_to
from roundsman.model.record_limits import LARGEST_PAYLOAD
from roundsman.model.task import TASK_ID
from roundsman.submission.events import CANCEL, SIGNAL, given_order_id
from roundsman.submission.service_events import is_envelope
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.errors import InspectorError, InvalidArgument


def read_payload_files(texts: Sequence[str]) -> Mapping[str, Path]:
    """Return the file for each top-level field, of texts such as `scan=scan.pdf`.

    Raises InvalidArgument for another text, and for a field that is there twice.
    """
    found: dict[str, Path] = {}
    for text in texts:
        field, _, file = text.partition("=")
        if not field or not file:
            raise InvalidArgument(f"{text!r} names no field and file. Write it so: scan=scan.pdf.")
        if field in found:
            raise InvalidArgument(f"{field} has two files.")
        found[field] = Path(file)
    return found


@dataclass(frozen=True, slots=True)
class OrderWithFiles:
    """An order event with references to files that are not stored yet."""

    body: str
    _order_id: str
    _files: Mapping[str, Path]
    _references: Mapping[str, dict[str, Json]]

    def store(self, client: Client) -> None:
        """Store the files for the order. Idempotent: the same data is one object.

        Raises InvalidArgument if a file cannot be read or is another one now, and as
        `Client.upload`.
        """
        for field, path in self._files.items():
            with _opened(path) as file:
                stored = client.upload(self._order_id, file)
            if stored != self._references[field]:
                raise InvalidArgument(f"{path} was changed meanwhile. No order was sent.")


def with_files(
    stack: DeployedStack, name: str, body: str, files: Mapping[str, Path]
) -> OrderWithFiles:
    """Return the order event with a reference in each field that has a file.

    `name` is the file's with the event. Raises InspectorError if the stack has no PayloadBucket,
    and InvalidArgument if the event is no order with an id, has a field already, or if a file
    cannot be read or is too large. Nothing is stored.
    """
    if stack.payload_bucket is None:
        raise InspectorError(f"Nothing was sent: {NO_BUCKET}.")
    event = _order_of(name, body)
    order_id = given_order_id(event)
    if order_id is None or not TASK_ID.fullmatch(order_id):
        raise InvalidArgument(f"{name} has no valid orderId, for which a file could be stored.")
    if there := sorted(files.keys() & event.keys()):
        raise InvalidArgument(f"{name} has the field {there[0]} already.")
    references = {field: _reference(order_id, path) for field, path in files.items()}
    return OrderWithFiles(canonical_json({**event, **references}), order_id, files, references)


def _order_of(name: str, body: str) -> Mapping[str, Json]:
    try:
        event = parse_json(body)
    except ValueError as error:
        raise InvalidArgument(f"{name} is not JSON: {error}.") from error
    if not isinstance(event, Mapping) or event.keys() & {CANCEL, SIGNAL} or is_envelope(body):
        raise InvalidArgument(f"{name} is no order event, which alone may have files.")
    return event


def _reference(order_id: str, path: Path) -> dict[str, Json]:
    """The reference that the file gets when it is stored."""
    with _opened(path) as file:
        size = file.seek(0, SEEK_END)
        if size > LARGEST_PAYLOAD:
            raise InvalidArgument(
                f"{path} has {size} bytes; a payload may have at most {LARGEST_PAYLOAD}."
            )
        file.seek(0)
        return reference_to(order_id, hashlib.file_digest(file, "sha256").hexdigest(), size)


@contextmanager
def _opened(path: Path) -> Iterator[BufferedReader]:
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be read: {error.strerror or error}.") from error
