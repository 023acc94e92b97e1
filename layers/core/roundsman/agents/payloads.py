"""Reads and stores payloads, by the references that orders have to them.

What is read is checked against the hash in its reference. A payload is read and stored piece by
piece, so that 50 MB fit into the memory of a small function.
"""

import hashlib
import io
from contextlib import contextmanager
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, BinaryIO, cast

from roundsman.errors import CallRefused, PayloadError, TransientError, TryAgain
from roundsman.model.json import Json
from roundsman.model.payloads import NO_BUCKET, OTHER_ORDER, order_of, read_reference, reference_to
from roundsman.model.record_limits import LARGEST_PAYLOAD
from roundsman.ports import PayloadObject, PayloadStore

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECE = 1 << 20  # bytes
IN_MEMORY = 8 << 20  # bytes of a stream that are kept before a temporary file is


def uploaded(data: bytes | BinaryIO, order_id: str, store: PayloadStore | None) -> dict[str, Json]:
    """Store the data for the order, and return the reference to it.

    A file is read from where it stands to its end. Idempotent: the same data has the same
    reference. Raises PayloadError if it is larger than LARGEST_PAYLOAD or is text, and what `put`
    raises.
    """
    with _at_its_start(data) as file:
        digest, size = hashlib.sha256(), 0
        while piece := _piece_of(file):
            digest.update(piece)
            size += len(piece)
            if size > LARGEST_PAYLOAD:
                raise PayloadError(f"a payload may have at most {LARGEST_PAYLOAD} bytes")
        file.seek(0)
        reference = reference_to(order_id, digest.hexdigest(), size)
        _in(store).put(f"{order_id}/{digest.hexdigest()}", file, size)
    return reference


@contextmanager
def _at_its_start(data: bytes | BinaryIO) -> "Iterator[BinaryIO]":
    """The data as a file that can be read twice from 0: boto3 repeats a call from there."""
    if isinstance(data, bytes | bytearray | memoryview):
        yield io.BytesIO(data)
    elif data.seekable() and data.tell() == 0:
        yield data
    else:
        with SpooledTemporaryFile(max_size=IN_MEMORY) as copy:
            while (piece := _piece_of(data)) and copy.tell() <= LARGEST_PAYLOAD:
                copy.write(piece)
            copy.seek(0)
            yield cast("BinaryIO", copy)


def _piece_of(file: BinaryIO) -> bytes:
    piece: object = file.read(PIECE)
    if not isinstance(piece, bytes):
        raise PayloadError("a payload is bytes; open the file with 'rb', or encode the text")
    return piece


def opened(reference: object, order_id: str, store: PayloadStore | None) -> BinaryIO:
    """Return a file with what a reference of the order leads to, to be read once to its end.

    Raises PayloadError if it is no reference, or one of another order, and what `open` raises. At
    the end of the data, reading raises TransientError if it is not what the reference says.
    """
    found = read_reference(reference)
    if found is None:
        raise PayloadError(
            "this is no reference to a payload, which has the fields payload and bytes alone"
        )
    key, size = found
    if order_of(key) != order_id:
        raise PayloadError(f"the payload {OTHER_ORDER}")
    return cast("BinaryIO", io.BufferedReader(_Checked(_in(store).open(key), key, size), PIECE))


def _in(store: PayloadStore | None) -> PayloadStore:
    """The store. Raises PayloadError if there is none."""
    if store is None:
        raise PayloadError(NO_BUCKET)
    return store


class _Checked(io.RawIOBase):
    """Reads an object, and checks its size and its hash when its last byte was read."""

    def __init__(self, found: PayloadObject, key: str, size: int) -> None:
        super().__init__()
        self._object = found
        self._key = key
        self._size = size
        self._read = 0
        self._hash = hashlib.sha256()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast("bytearray", buffer))
        with for_an_attempt():
            piece = self._object.read(len(view))
        self._hash.update(piece)
        self._read += len(piece)
        over = not piece or self._read >= self._size
        if over and (self._read, self._hash.hexdigest()) != (self._size, self._key[-64:]):
            raise TransientError(
                f"a payload of {self._size} bytes was read with {self._read} bytes, or with others",
                cause="a payload is not what its hash says",
            )
        view[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        if not self.closed:
            self._object.close()
        super().close()


@contextmanager
def for_an_attempt() -> "Iterator[None]":
    """Translate the errors of a PayloadStore to those of an attempt.

    A TransientError makes no promise that the service has done nothing: the author's function may
    have called it before.
    """
    try:
        yield
    except TryAgain as error:
        raise TransientError(str(error), cause="the PayloadBucket did not answer") from error
    except CallRefused as error:
        raise PayloadError(str(error)) from error
