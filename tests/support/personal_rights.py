"""Calls to AWS as IAM sees them, and whether policy documents allow them.

A call asks for one right for each resource that it names. A right is allowed by a statement whose
actions and resources match it, and whose condition holds.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, TypeAlias, cast
from unittest.mock import patch

import boto3
from botocore.client import BaseClient

from roundsman_testing.stack.resources import StackOnMoto
from tests.support.template_reading import PERSONAL_POLICIES

if TYPE_CHECKING:
    from mypy_boto3_iam import IAMClient

Parameters: TypeAlias = Mapping[str, object]
Statement: TypeAlias = Mapping[str, object]

VIEWER, OPERATOR, BULK, SUBMITTER, ANSWERER = PERSONAL_POLICIES
ACCOUNT = "us-east-1:123456789012"
ACTION_OF = {
    "SendMessageBatch": "SendMessage",
    "DeleteMessageBatch": "DeleteMessage",
    "ChangeMessageVisibilityBatch": "ChangeMessageVisibility",
    "Invoke": "InvokeFunction",
}
"""The IAM actions of operations that have no action with their own name."""
OF_A_TRANSACTION = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
}
OWN_ID = "${aws:userid}"
"""In a policy: the unique id of the principal that calls."""
NO_RESOURCE = {"ListEventSourceMappings", "GetMetricData"}
"""Operations for which IAM has no resource."""
PARTITION_KEYS = ("ControlId", "TaskId", "OrderID")


@dataclass(frozen=True)
class Right:
    """What one call asks of IAM."""

    action: str
    resource: str
    keys: frozenset[str] = frozenset()
    """The partition keys of the rows, `dynamodb:LeadingKeys`."""
    attributes: frozenset[str] = frozenset()
    """What is read of the rows, `dynamodb:Attributes`; empty for all."""

    def __str__(self) -> str:
        rows = f" of {', '.join(sorted(self.keys))}" if self.keys else ""
        return f"{self.action} on {self.resource}{rows}"


@dataclass
class RecordedRights:
    """The rights that the recorded calls need."""

    is_other: Callable[[], bool] = lambda: False
    """Whether the present call is not the user's: one of the stack's own functions."""
    rights: set[Right] = field(default_factory=set)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record every call of boto3 that is made meanwhile, but those of others."""
        make = BaseClient._make_api_call  # type: ignore[attr-defined]  # every call goes through it

        def recorded(client: BaseClient, operation: str, arguments: Parameters) -> object:
            if not self.is_other():
                service = client.meta.service_model.service_name
                self.rights |= set(rights_of(service, operation, arguments))
            return make(client, operation, arguments)

        with patch.object(BaseClient, "_make_api_call", recorded):
            yield


def rights_of(service: str, operation: str, arguments: Parameters) -> Iterator[Right]:
    """The rights that a call needs, as the Service Authorization Reference has them."""
    if service == "sts":
        return  # everybody may ask AWS who he is
    if operation == "TransactWriteItems":
        for item in cast("list[Mapping[str, Parameters]]", arguments["TransactItems"]):
            for kind, write in item.items():
                yield _of_a_table(OF_A_TRANSACTION[kind], write)
    elif operation == "BatchGetItem":
        for table, asked in cast("Mapping[str, Parameters]", arguments["RequestItems"]).items():
            for key in cast("list[Parameters]", asked["Keys"]):
                yield _of_a_table(operation, {"TableName": table, "Key": key})
    elif service == "dynamodb":
        yield _of_a_table(operation, arguments)
    else:
        yield Right(
            f"{service}:{ACTION_OF.get(operation, operation)}",
            "*" if operation in NO_RESOURCE else _arn(service, arguments),
        )


def _arn(service: str, arguments: Parameters) -> str:  # noqa: PLR0911  # each service
    match service, arguments:
        case "sqs", {"QueueUrl": str(url)}:
            return f"arn:aws:sqs:{ACCOUNT}:{url.rpartition('/')[2]}"
        case "sns", {"TopicArn": str(arn)}:
            return arn
        case "cloudwatch", _:
            return f"arn:aws:cloudwatch:{ACCOUNT}:alarm:*"
        case "lambda", {"FunctionName": str(name)}:
            alias = f":{arguments['Qualifier']}" if "Qualifier" in arguments else ""
            return f"arn:aws:lambda:{ACCOUNT}:function:{name}{alias}"
        case "lambda", {"Resource": str(arn)}:
            return arn
        case "cloudformation", {"StackName": str(name)}:
            return f"arn:aws:cloudformation:{ACCOUNT}:stack/{name}/0123"
        case "scheduler", {"Name": str(name)}:
            return f"arn:aws:scheduler:{ACCOUNT}:schedule/default/{name}"
        case _:
            raise ValueError(f"no resource is known for {service} with {sorted(arguments)}")


def _of_a_table(operation: str, arguments: Parameters) -> Right:
    index = f"/index/{arguments['IndexName']}" if "IndexName" in arguments else ""
    row = cast("Mapping[str, Mapping[str, str]]", arguments.get("Key") or arguments.get("Item"))
    return Right(
        f"dynamodb:{operation}",
        f"arn:aws:dynamodb:{ACCOUNT}:table/{arguments['TableName']}{index}",
        frozenset(row[name]["S"] for name in PARTITION_KEYS if name in (row or {})),
        frozenset(str(arguments.get("ProjectionExpression", "")).split(", ")) - {""},
    )


@dataclass(frozen=True)
class Grant:
    """One action on one resource that one statement allows; of one row if it names rows."""

    sid: str
    action: str
    resource: str
    row: str = ""

    def __str__(self) -> str:
        return f"{self.sid}: {self.action} on {self.resource} {self.row}".rstrip()


def grants(document: Parameters) -> Iterator[tuple[Grant, Statement]]:
    """All that a policy document allows, piece by piece."""
    for statement in cast("list[Statement]", document["Statement"]):
        assert statement["Effect"] == "Allow"
        for action in _listed(statement["Action"]):
            for resource in _listed(statement["Resource"]):
                for row in _rows(statement) or [""]:
                    yield Grant(str(statement["Sid"]), action, resource, row), statement


def allows(grant: Grant, statement: Statement, right: Right) -> bool:
    """Whether this piece of the policy allows the right, or one of its rows."""
    if grant.action != right.action or not fnmatchcase(right.resource, grant.resource):
        return False
    if grant.row and not any(fnmatchcase(key, grant.row) for key in right.keys):
        return False
    return _condition_holds(statement, right)


def is_allowed(documents: list[Parameters], right: Right) -> bool:
    """Whether one of the policy documents allows the right."""
    return any(
        allows(grant, statement, right)
        for document in documents
        for grant, statement in grants(document)
    )


def _condition_holds(statement: Statement, right: Right) -> bool:
    condition = cast("Mapping[str, Mapping[str, object]]", statement.get("Condition") or {})
    for operator, tests in condition.items():
        for name, wanted in tests.items():
            values = _listed(wanted)
            match operator.rpartition(":")[2], name:
                case (("StringLike" | "StringEquals"), "dynamodb:LeadingKeys"):
                    found = right.keys
                case "StringEquals", "dynamodb:Attributes":
                    found = right.attributes
                case "StringEqualsIfExists", "dynamodb:Select":
                    selected = "SPECIFIC_ATTRIBUTES" if right.attributes else "ALL_ATTRIBUTES"
                    found = frozenset({selected})
                case _:
                    return False  # a service that AWS calls for the caller: no recorded call
            like = operator.endswith("Like")
            if not all(
                any(fnmatchcase(one, each) if like else one == each for each in values)
                for one in found
            ):
                return False
    return True


def _rows(statement: Statement) -> list[str]:
    condition = cast("Mapping[str, Mapping[str, object]]", statement.get("Condition") or {})
    return [
        row
        for tests in condition.values()
        for row in _listed(tests.get("dynamodb:LeadingKeys", []))
    ]


def _listed(value: object) -> list[str]:
    return [value] if isinstance(value, str) else cast("list[str]", value)


def documents_of(stack: StackOnMoto) -> dict[str, Parameters]:
    """The policies for people as they are on moto for the present caller, by logical id."""
    iam: IAMClient = boto3.client("iam")
    own_id = boto3.client("sts").get_caller_identity()["UserId"]
    found = {}
    for name in PERSONAL_POLICIES:
        arn = stack.resources[name]
        version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
        got = iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]["Document"]
        # The type stubs also allow JSON; botocore returns the parsed object.
        found[name] = cast("Parameters", json.loads(json.dumps(got).replace(OWN_ID, own_id)))
    return found
