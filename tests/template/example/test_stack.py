"""The example's stack on moto: its functions are given what the rules read in its template."""

import pytest

from roundsman.aws.queue_urls import request_queue_url
from roundsman.aws.settings import (
    AgentSettings,
    SchedulerSettings,
    SubmissionSettings,
    SupervisorSettings,
)
from roundsman.model.priority import Priority
from roundsman_dev.check.interface import OUTPUTS
from roundsman_dev.template import Document
from roundsman_testing.stack.resources import StackOnMoto
from tests.support.template_reading import environment
from tests.template.example.agents import AGENTS


def test_the_environment_that_a_rule_reads_is_the_deployed_one(
    deployed_stack: StackOnMoto, document: Document
) -> None:
    """A rule has the logical id of a resource, a deployed function its address."""
    for function, deployed in deployed_stack.function_environments.items():
        read = dict(environment(document, function))
        named = {name: by_logical_ids(deployed_stack, value) for name, value in deployed.items()}
        # The first has no default, and IAM makes the others.
        given = {"SERVICE_URL", "SUBMISSION_ROLE_ID", "SUPERVISOR_ROLE_ID"}
        assert set(read) == set(named)
        assert {n: read[n] for n in set(read) - given} == {n: named[n] for n in set(read) - given}


def by_logical_ids(stack: StackOnMoto, value: str) -> str:
    """The value with the logical ids of resources in place of their addresses."""
    for name, made in sorted(stack.resources.items(), key=lambda item: -len(item[1])):
        if made:  # moto makes no layers
            value = value.replace(made, name)
    value = value.replace(f"Roundsman/{stack.name}", "Roundsman/AWS::StackName")
    return value.replace(f"{stack.name}-reply-", "AWS::StackName-reply-")


def test_requests_to_an_agent_go_to_the_queues_that_invoke_it(deployed_stack: StackOnMoto) -> None:
    """The scheduler computes their URLs from that of its own queue."""
    environment = deployed_stack.function_environments["SchedulerFunction"]
    invoked = {source.queue_url: source.function for source in deployed_stack.mappings}
    for agent in AGENTS:
        urls = {
            priority: request_queue_url(environment["SCHEDULER_QUEUE_URL"], agent.lower(), priority)
            for priority in Priority
        }
        assert {invoked[url] for url in urls.values()} == {f"{agent}Function"}
        assert len(set(urls.values())) == len(Priority) == 2


@pytest.mark.parametrize(
    ("function", "settings"),
    [
        ("SubmissionFunction", SubmissionSettings),
        ("SchedulerFunction", SchedulerSettings),
        ("SupervisorFunction", SupervisorSettings),
        *((f"{agent}Function", AgentSettings) for agent in AGENTS),
    ],
)
def test_the_settings_of_a_function_accept_its_deployed_environment(
    deployed_stack: StackOnMoto,
    function: str,
    settings: type[SubmissionSettings | SchedulerSettings | SupervisorSettings | AgentSettings],
) -> None:
    accepted = settings.from_env(deployed_stack.function_environments[function])
    assert accepted.control_table == deployed_stack.resources["ControlTable"]


def test_agents_call_the_addresses_that_were_given(deployed_stack: StackOnMoto) -> None:
    for agent in AGENTS:
        environment = deployed_stack.function_environments[f"{agent}Function"]
        assert environment["SERVICE_URL"] == f"https://{agent.lower()}.test"


def test_outputs_name_what_was_made(deployed_stack: StackOnMoto) -> None:
    outputs, made = deployed_stack.outputs, deployed_stack.resources
    assert all(outputs.values())
    for name, value in OUTPUTS.items():
        match value:
            case {"Ref": str(resource)}:
                assert outputs[name] == made[resource]
            case _:
                assert (name, outputs[name]) == ("ReplyQueuePrefix", "roundsman-reply-")
    for agent in AGENTS:
        assert outputs[f"{agent}FunctionName"] == made[f"{agent}Function"]
        for queue in ("RequestQueue", "UrgentRequestQueue", "ReplyQueue"):
            assert outputs[f"{agent}{queue}Url"] == made[f"{agent}{queue}"]
