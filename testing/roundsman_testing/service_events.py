"""Messages as SNS, S3 and EventBridge put them into the SubmissionQueue, for tests.

    world = World(checkout, sources=["arn:aws:sns:*:*:orders"])
    world.send(sns_notification({"number": 7}, topic="orders"))

The same texts can be sent to a stack: `stack.submit(sns_notification(...))`.
"""

from collections.abc import Mapping
from typing import cast

from roundsman.model.json import Json, canonical_json, sha256

ACCOUNT, REGION = "123456789012", "us-east-1"
_TIME = "2026-12-01T09:00:00.000Z"


def sns_notification(
    message: str | Mapping[str, object],
    *,
    topic: str,
    message_id: str | None = None,
    account: str = ACCOUNT,
) -> str:
    """Return the notification of a message that was published to a topic, without raw delivery.

    `message` is a text, or a JSON object that is published as text; a notification of S3 or an
    event of EventBridge may be such a text. Each message has its own id, `message_id`.
    """
    text = message if isinstance(message, str) else _text(message)
    arn = f"arn:aws:sns:{REGION}:{account}:{topic}"
    return canonical_json(
        {
            "Type": "Notification",
            "MessageId": message_id or _id(arn, text),
            "TopicArn": arn,
            "Message": text,
            "Timestamp": _TIME,
            "SignatureVersion": "1",
            "Signature": "EXAMPLE",
            "SigningCertURL": f"https://sns.{REGION}.amazonaws.com/SimpleNotificationService.pem",
            "UnsubscribeURL": f"https://sns.{REGION}.amazonaws.com/?Action=Unsubscribe",
        }
    )


def s3_notification(*keys: str, bucket: str, event: str = "ObjectCreated:Put") -> str:
    """Return the notification of a bucket about objects, with a record for each key.

    S3 encodes a key as in a URL; give it as S3 would.
    """
    records: list[Json] = [
        {
            "eventVersion": "2.1",
            "eventSource": "aws:s3",
            "awsRegion": REGION,
            "eventTime": _TIME,
            "eventName": event,
            "userIdentity": {"principalId": "AWS:AROAEXAMPLE:uploader"},
            "requestParameters": {"sourceIPAddress": "192.0.2.1"},
            "responseElements": {"x-amz-request-id": _id(bucket, key)[:16].upper()},
            "s3": {
                "s3SchemaVersion": "1.0",
                "configurationId": "orders",
                "bucket": {
                    "name": bucket,
                    "ownerIdentity": {"principalId": "A3EXAMPLE"},
                    "arn": f"arn:aws:s3:::{bucket}",
                },
                "object": {
                    "key": key,
                    "size": 1024,
                    "eTag": sha256(key)[:32],
                    "sequencer": sha256(key)[:18].upper(),
                },
            },
        }
        for key in keys
    ]
    return canonical_json({"Records": records})


def s3_test_event(bucket: str) -> str:
    """Return what S3 sends once when a notification of a bucket is configured."""
    return canonical_json(
        {
            "Service": "Amazon S3",
            "Event": "s3:TestEvent",
            "Time": _TIME,
            "Bucket": bucket,
            "RequestId": "5582815E1AEA5ADF",
            "HostId": "EXAMPLE",
        }
    )


def eventbridge_event(
    detail: Mapping[str, object],
    *,
    source: str,
    detail_type: str,
    event_id: str | None = None,
) -> str:
    """Return an event of EventBridge, as a rule without an input transformer sends it."""
    text = _text(detail)
    return canonical_json(
        {
            "version": "0",
            "id": event_id or _id(source, text),
            "detail-type": detail_type,
            "source": source,
            "account": ACCOUNT,
            "time": "2026-12-01T09:00:00Z",
            "region": REGION,
            "resources": [],
            "detail": cast("Json", detail),
        }
    )


def _text(value: Mapping[str, object]) -> str:
    return canonical_json(cast("Json", value))


def _id(*texts: str) -> str:
    """A UUID that depends on texts alone, so that a run can be repeated."""
    found = sha256("\n".join(texts))
    return "-".join((found[:8], found[8:12], found[12:16], found[16:20], found[20:32]))
