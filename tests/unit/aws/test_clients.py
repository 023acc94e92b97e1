"""What the functions' own clients say to AWS."""

import pytest
from botocore.awsrequest import AWSPreparedRequest

from roundsman.aws.clients import Clients


class Seen(Exception):
    """The request as it would have gone out."""


def test_a_client_names_itself_by_one_text_that_is_not_built_anew_for_each_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "us-east-1")
    clients = Clients()

    def stop(request: AWSPreparedRequest, **_: object) -> None:
        raise Seen(request.headers["User-Agent"])

    for client in (clients.sqs, clients.dynamodb):
        client.meta.events.register("before-send", stop)
    with pytest.raises(Seen, match=r"Boto3/[0-9.]+ Roundsman"):
        clients.sqs.list_queues()
    with pytest.raises(Seen, match=r"Boto3/[0-9.]+ Roundsman"):
        clients.dynamodb.list_tables()
