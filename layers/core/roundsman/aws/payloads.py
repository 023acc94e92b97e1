"""The PayloadBucket: what is too large for orders, by the id of the order and its SHA-256.

Imported when it is first used, since most functions use none, and so is the client of S3.
"""

from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, BinaryIO

import boto3
from botocore.config import Config

from roundsman.aws.clients import CONFIG, CONNECT_TIMEOUT, limited
from roundsman.aws.errors import aws_errors
from roundsman.errors import CallRefused, TryAgain
from roundsman.ports import PayloadObject

if TYPE_CHECKING:
    from botocore.response import StreamingBody
    from mypy_boto3_s3 import S3Client

UPLOAD_TIMEOUT = 10
"""Seconds: S3 answers an upload of 50 MB when it has checked the whole."""


class S3Payloads:
    """PayloadStore in a bucket of S3 with versions."""

    def __init__(
        self,
        bucket: str,
        client: "S3Client | None" = None,
        *,
        read_timeout: int = UPLOAD_TIMEOUT,
    ) -> None:
        """Without a client, one is made at the first call. It waits so many seconds for answers."""
        self._bucket = bucket
        self._given = client
        self._read_timeout = read_timeout

    @cached_property
    def _client(self) -> "S3Client":
        if self._given is not None:
            return self._given
        timeouts = Config(connect_timeout=CONNECT_TIMEOUT, read_timeout=self._read_timeout)
        client: S3Client = boto3.client("s3", config=CONFIG.merge(timeouts))
        return limited(client)

    def put(self, key: str, body: BinaryIO, size: int) -> None:
        """Store the file under its hash, by which S3 checks it."""
        digest = b64encode(bytes.fromhex(key[-64:])).decode()
        with self._errors(f"storing the payload {key}"):
            self._client.put_object(
                Bucket=self._bucket,
                Key=key,
                Body=body,
                ContentLength=size,
                ChecksumAlgorithm="SHA256",
                ChecksumSHA256=digest,
            )

    def open(self, key: str) -> PayloadObject:
        """Begin to read the object under the key."""
        doing = f"reading the payload {key}"
        with self._errors(doing):
            found = self._client.get_object(Bucket=self._bucket, Key=key)
        return _Opened(found["Body"], doing)

    def erase(self, order_id: str) -> None:
        """Remove all versions, a page of at most 1,000 after the other, until none is left."""
        with self._errors(f"erasing the payloads of {order_id}"):
            while True:
                found = self._client.list_object_versions(
                    Bucket=self._bucket, Prefix=f"{order_id}/"
                )
                marked = [*found.get("Versions", []), *found.get("DeleteMarkers", [])]
                if not marked:
                    return
                answer = self._client.delete_objects(
                    Bucket=self._bucket,
                    Delete={
                        "Objects": [
                            {"Key": one["Key"], "VersionId": one["VersionId"]} for one in marked
                        ],
                        "Quiet": True,
                    },
                )
                if left := answer.get("Errors"):
                    code = left[0].get("Code", "")
                    raise TryAgain(f"erasing the payloads of {order_id}: {len(left)} left, {code}")

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        try:
            with aws_errors(doing):
                yield
        except CallRefused as error:
            why = {
                "NoSuchBucket": f"the bucket {self._bucket} is gone; "
                "docs/how-to/large-data.md says what to do",
                "NoSuchKey": "it is not in the bucket, or was erased",
                # Without the right to list a bucket, S3 does not tell what is not there.
                "AccessDenied": "it is not in the bucket, or the role may not do this",
            }.get(error.code)
            if why is None:
                raise
            raise CallRefused(f"{error}: {why}", error.code) from error


class _Opened:
    def __init__(self, body: "StreamingBody", doing: str) -> None:
        self._body = body
        self._doing = doing

    def read(self, size: int, /) -> bytes:
        with aws_errors(self._doing):
            return self._body.read(size)

    def close(self) -> None:
        self._body.close()
