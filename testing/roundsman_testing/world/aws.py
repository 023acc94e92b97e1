"""AWS as a world answers it: the boto3 clients of a process use its tables and queues.

    aws = WorldAws(world)
    with aws.in_use():
        stack = find_stack(NAME)  # and what else calls boto3

Each client is a real one of boto3, which checks the parameters of a call. No call leaves the
process: one that a world cannot answer raises a ClientError that says so. An alert that is
published is one of the world. A world has no CloudWatch, so no metric has a value and no alarm is
there.
"""

import io
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Final, TypeAlias, cast
from unittest.mock import patch

import boto3
import botocore.session
from botocore.exceptions import ClientError

from roundsman.definition.workflow import MOST_SEARCH_FIELDS
from roundsman.errors import InvalidMessage
from roundsman.model.instants import SECOND
from roundsman.submission.newest_plan import answer_question
from roundsman.wire.alert import Alert
from roundsman.wire.limits import rejection_text
from roundsman.wire.newest_plan import QUESTION, read_question
from roundsman_testing.memory import TABLES
from roundsman_testing.world.outbox import RejectedMessage
from roundsman_testing.world.processes import SHARDS
from roundsman_testing.world.queues import (
    COMMANDS,
    MOST_RECEIVES,
    OPERATOR_SENDER,
    ORDERS,
    REPLIES,
    REQUESTS,
    QueuedMessage,
)
from roundsman_testing.world.world import World

NAME: Final = "demo"
"""The name of the stack."""
REGION, ACCOUNT = "us-east-1", "000000000000"
NOWHERE = "http://127.0.0.1:9"
"""The endpoint of each client. Nothing listens there, and no call is sent."""
ENVIRONMENT: Final = {
    "AWS_ACCESS_KEY_ID": "nobody",
    "AWS_SECRET_ACCESS_KEY": "nobody",
    "AWS_DEFAULT_REGION": REGION,
    "AWS_REGION": REGION,
    "AWS_ENDPOINT_URL": NOWHERE,
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
}
REJECTED = "rejected"
_TEXT_LIMIT = 1_000_000

Asked: TypeAlias = Mapping[str, object]
Answer: TypeAlias = Mapping[str, object]
Place: TypeAlias = tuple[str, str]
"""A queue of the world, and the agent of it with the priority; see `QueuedMessage.to`."""


class WorldAws:
    """The AWS of one world. `lock` is held while a call is answered; hold it to use the world."""

    def __init__(self, world: World) -> None:
        self.lock = threading.RLock()
        self._world = world
        self._queues = {
            "SubmissionQueue": (ORDERS, ""),
            "SchedulerQueue": (COMMANDS, ""),
            "RejectedQueue": (REJECTED, ""),
        }
        for agent in world.versions.newest.agents:
            camel = "".join(part.capitalize() for part in agent.split("_"))
            self._queues[f"{camel}RequestQueue"] = (REQUESTS, f"{agent}/normal")
            self._queues[f"{camel}UrgentRequestQueue"] = (REQUESTS, f"{agent}/urgent")
            self._queues[f"{camel}ReplyQueue"] = (REPLIES, agent)
        self._began_at = world.now
        self._answers: Mapping[str, Callable[[Asked], Answer]] = {
            "cloudformation.DescribeStacks": self._stacks,
            "cloudformation.ListStackResources": lambda _: {"StackResourceSummaries": []},
            "cloudwatch.DescribeAlarms": lambda _: {"MetricAlarms": [], "CompositeAlarms": []},
            "cloudwatch.GetMetricData": _no_values,
            "cloudwatch.ListMetrics": lambda _: {"Metrics": []},
            "dynamodb.DescribeTable": lambda asked: {
                "Table": {"TableName": asked["TableName"], "TableStatus": "ACTIVE"}
            },
            "lambda.GetFunctionConcurrency": lambda _: {},
            "lambda.GetFunctionConfiguration": _function,
            "lambda.Invoke": self._invoked,
            "lambda.ListEventSourceMappings": self._mappings,
            "lambda.ListTags": lambda _: {"Tags": {}},
            "lambda.ListVersionsByFunction": lambda asked: {"Versions": [_function(asked)]},
            "sns.ListSubscriptionsByTopic": _subscriptions,
            "sns.Publish": self._published,
            "sqs.ChangeMessageVisibilityBatch": _shown_again,
            "sqs.DeleteMessage": self._deleted,
            "sqs.GetQueueAttributes": self._attributes,
            "sqs.ReceiveMessage": self._received,
            "sqs.SendMessage": self._sent,
            "sts.GetCallerIdentity": lambda _: {
                "Account": ACCOUNT,
                "Arn": f"arn:aws:iam::{ACCOUNT}:user/you",
                "UserId": OPERATOR_SENDER,
            },
        }

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Let every client of boto3 that is made inside the context belong to this AWS.

        The environment has no other AWS meanwhile.
        """
        kept = {name: text for name, text in os.environ.items() if not name.startswith("AWS_")}
        with (
            patch.dict(os.environ, {**kept, **ENVIRONMENT}, clear=True),
            patch.object(boto3, "DEFAULT_SESSION", None),
        ):
            core = botocore.session.get_session()
            core.register("before-parameter-build", _keep_parameters)
            # The stubs do not know that a handler of this event may return the answer.
            core.register("before-call", self._answer)  # type: ignore[arg-type]
            boto3.setup_default_session(botocore_session=core)
            yield

    def _answer(self, **event: object) -> tuple[SimpleNamespace, Mapping[str, object]]:
        """Answer a call in the place of AWS, as a handler of botocore's event `before-call`."""
        _, service, operation = str(event["event_name"]).split(".")
        asked = cast("Mapping[str, Asked]", event["context"]).get("asked", {})
        try:
            with self.lock:
                return SimpleNamespace(status_code=200, headers={}), self._find(service, operation)(
                    asked
                )
        except ClientError as error:
            refused = SimpleNamespace(status_code=400, headers={})
            return refused, cast("Mapping[str, object]", error.response)

    def _find(self, service: str, operation: str) -> Callable[[Asked], Answer]:
        found = self._answers.get(f"{service}.{operation}")
        if found is not None:
            return found
        method = "".join(f"_{one.lower()}" if one.isupper() else one for one in operation)[1:]
        if service == "dynamodb" and hasattr(self._world.processes.tables, method):
            call = getattr(self._world.processes.tables, method)
            return lambda asked: call(**asked) or {}
        raise _error("UnsupportedOperation", f"A world in memory has no {operation} of {service}")

    # --- the stack ------------------------------------------------------------------------------

    def _stacks(self, asked: Asked) -> Answer:
        if asked.get("StackName") != NAME:
            raise _error("ValidationError", f"Stack {asked.get('StackName')} does not exist")
        outputs = {f"{name}Url": _url(name) for name in self._queues}
        tables = (TABLES.tasks, TABLES.orders, TABLES.control, TABLES.history)
        outputs |= {f"{name}Name": name for name in tables}  # the outputs are named after them
        agents = self._world.versions.newest.agents
        functions = ["Submission", "Scheduler", "Supervisor"]
        functions += ["".join(part.capitalize() for part in agent.split("_")) for agent in agents]
        outputs |= {f"{name}FunctionName": f"{NAME}-{name}" for name in functions}
        outputs["AlertTopicArn"] = f"arn:aws:sns:{REGION}:{ACCOUNT}:{NAME}-alerts"
        outputs["ReplyQueuePrefix"] = _url("Replies-")
        interval = self._world.processes.interval // SECOND
        outputs["EngineSettings"] = (
            f"DueShards={SHARDS},SupervisorIntervalSeconds={interval},DeletionProtection=false,"
            f"SearchFields={MOST_SEARCH_FIELDS}"
        )
        listed = [{"OutputKey": key, "OutputValue": value} for key, value in outputs.items()]
        stack = {
            "StackName": NAME,
            "StackId": f"arn:aws:cloudformation:{REGION}:{ACCOUNT}:stack/{NAME}/in-memory",
            "StackStatus": "CREATE_COMPLETE",
            "CreationTime": datetime.fromtimestamp(self._began_at / SECOND, tz=UTC),
            "Outputs": listed,
        }
        return {"Stacks": [stack]}

    def _mappings(self, asked: Asked) -> Answer:
        """The mappings of a function, each of which a world carries out itself."""
        function = str(asked["FunctionName"]).partition(":")[0].removeprefix(f"{NAME}-")
        mappings = [
            {
                "UUID": name,
                "EventSourceArn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{NAME}-{name}",
                "State": "Enabled",
            }
            for name, place in self._queues.items()
            if _reader(name, place) == function
        ]
        return {"EventSourceMappings": mappings}

    def _invoked(self, asked: Asked) -> Answer:
        """Answer a question for the newest plan, as the submission function does."""
        try:
            event = json.loads(cast("str", asked["Payload"]))
            question = read_question(event[QUESTION])
        except (ValueError, LookupError, TypeError, InvalidMessage) as error:
            raise _error("InvalidRequestContentException", str(error)) from error
        found = answer_question(question, self._world.workflows, self._world.processes.plans)
        body = io.BytesIO(json.dumps(found.document()).encode())
        return {"StatusCode": 200, "Payload": body}

    # --- the queues -----------------------------------------------------------------------------

    def _place(self, asked: Asked) -> tuple[Place, bool]:
        """Return the queue that a call is about, and whether it is the dead letters of that one."""
        name = str(asked["QueueUrl"]).rpartition("/")[2].removeprefix(f"{NAME}-")
        plain = name.removesuffix("-dead")
        if plain not in self._queues:
            raise _error("QueueDoesNotExist", f"The queue {name} does not exist")
        return self._queues[plain], plain != name

    def _attributes(self, asked: Asked) -> Answer:
        (queue, to), dead = self._place(asked)
        found = {"ApproximateNumberOfMessagesDelayed": "0"}
        if dead or queue == REJECTED:
            waiting, hidden = len(self._letters(queue, to)), 0
        else:
            depth = self._world.queues.depth(queue, to)
            waiting, hidden = depth.visible, depth.in_flight
            name = str(asked["QueueUrl"]).rpartition("/")[2]
            policy = {
                "deadLetterTargetArn": f"arn:aws:sqs:{REGION}:{ACCOUNT}:{name}-dead",
                "maxReceiveCount": MOST_RECEIVES[queue],
            }
            found["RedrivePolicy"] = json.dumps(policy)
        found["ApproximateNumberOfMessages"] = str(waiting)
        found["ApproximateNumberOfMessagesNotVisible"] = str(hidden)
        wanted = cast("list[str]", asked.get("AttributeNames", []))
        shown = found if "All" in wanted else {n: found[n] for n in wanted if n in found}
        return {"Attributes": shown}

    def _letters(self, queue: str, to: str) -> Mapping[str, Mapping[str, object]]:
        """The messages of a dead-letter queue or of the RejectedQueue, by their ids."""
        if queue == REJECTED:
            return {_rejected_id(one): _rejected(one) for one in self._world.post.put_aside}
        dead = [mail for mail in self._world.queues.dead if (mail.queue, mail.to) == (queue, to)]
        return {mail.message_id: _dead(mail) for mail in dead}

    def _received(self, asked: Asked) -> Answer:
        """Receive messages that were set aside. Each call receives them from the first one."""
        (queue, to), dead = self._place(asked)
        if not dead and queue != REJECTED:
            raise _error("UnsupportedOperation", "A world reads this queue itself")
        most = cast("int", asked.get("MaxNumberOfMessages", 1))
        found = [
            {"MessageId": name, "ReceiptHandle": name, **letter}
            for name, letter in self._letters(queue, to).items()
        ]
        return {"Messages": found[:most]}

    def _deleted(self, asked: Asked) -> Answer:
        (queue, to), _ = self._place(asked)
        name = str(asked["ReceiptHandle"])
        if queue == REJECTED:
            aside = self._world.post.put_aside
            aside[:] = [one for one in aside if _rejected_id(one) != name]
        else:
            dead = self._world.queues.dead
            dead[:] = [
                mail for mail in dead if (mail.queue, mail.to, mail.message_id) != (queue, to, name)
            ]
        return {}

    def _sent(self, asked: Asked) -> Answer:
        (queue, to), _ = self._place(asked)
        delay = cast("int", asked.get("DelaySeconds", 0)) * SECOND
        body = str(asked["MessageBody"])
        self._world.queues.send(queue, body, delay=delay, to=to, sender=OPERATOR_SENDER)
        return {"MessageId": f"message-{self._world.queues.sent}"}

    def _published(self, asked: Asked) -> Answer:
        """Publish an alert of an operator, as the world publishes those of its functions."""
        versions = json.loads(str(asked["Message"]))
        attributes = cast("Mapping[str, Mapping[str, str]]", asked.get("MessageAttributes", {}))
        self._world.post.publish(
            Alert(
                str(asked["Subject"]),
                versions["default"],
                {name: value["StringValue"] for name, value in attributes.items()},
                text=versions.get("email", ""),
                sms=versions.get("sms", ""),
            )
        )
        return {"MessageId": f"alert-{len(self._world.post.alerts)}"}


def _keep_parameters(**event: object) -> None:
    """Keep the parameters of a call as they were given, for the answer."""
    cast("dict[str, object]", event["context"])["asked"] = event["params"]


def _url(queue: str) -> str:
    return f"{NOWHERE}/{ACCOUNT}/{NAME}-{queue}"


def _reader(name: str, place: Place) -> str:
    """The function that reads a queue."""
    queue = place[0]
    if queue == REQUESTS:
        return name.removesuffix("RequestQueue").removesuffix("Urgent")
    return {ORDERS: "Submission", COMMANDS: "Scheduler", REPLIES: "Scheduler"}.get(queue, "")


def _function(asked: Asked) -> Answer:
    name = str(asked["FunctionName"])
    return {
        "FunctionName": name,
        "FunctionArn": f"arn:aws:lambda:{REGION}:{ACCOUNT}:function:{name}:1",
        "Version": "1",
        "State": "Active",
        "LastUpdateStatus": "Successful",
    }


def _no_values(asked: Asked) -> Answer:
    queries = cast("list[Mapping[str, object]]", asked["MetricDataQueries"])
    empty = [{"Id": one["Id"], "Timestamps": [], "Values": []} for one in queries]
    return {"MetricDataResults": empty}


def _subscriptions(asked: Asked) -> Answer:
    """The alerts of a world are kept in its outbox: who made the world reads them there."""
    topic = str(asked["TopicArn"])
    one = {"Protocol": "application", "Endpoint": "outbox", "SubscriptionArn": f"{topic}:1"}
    return {"Subscriptions": [{**one, "TopicArn": topic}]}


def _shown_again(asked: Asked) -> Answer:
    entries = cast("list[Mapping[str, object]]", asked["Entries"])
    return {"Successful": [{"Id": one["Id"]} for one in entries], "Failed": []}


def _rejected_id(message: RejectedMessage) -> str:
    return f"rejected-{id(message):x}"


def _rejected(message: RejectedMessage) -> Mapping[str, object]:
    name = {ORDERS: "SubmissionQueue", COMMANDS: "SchedulerQueue"}.get(message.queue)
    queue = message.queue if name is None else f"{NAME}-{name}"
    body = rejection_text(queue, message.body, message.problems, _TEXT_LIMIT)
    return {"Body": body, "Attributes": {"SentTimestamp": "0"}}


def _dead(mail: QueuedMessage) -> Mapping[str, object]:
    system = {"SentTimestamp": str(mail.sent_at), "ApproximateReceiveCount": str(mail.receives)}
    return {"Body": mail.body, "Attributes": system}


def _error(code: str, message: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": message}}, "call")
