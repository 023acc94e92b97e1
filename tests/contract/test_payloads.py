"""Payloads are stored under their hash, read back, and erased with all versions of their order."""

import hashlib
import os
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

import boto3
import pytest
from moto import mock_aws

from roundsman.aws.payloads import S3Payloads
from roundsman.errors import CallRefused, TryAgain
from roundsman.ports import PayloadStore
from roundsman_testing.memory import MemoryPayloads

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

BUCKET = "payloads"
DATA = b"a page that was scanned"


@dataclass
class Bucket:
    """A store, and what only another hand does to its bucket."""

    store: PayloadStore
    keys: Callable[[], set[str]]
    """The keys of all versions of all objects."""
    delete: Callable[[str], None]
    """Deletes an object as a person does, without its versions."""
    remove: Callable[[], None]
    """Removes the empty bucket."""


@contextmanager
def memory() -> Iterator[Bucket]:
    store = MemoryPayloads()

    def remove() -> None:
        store.is_gone = True

    def delete(key: str) -> None:
        del store.objects[key]

    yield Bucket(store, lambda: set(store.objects), delete, remove)


def versions_of(client: "S3Client") -> set[str]:
    pages = client.get_paginator("list_object_versions").paginate(Bucket=BUCKET)
    return {
        one["Key"]
        for page in pages
        for one in (*page.get("Versions", []), *page.get("DeleteMarkers", []))
    }


@contextmanager
def moto() -> Iterator[Bucket]:
    with mock_aws():
        client: S3Client = boto3.client("s3")
        client.create_bucket(Bucket=BUCKET)
        client.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})

        def remove() -> None:
            client.delete_bucket(Bucket=BUCKET)

        def delete(key: str) -> None:
            client.delete_object(Bucket=BUCKET, Key=key)

        yield Bucket(S3Payloads(BUCKET, client), lambda: versions_of(client), delete, remove)


@pytest.fixture(params=[memory, moto])
def bucket(request: pytest.FixtureRequest) -> Iterator[Bucket]:
    make: Callable[[], AbstractContextManager[Bucket]] = request.param
    with make() as made:
        yield made


def key_of(order_id: str, data: bytes = DATA) -> str:
    return f"{order_id}/{hashlib.sha256(data).hexdigest()}"


def put(bucket: Bucket, order_id: str, data: bytes = DATA) -> str:
    key = key_of(order_id, data)
    bucket.store.put(key, BytesIO(data), len(data))
    return key


def test_what_was_stored_is_read_piece_by_piece(bucket: Bucket) -> None:
    found = bucket.store.open(put(bucket, "ord-1"))
    assert (found.read(6), found.read(1_000), found.read(1)) == (DATA[:6], DATA[6:], b"")
    found.close()


def test_the_same_data_is_one_object(bucket: Bucket) -> None:
    assert put(bucket, "ord-1") == put(bucket, "ord-1")
    assert bucket.keys() == {key_of("ord-1")}


def test_nothing_is_stored_under_the_hash_of_other_data() -> None:
    store = MemoryPayloads()
    with pytest.raises(CallRefused, match="BadDigest"):
        store.put(key_of("ord-1", b"other"), BytesIO(DATA), len(DATA))
    assert store.objects == {}


def test_s3_is_given_the_hash_that_it_has_to_check() -> None:
    """moto does not compare it with the data, as S3 does."""
    with mock_aws():
        client: S3Client = boto3.client("s3")
        client.create_bucket(Bucket=BUCKET)
        S3Payloads(BUCKET, client).put(key_of("ord-1"), BytesIO(DATA), len(DATA))
        found = client.head_object(Bucket=BUCKET, Key=key_of("ord-1"), ChecksumMode="ENABLED")
        assert found["ChecksumSHA256"] == b64encode(hashlib.sha256(DATA).digest()).decode()


def test_what_is_not_there_is_refused_in_words(bucket: Bucket) -> None:
    with pytest.raises(CallRefused, match="reading the payload ord-1/"):
        bucket.store.open(key_of("ord-1"))


def test_an_order_is_erased_with_what_was_deleted_and_another_one_stays(bucket: Bucket) -> None:
    put(bucket, "ord-1")
    bucket.delete(put(bucket, "ord-1", b"deleted by mistake"))
    stays = {put(bucket, "ord-10"), put(bucket, "ord")}
    for _ in range(2):
        bucket.store.erase("ord-1")
        assert bucket.keys() == stays


def test_an_order_of_several_pages_is_erased_to_its_end(bucket: Bucket) -> None:
    """A page of S3 has 1,000 versions."""
    for number in range(1_001):
        put(bucket, "ord-1", str(number).encode())
    bucket.store.erase("ord-1")
    assert bucket.keys() == set()


def test_a_bucket_that_is_gone_is_named(bucket: Bucket) -> None:
    bucket.remove()
    with pytest.raises(CallRefused, match="the bucket payloads is gone"):
        bucket.store.erase("ord-1")
    with pytest.raises(CallRefused, match="the bucket payloads is gone"):
        put(bucket, "ord-1")
    with pytest.raises(CallRefused, match="the bucket payloads is gone"):
        bucket.store.open(key_of("ord-1"))


def test_what_s3_could_not_erase_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with mock_aws():
        client: S3Client = boto3.client("s3")
        client.create_bucket(Bucket=BUCKET)
        store = S3Payloads(BUCKET, client)
        store.put(key_of("ord-1"), BytesIO(DATA), len(DATA))
        left = {"Errors": [{"Key": key_of("ord-1"), "Code": "InternalError"}]}
        with monkeypatch.context() as patched:
            patched.setattr(client, "delete_objects", lambda **_: left)
            with pytest.raises(TryAgain, match="1 left, InternalError"):
                store.erase("ord-1")
        store.erase("ord-1")
        assert versions_of(client) == set()


def test_a_store_without_a_client_makes_one_when_it_is_used() -> None:
    with mock_aws():
        os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")
        boto3.client("s3").create_bucket(Bucket=BUCKET)
        store = S3Payloads(BUCKET)
        store.put(key_of("ord-1"), BytesIO(DATA), len(DATA))
        assert store.open(key_of("ord-1")).read(1_000) == DATA
