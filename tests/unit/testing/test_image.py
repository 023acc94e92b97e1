"""A deployment that is a copy of the first one of its stack."""

import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from moto import mock_aws
from moto.sqs.models import sqs_backends

from roundsman_dev.template import Template, TemplateProblem, part
from roundsman_testing.remote_services import RemoteServices
from roundsman_testing.stack import Clock, Services, Stack, deployment
from roundsman_testing.stack.image import MotoImage, moto_is_new
from roundsman_testing.stack.resources import create_stack_on_moto
from tests.moto.orders import ALL_EFFECTS, order
from tests.project import TEMPLATE, deployed_project

CLOCK = Clock()


@pytest.fixture(scope="module")
def services() -> Iterator[RemoteServices]:
    with RemoteServices(clock=CLOCK.at_the_services) as services:
        yield services


@pytest.fixture
def created(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The stacks that CloudFormation made, none of which had been made before."""
    made: list[str] = []
    create = create_stack_on_moto

    def counted(*args: object, **options: object) -> object:
        made.append("stack")
        return create(*args, **options)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(deployment, "create_stack_on_moto", counted)
    monkeypatch.setattr(deployment, "_images", {})
    return made


def resources_of(stack: Stack) -> dict[str, object]:
    """What each service lists of a stack."""
    cloudformation = boto3.client("cloudformation")
    pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName="roundsman")
    return {
        "resources": [row for page in pages for row in page["StackResourceSummaries"]],
        "stacks": cloudformation.describe_stacks()["Stacks"],
        "queues": {
            url: stack.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
            for url in stack.sqs.list_queues()["QueueUrls"]
        },
        "tables": [
            stack.dynamodb.describe_table(TableName=name)["Table"]
            for name in stack.dynamodb.list_tables()["TableNames"]
        ],
        "topics": boto3.client("sns").list_topics()["Topics"],
        "keys": boto3.client("kms").list_keys()["Keys"],
        "functions": boto3.client("lambda").list_functions()["Functions"],
        "aliases": [
            boto3.client("lambda").list_aliases(FunctionName=stack.stack.resources[name])["Aliases"]
            for name in stack.stack.functions
        ],
        "mappings": boto3.client("lambda").list_event_source_mappings()["EventSourceMappings"],
        "roles": boto3.client("iam").list_roles()["Roles"],
        "described": stack.stack,
    }


@pytest.mark.exhaustive
def test_a_copy_has_all_that_the_first_deployment_had_and_runs_as_it_did(
    services: Services, created: list[str]
) -> None:
    with deployed_project(services, CLOCK) as first:
        before = resources_of(first)
    with deployed_project(services, CLOCK) as copy:
        assert created == ["stack"], "CloudFormation made one"
        assert resources_of(copy) == before
        copy.submit(order("ord-1"))
        copy.run()
        assert copy.effects("ord-1") == ALL_EFFECTS


@pytest.mark.exhaustive
def test_what_a_test_changed_is_not_in_the_next_copy(
    services: Services, created: list[str]
) -> None:
    with deployed_project(services, CLOCK) as first:
        before = resources_of(first)
    for _ in range(2):
        with deployed_project(services, CLOCK) as copy:
            assert resources_of(copy) == before
            copy.alert_queue()
            copy.submit(order("ord-1"))
            copy.run()
            copy.sqs.delete_queue(QueueUrl=copy.url("SchedulerQueue"))


@pytest.mark.exhaustive
def test_another_parameter_is_another_stack(services: Services, created: list[str]) -> None:
    for shards in ("1", "2"):
        with deployed_project(services, CLOCK, {"Engine.DueShards": shards}) as stack:
            environment = stack.stack.function_environments["SupervisorFunction"]
            assert environment["DUE_SHARDS"] == shards
    assert created == ["stack", "stack"]


def delete_policies() -> None:
    iam = boto3.client("iam")
    for policy in iam.list_policies(Scope="Local")["Policies"]:
        iam.delete_policy(PolicyArn=policy["Arn"])


@pytest.mark.exhaustive
def test_no_image_is_made_of_or_put_beside_the_resources_of_another(
    services: Services, created: list[str]
) -> None:
    with mock_aws():
        boto3.client("sqs", "us-east-1").create_queue(QueueName="another")
        assert not moto_is_new()
        for _ in range(2):
            with deployed_project(services, CLOCK) as stack:
                boto3.client("cloudformation").delete_stack(StackName=stack.stack.name)
                delete_policies()  # moto leaves them
                boto3.client("s3").delete_object(Bucket="roundsman-test-code", Key="function.zip")
    assert len(created) == 2


@pytest.mark.exhaustive
def test_where_moto_has_what_cannot_be_copied_each_deployment_is_made(
    services: Services, created: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with mock_aws():
        boto3.client("sqs", "us-east-1").create_queue(QueueName="locked")
        vars(sqs_backends["123456789012"]["us-east-1"])["held"] = threading.Lock()
        assert MotoImage.taken() is None
    monkeypatch.setattr(MotoImage, "taken", lambda: None)
    for _ in range(2):
        with deployed_project(services, CLOCK) as stack:
            stack.submit(order("ord-1"))
    assert len(created) == 2


def test_a_template_is_read_again_if_one_of_its_files_has_changed(tmp_path: Path) -> None:
    shutil.copy(TEMPLATE, tmp_path)
    shutil.copytree(TEMPLATE.parent / "stacks", tmp_path / "stacks")
    path, engine = tmp_path / TEMPLATE.name, tmp_path / "stacks" / "engine.yaml"
    before = Template.kept(path)
    assert Template.kept(path) is before
    assert Template.kept(path, {"Engine.DueShards": "1"}) is not before
    engine.write_text(engine.read_text().replace("SchedulerFunction:", "OtherFunction:"))
    after = Template.kept(path)
    assert "OtherFunction" in part(after.document, "Resources")
    engine.unlink()
    with pytest.raises(TemplateProblem):
        Template.kept(path)
