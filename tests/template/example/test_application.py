"""What the example consists of, where the rules would allow an application more."""

from roundsman.aws.settings import AgentSettings
from roundsman_dev.check.reading import (
    ENGINE_FUNCTIONS,
    agents,
    functions,
    of_type,
    parameters,
    queues,
    variables,
)
from roundsman_dev.template import Document
from tests.project import SERVICE_URLS
from tests.support.template_reading import (
    ENGINE_TABLES,
    POWERTOOLS,
    tables,
    work_queues,
)
from tests.template.example.agents import AGENTS

QUEUES_OF_AN_AGENT = ("RequestQueue", "UrgentRequestQueue", "ReplyQueue")


def test_there_are_the_functions_queues_and_tables_of_the_engine_and_the_agents_only(
    document: Document,
) -> None:
    of_agents = {f"{agent}{queue}" for agent in AGENTS for queue in QUEUES_OF_AN_AGENT}
    assert set(work_queues(document)) == of_agents | {"SubmissionQueue", "SchedulerQueue"}
    assert len(queues(document)) == 2 * len(work_queues(document)) + 1  # dead letters, rejected
    expected = {*ENGINE_FUNCTIONS, *(f"{agent}Function" for agent in AGENTS)}
    assert set(functions(document)) == expected
    assert set(tables(document)) == set(ENGINE_TABLES)


def test_there_is_one_topic_one_key_and_a_policy_for_the_queues_of_each_stack(
    document: Document,
) -> None:
    for kind, name in (
        ("AWS::SNS::Topic", "AlertTopic"),
        ("AWS::SNS::TopicPolicy", "AlertTopicPolicy"),
        ("AWS::KMS::Key", "AlertKey"),
        ("AWS::Lambda::EventInvokeConfig", "SupervisorFunctionEventInvokeConfig"),
    ):
        assert list(of_type(document, kind)) == [name]
    policies = {f"{stack}QueuesAnswerOverTlsOnly" for stack in ("", *AGENTS)}
    policies |= {"SubmissionQueuePolicy", "SchedulerQueuePolicy"}
    policies |= {f"{agent}ReplyQueuePolicy" for agent in AGENTS}
    assert set(of_type(document, "AWS::SQS::QueuePolicy")) == policies


def test_a_guided_deployment_asks_for_the_services_and_for_nothing_else(
    document: Document,
) -> None:
    without_default = {n for n, p in parameters(document).items() if "Default" not in p}
    assert without_default == set(SERVICE_URLS)


def test_an_agent_gets_only_its_settings_and_the_address_of_its_service(
    document: Document,
) -> None:
    settings = {
        "CONTROL_TABLE",
        "REPLY_QUEUE_URL",
        "REJECTED_QUEUE_URL",
        "ALERT_TOPIC_ARN",
        "BREAKER_FAILURES",
        "BREAKER_RECOVERY_SECONDS",
        "CALLS_PER_SECOND",
        "TENANT_CALLS_PER_SECOND",
        "TRACING_SAMPLE_PERCENT",
        "PAYLOAD_BUCKET",
    }
    assert len(settings) == len(AgentSettings.__dataclass_fields__)
    for agent in agents(document):
        service = {"SERVICE_URL", "SERVICE_CA", "CREDENTIAL"}
        assert set(variables(document, agent.function)) == settings | POWERTOOLS | service
