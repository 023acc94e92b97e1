"""What a deployment is asked and what it answers: parameters and outputs."""

import re

import pytest

from roundsman.testing.stack.resources import StackOnMoto
from roundsman.testing.stack.template import Document, mapping_of
from tests.project import SERVICE_URLS
from tests.template.reading import of_type, texts

CONTRACT = {
    "SubmissionQueueUrl",
    "SchedulerQueueUrl",
    "RejectedQueueUrl",
    "OrdersTableName",
    "TasksTableName",
    "ControlTableName",
    "AlertTopicArn",
    "ReplyQueuePrefix",
    "HistoryTableName",
    "SubmissionFunctionName",
    "SchedulerFunctionName",
    "SupervisorFunctionName",
}
PER_AGENT = ("RequestQueueUrl", "UrgentRequestQueueUrl", "ReplyQueueUrl", "FunctionName")
AGENTS = ("Inventory", "Payment", "Shipping", "Mail")


def parameters(document: Document) -> dict[str, Document]:
    return {
        name: mapping_of(parameter)
        for name, parameter in mapping_of(document["Parameters"]).items()
    }


def test_every_parameter_has_bounds_and_says_what_it_is_for(document: Document) -> None:
    for name, parameter in parameters(document).items():
        bounded = (
            "AllowedValues" in parameter
            or "AllowedPattern" in parameter
            or {"MinValue", "MaxValue"} <= set(parameter)
        )
        assert bounded, name
        assert str(parameter["Description"]).strip(), name
        assert str(parameter["ConstraintDescription"]).startswith("must be "), name


def test_a_guided_deployment_asks_for_the_services_and_for_nothing_else(
    document: Document,
) -> None:
    without_default = {n for n, p in parameters(document).items() if "Default" not in p}
    assert without_default == set(SERVICE_URLS)


def test_every_default_is_within_its_bounds(document: Document) -> None:
    for name, parameter in parameters(document).items():
        match parameter:
            case {"Default": default, "AllowedValues": list(allowed)}:
                assert default in allowed, name
            case {"Default": int(default), "MinValue": int(low), "MaxValue": int(high)}:
                assert low <= default <= high, name
            case {"Default": str(default), "AllowedPattern": str(pattern)}:
                assert re.fullmatch(pattern, default), name
            case _:
                assert "Default" not in parameter, name


@pytest.mark.parametrize("name", SERVICE_URLS)
@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://inventory.example.com", True),
        ("http://127.0.0.1:8080", True),
        ("https://example.com/services/v1", True),
        ("https://example.com/", False),
        ("ftp://example.com", False),
        ("example.com", False),
        ("", False),
        ("https://example.com?key=1", False),
        ("https://example.com/a b", False),
    ],
)
def test_a_services_address_is_a_base_that_paths_can_be_added_to(
    document: Document, name: str, url: str, allowed: bool
) -> None:
    pattern = str(parameters(document)[name]["AllowedPattern"])
    assert bool(re.fullmatch(pattern, url)) is allowed


def test_every_parameter_is_in_a_group_of_the_form_that_asks_for_it(document: Document) -> None:
    interface = mapping_of(mapping_of(document["Metadata"])["AWS::CloudFormation::Interface"])
    groups = interface["ParameterGroups"]
    assert isinstance(groups, list)
    grouped = [name for group in groups for name in texts(mapping_of(group)["Parameters"])]
    assert sorted(grouped) == sorted(parameters(document))


def test_mappings_know_every_value_that_their_parameters_allow(document: Document) -> None:
    looked_up = {
        "SupervisorIntervalSeconds": "SupervisorRounds",
        "SubmissionConcurrency": "Instances",
        "SchedulerConcurrency": "Instances",
        **{f"{agent}Concurrency": "Instances" for agent in AGENTS},
        "AgentUrgentConcurrency": "Instances",
    }
    for parameter, table in looked_up.items():
        allowed = parameters(document)[parameter]["AllowedValues"]
        assert isinstance(allowed, list)
        assert [str(value) for value in allowed] == list(
            mapping_of(mapping_of(document["Mappings"])[table])
        )


def test_the_mapping_of_instances_gives_each_number_as_itself(document: Document) -> None:
    for text, row in mapping_of(mapping_of(document["Mappings"])["Instances"]).items():
        assert mapping_of(row)["Most"] == int(text)


def test_an_address_for_alerts_is_optional(document: Document) -> None:
    resource = mapping_of(mapping_of(document["Resources"])["AlertEmailSubscription"])
    assert resource["Condition"] == "HasAlertEmail"
    assert parameters(document)["AlertEmail"]["Default"] == ""
    assert of_type(document, "AWS::SNS::Subscription")["AlertEmailSubscription"]["Protocol"] == (
        "email"
    )


def test_the_outputs_are_those_that_tools_rely_on(deployed_stack: StackOnMoto) -> None:
    agents = {agent + output for agent in AGENTS for output in PER_AGENT}
    assert set(deployed_stack.outputs) == CONTRACT | agents
    assert all(deployed_stack.outputs.values())


def test_outputs_name_what_was_made(deployed_stack: StackOnMoto) -> None:
    outputs, resources = deployed_stack.outputs, deployed_stack.resources
    for table in ("OrdersTable", "TasksTable", "ControlTable", "HistoryTable"):
        assert outputs[f"{table}Name"] == resources[table]
    for queue in ("SubmissionQueue", "SchedulerQueue", "RejectedQueue"):
        assert outputs[f"{queue}Url"] == resources[queue]
    assert outputs["AlertTopicArn"] == resources["AlertTopic"]
    assert outputs["ReplyQueuePrefix"] == "roundsman-reply-"
