"""Which page of the AWS console shows it? Logs, traces, queues, tables and functions. Pure.

No request is made, so a link may lead to a page that the person's rights do not open. A local AWS
has no such pages: `aws_console_of` returns None for it, and no link is shown.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote

from roundsman.model.instants import iso
from roundsman_console.aws.log_query import log_group
from roundsman_console.aws.stack import DeployedStack, is_local
from roundsman_console.aws.versions import functions_of

HOSTS = {
    "aws": "console.aws.amazon.com",
    "aws-cn": "console.amazonaws.cn",
    "aws-us-gov": "console.amazonaws-us-gov.com",
}
"""The host of the AWS console, by the partition that an ARN begins with."""

_LINES = "fields @timestamp, @log, level, message, step, attempt, event, outcome, state, reason"


@dataclass(frozen=True, slots=True)
class AwsConsole:
    """The AWS console of the account and region of one stack."""

    partition: str
    account: str
    region: str
    stack: str
    """The name of the stack."""

    def logs(
        self,
        functions: Iterable[str],
        since: int,
        until: int,
        *,
        order: str | None = None,
        step: str | None = None,
        errors: bool = False,
    ) -> str:
        """Return CloudWatch Logs Insights with a query over the logs of some functions.

        `functions` are the names of agents, or `submission`, `scheduler` and `supervisor`. The
        query finds the lines from `since` to `until` (epoch ms), of this order and this step if
        they are given, and with `errors` only those of warnings and errors.
        """
        wanted = [
            *([f"filter task_id = {_quoted(order)}"] if order is not None else []),
            *([f"filter step = {_quoted(step)}"] if step is not None else []),
            *(['filter level in ["WARNING", "ERROR"]'] if errors else []),
        ]
        detail = {
            "end": iso(until),
            "start": iso(since),
            "timeType": "ABSOLUTE",
            "tz": "UTC",
            "editorString": "\n| ".join([_LINES, *wanted, "sort @timestamp"]),
            "source": [self.log_group(name) for name in functions],
        }
        # The address after # is encoded as a whole once more, with $ for %.
        fragment = _percent(f"?queryDetail={_percent(_detail(detail))}").replace("%", "$")
        return f"{self._home('cloudwatch')}#logsV2:logs-insights{fragment}"

    def log_group(self, function: str) -> str:
        """Return the name of the log group of an agent, or of `submission`, `scheduler` and so on.

        The group has this name in stacks/agent.yaml and stacks/engine.yaml.
        """
        return log_group(self.stack, function)

    def trace(self, trace_id: str) -> str:
        """Return the page of a trace in X-Ray. `DeployedStack.trace_of` returns an order's id."""
        return f"{self._home('cloudwatch')}#xray:traces/{_percent(trace_id)}"

    def queue(self, url: str) -> str:
        """Return the page of the queue with this URL."""
        return f"https://{self._host}/sqs/v3/home?region={self.region}#/queues/{_percent(url)}"

    def table(self, name: str) -> str:
        """Return the page of a DynamoDB table."""
        return f"{self._home('dynamodbv2')}#table?name={_percent(name)}"

    def function(self, name: str) -> str:
        """Return the page of a Lambda function."""
        return f"{self._home('lambda')}#/functions/{_percent(name)}"

    @property
    def _host(self) -> str:
        return f"{self.region}.{HOSTS[self.partition]}"

    def _home(self, service: str) -> str:
        return f"https://{self._host}/{service}/home?region={self.region}"


def aws_console_of(stack: DeployedStack) -> AwsConsole | None:
    """Return the AWS console of a stack; None for a stack on a local AWS or not found in AWS."""
    _, partition, _, region, account, *_ = [*stack.arn.split(":"), *[""] * 5]
    if partition not in HOSTS or not stack.endpoint or is_local(stack.endpoint):
        return None
    return AwsConsole(partition, account, region, stack.name)


def resource_pages(stack: DeployedStack) -> Mapping[str, str]:
    """Return the pages of the functions and tables of a stack, by their names in the template.

    It is empty for a stack without an AWS console.
    """
    aws = aws_console_of(stack)
    if aws is None:
        return {}
    functions = functions_of(stack.outputs).items()
    tables = {
        output.removesuffix("Name"): physical
        for output, physical in sorted(stack.outputs.items())
        if output.endswith("TableName")
    }
    return {
        **{f"{name}Function": aws.function(physical) for name, physical in functions},
        **{name: aws.table(physical) for name, physical in tables.items()},
    }


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _percent(text: str) -> str:
    return quote(text, safe="-._*").replace("~", "%7E")


def _detail(value: object) -> str:
    """Return a value as CloudWatch writes it in an address: `~(name~'text~more~(~'one~'two))`."""
    if isinstance(value, dict):
        return "~(" + "~".join(f"{name}{_detail(each)}" for name, each in value.items()) + ")"
    if isinstance(value, list):
        return "~(" + "".join(_detail(each) for each in value) + ")"
    return "~'" + quote(str(value), safe="-._").replace("~", "%7e").replace("%", "*")
