"""Every call that a role of the stack could try, and whether the emulator lets it.

A call is made so that it does nothing where it is allowed: its write's condition never holds, its
message is one that no queue takes. So a refusal is `AccessDenied`, and all else is a right.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias, cast

import boto3
from botocore import xform_name
from botocore.client import BaseClient
from botocore.exceptions import ClientError

from roundsman_console.aws.resources import stack_resources
from roundsman_dev.template import Document
from tests.support.template_reading import granted, keys_granted

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_iam import IAMClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sts import STSClient

Parameters: TypeAlias = Mapping[str, object]

AGENTS = ("Inventory", "Payment", "Shipping", "Mail")
FUNCTIONS = ("Submission", "Scheduler", "Supervisor", *AGENTS)
KEYS = {
    "OrdersTable": ("OrderID",),
    "TasksTable": ("TaskId",),
    "HistoryTable": ("TaskId", "Seq"),
    "ControlTable": ("ControlId",),
}
ACCOUNT = "the account"
REPLIES = "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:${AWS::StackName}-reply-*"
STRANGERS = "a queue of somebody else"
REFUSALS = {"AccessDenied", "AccessDeniedException", "AuthorizationError"}


@dataclass(frozen=True)
class Call:
    """One call: the action that it takes, on what (by logical id), and how it is made."""

    service: str
    action: str
    target: str
    parameters: Parameters = field(compare=False)

    def __str__(self) -> str:
        return f"{self.service}:{self.action} on {self.target}"


@dataclass(frozen=True)
class Deployed:
    """The stack's resources by logical id, and the credentials of its roles."""

    resources: Mapping[str, str]
    document: Document

    def session(self, role: str) -> boto3.Session:
        """A session with the rights of a role, as its function has one."""
        iam: IAMClient = boto3.client("iam")
        sts: STSClient = boto3.client("sts")
        arn = iam.get_role(RoleName=self.resources[role])["Role"]["Arn"]
        given = sts.assume_role(RoleArn=arn, RoleSessionName="rights")["Credentials"]
        return boto3.Session(
            aws_access_key_id=given["AccessKeyId"],
            aws_secret_access_key=given["SecretAccessKey"],
            aws_session_token=given["SessionToken"],
        )

    def calls(self, role: str) -> Iterator[Call]:
        """All that this role is tried with; what would destroy something comes last."""
        yield from _of_tables(self.resources, self.document, role)
        yield from _of_queues(self.resources)
        yield from _of_the_rest(self.resources, role)
        yield from _of_the_account()
        yield from _of_ends(self.resources)

    def is_granted(self, role: str, call: Call) -> bool:
        """Whether template.yaml lets this role make this call."""
        if call.service == "kms":
            return False  # only ever through SNS, by the statement's condition
        return call.action in granted(self.document, role, call.service).get(call.target, set())


def read_deployed(stack: str, document: Document) -> Deployed:
    """The stack as deployed, with two queues that are not its own."""
    cloudformation: CloudFormationClient = boto3.client("cloudformation")
    found = {each.name: each.physical_id for each in stack_resources(cloudformation, stack)}
    sqs: SQSClient = boto3.client("sqs")
    found[REPLIES] = sqs.create_queue(QueueName=f"{stack}-reply-rights")["QueueUrl"]
    found[STRANGERS] = sqs.create_queue(QueueName=f"{stack}-rights")["QueueUrl"]
    return Deployed(found, document)


class Caller:
    """Makes calls with one role's credentials."""

    def __init__(self, session: boto3.Session) -> None:
        self._make = cast("Callable[[str], BaseClient]", session.client)
        self._clients: dict[str, BaseClient] = {}

    def is_allowed(self, call: Call) -> bool:
        """Whether it is not refused; whatever else comes of it, it was allowed."""
        if call.service not in self._clients:
            self._clients[call.service] = self._make(call.service)
        name = {"InvokeFunction": "Invoke", "ListAllMyBuckets": "ListBuckets"}.get(call.action)
        method = getattr(self._clients[call.service], xform_name(name or call.action))
        try:
            method(**call.parameters)
        except ClientError as error:
            return error.response["Error"]["Code"] not in REFUSALS
        return True


def _of_tables(resources: Mapping[str, str], document: Document, role: str) -> Iterator[Call]:
    never = {"ConditionExpression": "attribute_exists(NeverThere)"}
    for table, names in KEYS.items():
        where = {"TableName": resources[table]}

        def key(action: str, table: str = table, names: tuple[str, ...] = names) -> Parameters:
            # Of a row that the role may touch, where it may touch only some.
            rows = keys_granted(document, role, action, table)
            values = {"S": min(rows) if rows else "rights"}, {"N": "1"}
            return dict(zip(names, values, strict=False))

        def call(action: str, parameters: Parameters, at: str = table) -> Call:
            return Call("dynamodb", action, at, parameters)

        rows = {"KeyConditionExpression": f"{names[0]} = :v", **_value("rights")}
        yield call("GetItem", {**where, "Key": key("GetItem")})
        yield call("PutItem", {**where, **never, "Item": key("PutItem")})
        setting = {"UpdateExpression": "SET Tried = :v", **_value("now")}
        yield call("UpdateItem", {**where, **never, **setting, "Key": key("UpdateItem")})
        yield call("DeleteItem", {**where, **never, "Key": key("DeleteItem")})
        yield call("Query", {**where, **rows})
        yield call("Scan", {**where, "Limit": 1})
        keys = {resources[table]: {"Keys": [key("BatchGetItem")]}}
        yield call("BatchGetItem", {"RequestItems": keys})
        write = {"DeleteRequest": {"Key": key("BatchWriteItem")}}
        yield call("BatchWriteItem", {"RequestItems": {resources[table]: [write]}})
        yield call("DescribeTable", where)
    due = {"TableName": resources["TasksTable"], "IndexName": "due"}
    lane = {"KeyConditionExpression": "Lane = :v", **_value("rights")}
    yield Call("dynamodb", "Query", "TasksTable/index/due", {**due, **lane})
    yield Call("dynamodb", "Scan", "TasksTable/index/due", {**due, "Limit": 1})
    failures = {"TableName": resources["TasksTable"], "IndexName": "failures"}
    group = {"KeyConditionExpression": "FailureGroup = :v", **_value("rights")}
    yield Call("dynamodb", "Query", "TasksTable/index/failures", {**failures, **group})
    yield Call("dynamodb", "Scan", "TasksTable/index/failures", {**failures, "Limit": 1})
    parked = {"TableName": resources["TasksTable"], "IndexName": "parked"}
    what = {"KeyConditionExpression": "ParkedFor = :v", **_value("rights")}
    yield Call("dynamodb", "Query", "TasksTable/index/parked", {**parked, **what})
    yield Call("dynamodb", "Scan", "TasksTable/index/parked", {**parked, "Limit": 1})


def _value(text: str) -> Parameters:
    return {"ExpressionAttributeValues": {":v": {"S": text}}}


def _queues(resources: Mapping[str, str]) -> Iterator[tuple[str, Parameters]]:
    for name, url in resources.items():
        if name.endswith("Queue") or name in (REPLIES, STRANGERS):
            yield name, {"QueueUrl": url}


def _of_queues(resources: Mapping[str, str]) -> Iterator[Call]:
    handle = {"ReceiptHandle": "none"}
    for name, url in _queues(resources):
        nothing = {"MessageBody": "\0"}  # which no queue takes
        yield Call("sqs", "SendMessage", name, {**url, **nothing})
        yield Call("sqs", "ReceiveMessage", name, {**url, "MaxNumberOfMessages": 11})
        yield Call("sqs", "DeleteMessage", name, {**url, **handle})
        longer = {**url, **handle, "VisibilityTimeout": 1}
        yield Call("sqs", "ChangeMessageVisibility", name, longer)
        yield Call("sqs", "GetQueueAttributes", name, {**url, "AttributeNames": ["QueueArn"]})


def _of_the_rest(resources: Mapping[str, str], role: str) -> Iterator[Call]:
    topic = {"TopicArn": resources["AlertTopic"]}
    yield Call("sns", "Publish", "AlertTopic", {**topic, "Message": "rights"})
    yield Call("sns", "GetTopicAttributes", "AlertTopic", topic)
    key = {"KeyId": resources["AlertKey"]}
    yield Call("kms", "GenerateDataKey", "AlertKey", {**key, "KeySpec": "AES_256"})
    yield Call("kms", "Decrypt", "AlertKey", {**key, "CiphertextBlob": b"none"})
    for function in FUNCTIONS:
        what = {"FunctionName": resources[f"{function}Function"]}
        dry = {**what, "InvocationType": "DryRun"}
        yield Call("lambda", "InvokeFunction", f"{function}Function", dry)
        yield Call("lambda", "GetFunction", f"{function}Function", what)
        # Its own log is the one thing that the emulator refuses and AWS allows: it compares a log
        # group's ARN with one that ends in `:*`, and writes the functions' logs by itself.
        if role != f"{function}Role":
            group = {"logGroupName": resources[f"{function}Logs"]}
            stream = {**group, "logStreamName": "rights"}
            yield Call("logs", "CreateLogStream", f"{function}Logs", stream)
            line = {**stream, "logEvents": [{"timestamp": 1, "message": "rights"}]}
            yield Call("logs", "PutLogEvents", f"{function}Logs", line)
            yield Call("logs", "FilterLogEvents", f"{function}Logs", group)
    for other in FUNCTIONS:
        as_it = {"RoleArn": f"arn:aws:iam::000000000000:role/{resources[f'{other}Role']}"}
        yield Call("sts", "AssumeRole", f"{other}Role", {**as_it, "RoleSessionName": "rights"})


def _of_the_account() -> Iterator[Call]:
    anybody = json.dumps({"Version": "2012-10-17", "Statement": []})
    policy = {"RoleName": "rights", "PolicyName": "rights", "PolicyDocument": anybody}
    for service, action, parameters in (
        ("sqs", "CreateQueue", {"QueueName": "rights"}),
        ("sqs", "ListQueues", {}),
        ("sns", "CreateTopic", {"Name": "rights"}),
        ("s3", "ListAllMyBuckets", {}),
        ("dynamodb", "ListTables", {}),
        ("lambda", "ListFunctions", {}),
        ("iam", "ListRoles", {}),
        ("iam", "PutRolePolicy", policy),
        ("secretsmanager", "ListSecrets", {}),
        ("ssm", "GetParameter", {"Name": "rights"}),
        ("cloudformation", "DescribeStacks", {}),
    ):
        yield Call(service, action, ACCOUNT, cast("Parameters", parameters))


def _of_ends(resources: Mapping[str, str]) -> Iterator[Call]:
    """What would change or destroy something, so that whatever is tried before is still there."""
    for name, url in _queues(resources):
        attributes = {"Attributes": {"DelaySeconds": "0"}}
        yield Call("sqs", "SetQueueAttributes", name, {**url, **attributes})
        yield Call("sqs", "PurgeQueue", name, url)
        yield Call("sqs", "DeleteQueue", name, url)
    yield Call("sns", "DeleteTopic", "AlertTopic", {"TopicArn": resources["AlertTopic"]})
    for function in FUNCTIONS:
        what = {"FunctionName": resources[f"{function}Function"]}
        yield Call("lambda", "DeleteFunction", f"{function}Function", what)
    for table in KEYS:
        where = {"TableName": resources[table]}
        ttl = {"TimeToLiveSpecification": {"Enabled": False, "AttributeName": "ExpiresAt"}}
        yield Call("dynamodb", "UpdateTimeToLive", table, {**where, **ttl})
        yield Call("dynamodb", "DeleteTable", table, where)
