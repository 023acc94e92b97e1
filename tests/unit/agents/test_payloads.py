"""A payload is stored by its hash, and what is read is compared with it."""

import hashlib
import io
from pathlib import Path
from typing import BinaryIO, cast

import pytest

from roundsman.agents.payloads import PIECE, for_an_attempt, opened, uploaded
from roundsman.errors import CallRefused, PayloadError, TransientError, TryAgain
from roundsman.model.payloads import reference_to
from roundsman.model.record_limits import LARGEST_PAYLOAD
from roundsman_testing.memory import MemoryPayloads

DATA = b"ab" * PIECE + b"c"  # three pieces
DIGEST = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def store() -> MemoryPayloads:
    return MemoryPayloads()


def test_the_reference_has_the_order_the_hash_and_the_size(store: MemoryPayloads) -> None:
    found = uploaded(DATA, "ord-1", store)
    assert found == {"payload": f"ord-1/{DIGEST}", "bytes": len(DATA)}
    assert opened(found, "ord-1", store).read() == DATA


def test_a_file_is_stored_from_where_it_stands(store: MemoryPayloads, tmp_path: Path) -> None:
    path = tmp_path / "scan.pdf"
    path.write_bytes(b"head" + DATA)
    with path.open("rb") as file:
        file.seek(4)
        assert uploaded(file, "ord-1", store) == reference_to("ord-1", DIGEST, len(DATA))
    with path.open("rb") as file:
        assert uploaded(file, "ord-1", store)["bytes"] == len(DATA) + 4
        assert not file.closed


class Stream(io.RawIOBase):
    """A stream that can be read once, such as the body of an answer."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        return self._data.readinto(cast("bytearray", buffer))


def test_a_stream_that_cannot_be_read_twice_is_stored(store: MemoryPayloads) -> None:
    stream = cast("BinaryIO", Stream(DATA))
    assert uploaded(stream, "ord-1", store) == reference_to("ord-1", DIGEST, len(DATA))


@pytest.mark.parametrize("as_a_stream", [False, True])
def test_more_than_fits_is_refused_and_not_stored(store: MemoryPayloads, as_a_stream: bool) -> None:
    data = bytes(LARGEST_PAYLOAD + 1)
    given = cast("BinaryIO", Stream(data)) if as_a_stream else data
    with pytest.raises(PayloadError, match="at most 50000000 bytes"):
        uploaded(given, "ord-1", store)
    assert store.objects == {}


def test_as_much_as_is_allowed_is_stored(store: MemoryPayloads) -> None:
    assert uploaded(bytes(LARGEST_PAYLOAD), "ord-1", store)["bytes"] == LARGEST_PAYLOAD


def test_text_is_refused_with_what_to_do() -> None:
    with pytest.raises(PayloadError, match="open the file with 'rb'"):
        uploaded(cast("BinaryIO", io.StringIO("text")), "ord-1", MemoryPayloads())


@pytest.mark.parametrize(
    "stored", [DATA[:-1], DATA + b"d", DATA[:-1] + b"d"], ids=["short", "long", "other"]
)
def test_what_is_not_what_the_reference_says_is_no_end_of_the_file(
    store: MemoryPayloads, stored: bytes
) -> None:
    reference = uploaded(DATA, "ord-1", store)
    store.objects[f"ord-1/{DIGEST}"] = stored
    with pytest.raises(TransientError) as raised:
        opened(reference, "ord-1", store).read()
    assert raised.value.cause == "a payload is not what its hash says"
    assert not raised.value.no_effect


def test_the_last_byte_is_not_given_before_it_is_checked(store: MemoryPayloads) -> None:
    """A function that reads as many bytes as the reference says never reads at the end."""
    reference = uploaded(b"abc", "ord-1", store)
    key = str(reference["payload"])
    store.objects[key] = b"abd"
    file = opened(reference, "ord-1", store)
    with pytest.raises(TransientError):
        file.read(3)


def test_an_empty_payload_is_empty(store: MemoryPayloads) -> None:
    assert opened(uploaded(b"", "ord-1", store), "ord-1", store).read() == b""


@pytest.mark.parametrize(
    "reference",
    [
        None,
        "ord-1/x",
        {"payload": f"ord-1/{DIGEST}"},
        {"payload": f"ord-1/{DIGEST}", "bytes": 3, "name": "x"},
        {"payload": f"../{DIGEST[1:]}", "bytes": 3},
        {"payload": f"ord-1/{DIGEST}", "bytes": True},
    ],
)
def test_what_is_no_reference_is_refused(store: MemoryPayloads, reference: object) -> None:
    with pytest.raises(PayloadError, match="no reference to a payload"):
        opened(reference, "ord-1", store)


@pytest.mark.parametrize("other", ["ord-2", "ord", "ord-10"])
def test_the_data_of_another_order_is_not_read(store: MemoryPayloads, other: str) -> None:
    with pytest.raises(PayloadError, match="of another order"):
        opened(uploaded(DATA, "ord-1", store), other, store)


def test_without_a_bucket_the_parameter_is_named() -> None:
    reference = reference_to("ord-1", DIGEST, 3)
    with pytest.raises(PayloadError, match="set the parameter PayloadBucket"):
        opened(reference, "ord-1", None)
    with pytest.raises(PayloadError, match="set the parameter PayloadBucket"):
        uploaded(DATA, "ord-1", None)


def test_a_bucket_that_does_not_answer_is_tried_again_and_promises_nothing() -> None:
    with pytest.raises(TransientError) as raised, for_an_attempt():
        raise TryAgain("reading the payload: throttled")
    assert (raised.value.no_effect, raised.value.cause) == (
        False,
        "the PayloadBucket did not answer",
    )


def test_a_bucket_that_refuses_is_an_unexpected_error() -> None:
    with pytest.raises(PayloadError, match="NoSuchBucket"), for_an_attempt():
        raise CallRefused("reading the payload: NoSuchBucket", "NoSuchBucket")
