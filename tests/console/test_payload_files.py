"""`roundsman submit --payload`: a file is stored for the order, and the event has its reference."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, cast

import boto3
import pytest

from roundsman.client import Client
from roundsman.model.record_limits import LARGEST_PAYLOAD
from roundsman_console.acts.order.payload_files import with_files
from roundsman_console.aws.stack import DeployedStack, find_stack
from roundsman_console.base.errors import FAILED, USAGE, InvalidArgument
from roundsman_testing.stack import Clock, Services, Stack
from tests.console.operators import Operator, operator_of
from tests.moto.orders import order
from tests.project import deployed_project
from workflows.order_fulfilment import order_fulfilment
from workflows.registry import WORKFLOWS

PAGE = b"a page that was scanned"


@pytest.fixture(scope="module")
def one_world(roundsman_services: Services, roundsman_clock: Clock) -> Iterator[Stack]:
    """One deployment with a bucket for all of these."""
    parameters = {"Engine.PayloadBucket": "true"}
    with deployed_project(roundsman_services, roundsman_clock, parameters) as world:
        yield world


@pytest.fixture
def operator(
    monkeypatch: pytest.MonkeyPatch, one_world: Stack, session_without_real_aws: None
) -> Operator:
    """Someone at the command line of a stack as deployed just now, without payloads. Its orders may
    have more fields than the example's."""
    monkeypatch.setitem(WORKFLOWS, order_fulfilment.name, replace(order_fulfilment, input=None))
    operator = operator_of(one_world, monkeypatch)
    operator.world.redeploy()
    for key in stored():
        boto3.client("s3").delete_object(Bucket=bucket(), Key=key)
    return operator


@pytest.fixture
def event(tmp_path: Path) -> Path:
    """A file with an order event, beside two files."""
    (tmp_path / "scan.pdf").write_bytes(PAGE)
    (tmp_path / "back.pdf").write_bytes(b"its back")
    path = tmp_path / "claim.json"
    path.write_text(json.dumps(order("ord-1")))
    return path


def bucket() -> str:
    return str(find_stack("roundsman").payload_bucket)


def stored() -> list[str]:
    found = boto3.client("s3").list_objects_v2(Bucket=bucket()).get("Contents", [])
    return [one["Key"] for one in found]


def asked(event: Path, *files: str) -> list[str]:
    given = [word for one in files for word in ("--payload", one.replace("@", f"{event.parent}/"))]
    return ["submit", str(event), *given]


def test_files_are_stored_for_the_order_which_has_the_references(
    operator: Operator, event: Path
) -> None:
    found = operator.reads(*asked(event, "scan=@scan.pdf", "back=@back.pdf"))
    assert found["outcome"] == "accepted"
    row = operator.world.store.order("ord-1")
    assert row is not None
    content = cast("dict[str, object]", row.content)
    assert content["customerId"] == "c-42"
    references = [cast("dict[str, object]", content[field]) for field in ("scan", "back")]
    assert sorted(stored()) == sorted(str(one["payload"]) for one in references)
    assert [one["bytes"] for one in references] == [len(PAGE), len(b"its back")]
    body = boto3.client("s3").get_object(Bucket=bucket(), Key=str(references[0]["payload"]))["Body"]
    assert body.read() == PAGE
    assert operator.reads(*asked(event, "scan=@scan.pdf", "back=@back.pdf"))["orderId"] == "ord-1"


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (["scan"], "'scan' names no field and file. Write it so: scan=scan.pdf."),
        (["=@scan.pdf"], "names no field and file"),
        (["scan=@scan.pdf", "scan=@back.pdf"], "scan has two files."),
        (["scan=@none.pdf"], "none.pdf cannot be read: No such file or directory."),
        (["scan=@"], "cannot be read: Is a directory."),
        (["customerId=@scan.pdf"], "claim.json has the field customerId already."),
    ],
)
def test_what_cannot_be_sent_is_refused_in_a_sentence_and_nothing_is_stored(
    operator: Operator, event: Path, files: list[str], said: str
) -> None:
    result = operator.types(*asked(event, *files))
    assert result.exit_code == USAGE
    assert said in result.stderr
    assert stored() == []
    assert operator.world.waiting("SubmissionQueue") == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "is no order event, which alone may have files."),
        ('{"orderId": "ord-1", "signal": {"name": "paid"}}', "is no order event"),
        ("{", "is not JSON"),
        ('{"customer": "c-7"}', "has no valid orderId"),
        ('{"orderId": "ord/1"}', "has no valid orderId"),
    ],
)
def test_what_is_no_order_with_an_id_takes_no_file(event: Path, text: str, said: str) -> None:
    stack = DeployedStack("shop", {}, {"PayloadBucketName": "shop-payloads"})
    with pytest.raises(InvalidArgument, match=said):
        with_files(stack, "claim.json", text, {"scan": event.parent / "scan.pdf"})


def test_a_file_may_have_fifty_megabytes_and_no_more(event: Path) -> None:
    stack = DeployedStack("shop", {}, {"PayloadBucketName": "shop-payloads"})
    scan, text = event.parent / "scan.pdf", event.read_text()
    for more in (0, 1):
        with scan.open("wb") as file:
            file.truncate(LARGEST_PAYLOAD + more)
        if more:
            with pytest.raises(InvalidArgument, match=r"50000001 bytes; .* at most 50000000"):
                with_files(stack, "claim.json", text, {"scan": scan})
        else:
            assert '"bytes":50000000' in with_files(stack, "claim.json", text, {"scan": scan}).body


def test_an_order_that_would_be_rejected_leaves_nothing_in_the_bucket(
    operator: Operator, event: Path
) -> None:
    event.write_text(json.dumps({**order("ord-1"), "processing": 1}))
    result = operator.types(*asked(event, "scan=@scan.pdf"))
    assert result.exit_code == FAILED
    assert "would be rejected" in result.stderr
    assert stored() == []


def test_a_file_that_changes_between_its_hash_and_its_upload_sends_no_order(
    operator: Operator, event: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload = Client.upload

    def changed(client: Client, order_id: str, file: BinaryIO) -> object:
        (event.parent / "scan.pdf").write_bytes(b"another page")
        return upload(client, order_id, file)

    monkeypatch.setattr(Client, "upload", changed)
    result = operator.types(*asked(event, "scan=@scan.pdf"))
    assert result.exit_code == USAGE
    assert "was changed meanwhile. No order was sent." in result.stderr
    assert operator.world.waiting("SubmissionQueue") == 0


def test_a_stack_without_a_bucket_says_which_parameter_makes_it(
    operator: Operator, event: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DeployedStack, "payload_bucket", None)
    result = operator.types(*asked(event, "scan=@scan.pdf"))
    assert result.exit_code == FAILED
    assert "set the parameter PayloadBucket of its engine to 'true'" in result.stderr
