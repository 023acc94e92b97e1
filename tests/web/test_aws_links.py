"""Links to the AWS console: of an order's logs and trace, and of queues, tables and functions."""

import json
from dataclasses import replace
from urllib.parse import unquote

import pytest

from roundsman_console.aws.links import AwsConsole, aws_console_of, resource_pages
from roundsman_console.aws.stack import DeployedStack
from tests.project import TEMPLATE
from tests.web.browsers import Browser

CONSOLE = AwsConsole("aws", "123456789012", "eu-central-1", "shop")
STACKS = TEMPLATE.with_name("stacks")
STACK = DeployedStack(
    "shop",
    {},
    {},
    arn="arn:aws:cloudformation:eu-central-1:123456789012:stack/shop/0a1b",
    endpoint="https://cloudformation.eu-central-1.amazonaws.com",
)


def query_of(link: str) -> tuple[dict[str, str], list[str]]:
    """What CloudWatch reads from a link: the parts of its query by name, and the log groups."""
    head, fragment = link.split("#")
    assert head == (
        "https://eu-central-1.console.aws.amazon.com/cloudwatch/home?region=eu-central-1"
    )
    place, _, detail = unquote(fragment.replace("$", "%")).partition("?queryDetail=")
    assert place == "logsV2:logs-insights"
    detail = unquote(detail)
    assert detail.startswith("~(")
    assert detail.endswith("))")
    rest, _, groups = detail[2:-2].partition("~source~(~'")
    names, texts = rest.split("~")[::2], rest.split("~")[1::2]
    parts = dict(zip(names, (unquote(one[1:].replace("*", "%")) for one in texts), strict=True))
    return parts, [unquote(one.replace("*", "%")) for one in groups.split("~'")]


def test_the_logs_of_an_order_are_those_of_its_agents_between_two_instants() -> None:
    parts, groups = query_of(
        CONSOLE.logs(["payment", "scheduler"], 1_000, 61_000, order="ord-1", step="charge")
    )
    assert groups == ["/aws/lambda/shop/payment", "/aws/lambda/shop/scheduler"]
    assert parts["start"] == "1970-01-01T00:00:01.000Z"
    assert parts["end"] == "1970-01-01T00:01:01.000Z"
    assert (parts["timeType"], parts["tz"]) == ("ABSOLUTE", "UTC")
    lines = parts["editorString"].split("\n| ")
    assert lines[1:] == ['filter task_id = "ord-1"', 'filter step = "charge"', "sort @timestamp"]


def test_only_the_errors_of_an_agent_can_be_asked_for() -> None:
    parts, _ = query_of(CONSOLE.logs(["mail"], 0, 1, errors=True))
    assert 'filter level in ["WARNING", "ERROR"]' in parts["editorString"]
    assert "task_id" not in parts["editorString"]


@pytest.mark.parametrize("order", ['a"b', "a\\", "~(a~'b)", "$3F%7E*2A", "ä 1", "' or 1 | x"])
def test_the_id_of_an_order_cannot_change_the_query(order: str) -> None:
    link = CONSOLE.logs(["mail"], 0, 1, order=order)
    assert link.isascii()
    assert not set(link) & set("\"'()~ <>")
    parts, groups = query_of(link)
    assert groups == ["/aws/lambda/shop/mail"]
    assert json.loads(parts["editorString"].split("\n| ")[1].partition("= ")[2]) == order


def test_the_names_of_log_groups_are_those_of_the_templates() -> None:
    agent = (STACKS / "agent.yaml").read_text(encoding="utf-8")
    engine = (STACKS / "engine.yaml").read_text(encoding="utf-8")
    assert f"LogGroupName: !Sub {CONSOLE.log_group('${Agent}')}\n".replace("shop", "${Stack}") in (
        agent
    )
    for name in ("submission", "scheduler", "supervisor"):
        line = f"LogGroupName: !Sub {CONSOLE.log_group(name)}\n"
        assert line.replace("shop", "${Stack}") in engine


def test_each_resource_has_its_page() -> None:
    host = "https://eu-central-1.console.aws.amazon.com"
    region = "home?region=eu-central-1"
    url = "https://sqs.eu-central-1.amazonaws.com/123456789012/shop-SchedulerQueue"
    assert CONSOLE.queue(url) == (
        f"{host}/sqs/v3/{region}#/queues/https%3A%2F%2Fsqs.eu-central-1.amazonaws.com"
        "%2F123456789012%2Fshop-SchedulerQueue"
    )
    assert CONSOLE.table("shop-T 1") == f"{host}/dynamodbv2/{region}#table?name=shop-T%201"
    assert CONSOLE.function("shop-f") == f"{host}/lambda/{region}#/functions/shop-f"
    assert CONSOLE.trace("1-5f-a") == f"{host}/cloudwatch/{region}#xray:traces/1-5f-a"


def test_a_stack_of_aws_has_a_console_of_its_partition_account_and_region() -> None:
    assert aws_console_of(STACK) == CONSOLE
    china = replace(STACK, arn=STACK.arn.replace(":aws:", ":aws-cn:"))
    found = aws_console_of(china)
    assert found is not None
    assert found.function("f").startswith("https://eu-central-1.console.amazonaws.cn/lambda/")


@pytest.mark.parametrize(
    "stack",
    [
        replace(STACK, endpoint="http://127.0.0.1:4510"),
        replace(STACK, arn="", endpoint=""),
        replace(STACK, arn=STACK.arn.replace(":aws:", ":aws-elsewhere:")),
    ],
)
def test_a_stack_that_is_not_in_aws_has_none(stack: DeployedStack) -> None:
    assert aws_console_of(stack) is None


def test_the_pages_of_functions_and_tables_have_the_names_of_the_template() -> None:
    outputs = {
        "PaymentFunctionName": "shop-payment",
        "TasksTableName": "shop-tasks",
        "AlertTopicArn": "arn",
    }
    assert resource_pages(replace(STACK, outputs=outputs)) == {
        "PaymentFunction": CONSOLE.function("shop-payment"),
        "TasksTable": CONSOLE.table("shop-tasks"),
    }
    local = replace(STACK, outputs=outputs, endpoint="http://127.0.0.1:4510")
    assert resource_pages(local) == {}


def test_pages_lead_to_each_queue_function_and_table_and_to_the_logs_of_agents(
    browser: Browser,
) -> None:
    stack = browser.inspector.stack
    aws = aws_console_of(stack)
    assert aws is not None
    agents, doctor = browser.html("/agents"), browser.html("/doctor")
    queues = [url for name, url in stack.outputs.items() if name.endswith("QueueUrl")]
    assert len(queues) == 15
    for url in queues:
        assert f'href="{aws.queue(url)}"' in agents
    assert agents.count(">Log in AWS<") == 4
    for name, address in resource_pages(stack).items():
        assert f'<a href="{address}" rel="noreferrer">{name}</a>' in doctor
    assert {"TasksTable", "SchedulerFunction", "PaymentFunction"} <= {*resource_pages(stack)}
    assert 'href="/agents/payment"' in agents
