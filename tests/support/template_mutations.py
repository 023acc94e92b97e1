"""Changes of the template of `other_application`: faults, each with its rule, and additions.

An addition is what the rules allow an application to have besides the engine and its agents.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypeAlias

from roundsman import Agent, Step
from roundsman.testing.rules import (
    Application,
    Rule,
    alarms,
    code,
    dashboards,
    encryption,
    functions,
    interface,
    limits,
    permissions,
    queues,
    schedules,
    tables,
    versions,
)
from roundsman.testing.rules.reading import allowed_to, items
from roundsman.testing.stack.template import Document, Json
from tests.support.other_application import present, thank

Change: TypeAlias = Callable[[Application], Application]
"""A change may alter the application that it is given; it returns the changed one."""


@dataclass(frozen=True)
class Mutation:
    """A fault, and what the rule's sentences must name."""

    rule: Rule
    fault: str
    change: Change
    named: str


def changed(application: Application, change: Change) -> Application:
    """A copy of the application with this change."""
    return change(replace(application, template=deepcopy(application.template)))


def _parent(document: Document, path: str) -> tuple[Document, str]:
    """The mapping that has the last key of a path such as `Resources/SchedulerQueue`."""
    *above, last = path.split("/")
    found: Json = document
    for key in above:
        found = found[int(key)] if isinstance(found, list) else _mapping(found)[key]
    return _mapping(found), last


def _mapping(value: Json) -> Document:
    assert isinstance(value, dict)
    return value


def put(path: str, value: Json) -> Change:
    """Set a value of the translated template."""

    def change(application: Application) -> Application:
        mapping, key = _parent(application.template, path)
        assert mapping.get(key) != value, f"{path} is {value} already"
        mapping[key] = value
        return application

    return change


def drop(path: str) -> Change:
    """Remove a value of the translated template."""

    def change(application: Application) -> Application:
        mapping, key = _parent(application.template, path)
        del mapping[key]
        return application

    return change


def remove(path: str, value: Json) -> Change:
    """Remove an item from a list of the translated template."""

    def change(application: Application) -> Application:
        mapping, key = _parent(application.template, path)
        found = mapping[key]
        assert isinstance(found, list)
        found.remove(value)
        return application

    return change


def allow(role: str, action: str, resource: Json, sid: str = "MayDoMore") -> Change:
    """Add a statement that allows an action to a role."""

    def change(application: Application) -> Application:
        statement: Document = {
            "Sid": sid,
            "Effect": "Allow",
            "Action": action,
            "Resource": resource,
        }
        policies = _parent(application.template, f"Resources/{role}/Properties/Policies/0/x")[0]
        document = _mapping(policies["PolicyDocument"])
        document["Statement"] = [*items(document["Statement"]), statement]
        return application

    return change


def in_statement(role: str, sid: str, key: str, value: Json) -> Change:
    """Set a value of one statement of a role; None removes it."""

    def change(application: Application) -> Application:
        [statement] = [s for s in allowed_to(application.template, role) if s["Sid"] == sid]
        assert statement.get(key) != value
        statement[key] = value
        if value is None:
            del statement[key]
        return application

    return change


def without_resource(role: str, sid: str, resource: Json) -> Change:
    """Remove a resource from one statement of a role."""

    def change(application: Application) -> Application:
        [statement] = [s for s in allowed_to(application.template, role) if s["Sid"] == sid]
        found = items(statement["Resource"])
        found.remove(resource)
        statement["Resource"] = found
        return application

    return change


def with_step(step: Step) -> Change:
    """Replace the last step of the workflow."""

    def change(application: Application) -> Application:
        workflow = replace(present, steps=(*present.steps[:-1], step))
        return replace(application, workflows=(workflow,))

    return change


def with_code(*names: str) -> Change:
    """Give the application the code of these agents, which bind no step."""

    def change(application: Application) -> Application:
        return replace(application, agents={name: Agent(name) for name in names})

    return change


def with_definition(text: str) -> Change:
    """A module of the workflows with this text."""
    return lambda application: replace(
        application, definitions={"layers/workflows/workflows/returns.py": text}
    )


def graph(*metrics: Json) -> Document:
    """A widget of a dashboard with these metrics."""
    properties: Document = {"title": "a", "region": "b", "metrics": [*metrics]}
    return {"type": "metric", "properties": properties}


def with_root(section: str, name: str, value: Json) -> Change:
    """One more entry in a section of the template as it is written."""

    def change(application: Application) -> Application:
        entries = {**_mapping(application.root.get(section, {})), name: value}
        return replace(application, root={**application.root, section: entries})

    return change


def with_source(text: str) -> Change:
    """Give the application a module of an agent."""

    def change(application: Application) -> Application:
        return replace(application, sources={"functions/agents/warehouse/app.py": text})

    return change


def ref(name: str) -> Document:
    return {"Ref": name}


def arn(name: str) -> Document:
    return {"Fn::GetAtt": [name, "Arn"]}


def agents_queues(kind: str) -> Document:
    """The resource that stands for the queues of one kind of every agent of the stack."""
    return {"Fn::Sub": f"{queues.QUEUE_ARN}${{AWS::StackName}}_*{kind}"}


def of(resource: str, *path: str) -> str:
    """The path of a property of a resource."""
    return "/".join(("Resources", resource, "Properties", *path))


def takes_messages_of(policy: str, *principals: Json) -> Change:
    """Let these principals alone send to the queue of a policy."""
    statement = of(policy, "PolicyDocument", "Statement", "1", "Condition")
    found: Json = {"Fn::Split": [",", {"Fn::Join": [",", [*principals]]}]}
    return put(f"{statement}/ArnNotLike/aws:PrincipalArn", found)


def variable(function: str, name: str) -> str:
    """The path of an environment variable of a function."""
    return of(function, "Environment", "Variables", name)


KEYS = "ForAllValues:StringEquals"
QUEUE: Document = {"Type": "AWS::SQS::Queue", "Properties": {}}
LONG_NAME = "GiftWrapAndRibbonUrgentQueue"
WITHOUT_TLS: Document = {
    "Sid": "RefusesWhatComesWithoutTls",
    "Effect": "Deny",
    "Principal": "*",
    "Action": "sqs:*",
    "Resource": "*",
    "Condition": {"Bool": {"aws:SecureTransport": "false"}},
}
SECOND_MAPPING: Document = {
    "Type": "AWS::Lambda::EventSourceMapping",
    "Properties": {
        "EventSourceArn": arn("BillingRequestQueue"),
        "FunctionName": ref("BillingFunction"),
    },
}


def _mutations(rule: Rule, *faults: tuple[str, Change, str]) -> Iterable[Mutation]:
    return [Mutation(rule, fault, change, named) for fault, change, named in faults]


OF_QUEUES = (
    *_mutations(
        queues.known_queues,
        ("no urgent queue", drop("Resources/BillingUrgentRequestQueue"), "BillingUrgentRequest"),
        ("a queue without a purpose", put("Resources/StrayQueue", QUEUE), "StrayQueue"),
        ("no queue for rejected messages", drop("Resources/RejectedQueue"), "RejectedQueue"),
    ),
    *_mutations(
        queues.dead_letters,
        (
            "a queue without dead letters",
            drop(of("GiftWrapRequestQueue", "RedrivePolicy")),
            "GiftWrapRequestQueue",
        ),
        (
            "no dead-letter queue",
            drop("Resources/GiftWrapReplyDeadLetterQueue"),
            "GiftWrapReplyQueue",
        ),
        (
            "a shared dead-letter queue",
            put(
                of("BillingReplyQueue", "RedrivePolicy", "deadLetterTargetArn"),
                arn("LettersReplyDeadLetterQueue"),
            ),
            "LettersReplyDeadLetterQueue is there more than once",
        ),
        (
            "a fixed number of deliveries",
            put(of("LettersRequestQueue", "RedrivePolicy", "maxReceiveCount"), 4),
            "LettersRequestQueue: maxReceiveCount",
        ),
        (
            "replies that are given up as soon as requests",
            put(of("LettersReplyQueue", "RedrivePolicy", "maxReceiveCount"), 5),
            "LettersReplyQueue: maxReceiveCount must be 180",
        ),
    ),
    *_mutations(
        queues.known_visibility,
        (
            "a scheduler that takes its queues for others",
            put(of("SchedulerFunction", "Environment", "Variables", "VISIBILITY_SECONDS"), 10),
            "SchedulerFunction: VISIBILITY_SECONDS",
        ),
        (
            "a queue that hides for longer than submission knows",
            put(of("SubmissionQueue", "VisibilityTimeout"), 300),
            "SubmissionFunction: VISIBILITY_SECONDS",
        ),
    ),
    *_mutations(
        queues.dead_letter_sources,
        (
            "dead letters of every queue",
            put(
                of("BillingReplyDeadLetterQueue", "RedriveAllowPolicy", "redrivePermission"),
                "allowAll",
            ),
            "BillingReplyDeadLetterQueue: redrivePermission",
        ),
        (
            "dead letters of another queue",
            put(
                of("BillingReplyDeadLetterQueue", "RedriveAllowPolicy", "sourceQueueArns"),
                [{"Fn::Sub": f"{queues.QUEUE_ARN}${{AWS::StackName}}_LettersReplyQueue"}],
            ),
            "BillingReplyDeadLetterQueue: sourceQueueArns",
        ),
    ),
    *_mutations(
        queues.longest_retention,
        (
            "dead letters for four days",
            put(of("GiftWrapReplyDeadLetterQueue", "MessageRetentionPeriod"), 345600),
            "GiftWrapReplyDeadLetterQueue",
        ),
        (
            "rejected messages for the default time",
            drop(of("RejectedQueue", "MessageRetentionPeriod")),
            "RejectedQueue",
        ),
    ),
    *_mutations(
        queues.retention,
        (
            "messages as long as dead letters",
            put(of("LettersReplyQueue", "MessageRetentionPeriod"), 1209600),
            "LettersReplyQueue",
        ),
        (
            "no retention",
            drop(of("LettersReplyQueue", "MessageRetentionPeriod")),
            "LettersReplyQueue",
        ),
    ),
    *_mutations(
        queues.message_size,
        (
            "messages of 256 KiB",
            put(of("WarehouseRequestQueue", "MaximumMessageSize"), 262144),
            "WarehouseRequestQueue",
        ),
    ),
    *_mutations(
        queues.queue_encryption,
        (
            "a queue in plain text",
            drop(of("GiftWrapRequestQueue", "SqsManagedSseEnabled")),
            "GiftWrapRequestQueue",
        ),
    ),
    *_mutations(
        queues.queue_transport,
        (
            "a queue without the policy",
            remove(of("GiftWrapQueuesAnswerOverTlsOnly", "Queues"), ref("GiftWrapRequestQueue")),
            "GiftWrapRequestQueue is missing",
        ),
        (
            "a policy that denies sending only",
            put(
                of("QueuesAnswerOverTlsOnly", "PolicyDocument", "Statement", "0", "Action"),
                "sqs:SendMessage",
            ),
            "QueuesAnswerOverTlsOnly",
        ),
        (
            "a policy that also allows",
            put(
                of("QueuesAnswerOverTlsOnly", "PolicyDocument", "Statement"),
                [WITHOUT_TLS, {"Sid": "TakesAll", "Effect": "Allow", "Principal": "*"}],
            ),
            "QueuesAnswerOverTlsOnly",
        ),
        (
            "a policy that denies calls with TLS",
            put(
                of("QueuesAnswerOverTlsOnly", "PolicyDocument", "Statement", "0", "Condition"),
                {"Bool": {"aws:SecureTransport": "true"}},
            ),
            "QueuesAnswerOverTlsOnly",
        ),
    ),
    *_mutations(
        queues.queue_senders,
        (
            "a queue that takes commands of anybody with the right",
            put(of("SchedulerQueuePolicy", "PolicyDocument", "Statement"), [WITHOUT_TLS]),
            "SchedulerQueue must refuse the messages",
        ),
        (
            "a reply queue without a policy",
            put(of("GiftWrapReplyQueuePolicy", "Queues"), []),
            "GiftWrapReplyQueue must refuse the messages",
        ),
        (
            "an agent that may not reply",
            takes_messages_of("GiftWrapReplyQueuePolicy", queues.THIS_ACCOUNT[0]),
            "GiftWrapReplyQueue: the roles that may send: GiftWrapRole is missing",
        ),
        (
            "a supervisor that may send orders",
            takes_messages_of("SubmissionQueuePolicy", arn("SupervisorRole")),
            "SubmissionQueue: the roles that may send: SupervisorRole must not be there",
        ),
        (
            "commands of every account",
            takes_messages_of("SchedulerQueuePolicy", "*", arn("SchedulerRole")),
            'SchedulerQueue: "*" is no principal',
        ),
        (
            "a queue with two policies",
            put(of("GiftWrapReplyQueuePolicy", "Queues"), [ref("SchedulerQueue")]),
            "SchedulerQueue has two policies",
        ),
        (
            "commands that another account may send",
            put(
                of("SchedulerQueuePolicy", "PolicyDocument", "Statement"),
                [
                    WITHOUT_TLS,
                    {
                        "Effect": "Allow",
                        "Principal": "*",
                        "Action": "sqs:SendMessage",
                        "Condition": {"ArnLike": {"aws:PrincipalArn": ["arn:aws:iam::1:*"]}},
                    },
                ],
            ),
            "SchedulerQueuePolicy must not allow",
        ),
    ),
    *_mutations(
        queues.reply_prefix,
        (
            "a queue that can be named as a reply queue",
            put(
                of("BillingReplyQueue", "QueueName"), {"Fn::Sub": "${AWS::StackName}-reply-billing"}
            ),
            "BillingReplyQueue",
        ),
        (
            "every queue of the stack as a reply queue",
            put("Outputs/ReplyQueuePrefix/Value", {"Fn::Sub": "${AWS::StackName}-"}),
            "ReplyQueuePrefix",
        ),
    ),
    *_mutations(
        queues.queue_names,
        (
            "a name that two stacks share",
            put(of("BillingReplyQueue", "QueueName"), "BillingReplyQueue"),
            "BillingReplyQueue",
        ),
        (
            "a name of more than 80 characters",
            put(
                f"Resources/{LONG_NAME}",
                {
                    "Type": "AWS::SQS::Queue",
                    "Properties": {"QueueName": {"Fn::Sub": f"${{AWS::StackName}}-{LONG_NAME}"}},
                },
            ),
            LONG_NAME,
        ),
    ),
)

OF_FUNCTIONS = (
    *_mutations(
        functions.readers,
        (
            "a queue without a reader",
            drop("Resources/GiftWrapFunctionUrgentRequests"),
            "GiftWrapUrgentRequestQueue is missing",
        ),
        (
            "a queue with two readers",
            put("Resources/SecondMapping", SECOND_MAPPING),
            "BillingRequestQueue is there more than once",
        ),
    ),
    *_mutations(
        functions.queue_readers,
        (
            "replies to the agent itself",
            put(of("GiftWrapReplies", "FunctionName"), ref("GiftWrapFunction")),
            "GiftWrapReplyQueue must invoke SchedulerFunction",
        ),
        (
            "requests to another agent",
            put(of("GiftWrapFunctionRequests", "FunctionName"), ref("BillingFunction")),
            "GiftWrapRequestQueue must invoke GiftWrapFunction",
        ),
    ),
    *_mutations(
        functions.partial_batches,
        (
            "a batch that fails as a whole",
            drop(of("GiftWrapFunctionRequests", "FunctionResponseTypes")),
            "GiftWrapRequestQueue",
        ),
    ),
    *_mutations(
        functions.concurrency,
        (
            "no limit of instances",
            drop(of("GiftWrapFunctionRequests", "ScalingConfig")),
            "GiftWrapRequestQueue",
        ),
        (
            "a limit that is passed on as text",
            put(
                of("BillingFunctionRequests", "ScalingConfig", "MaximumConcurrency"),
                "10",
            ),
            "BillingRequestQueue",
        ),
        (
            "a limit below that of Lambda",
            put(of("BillingFunctionRequests", "ScalingConfig", "MaximumConcurrency"), 1),
            "BillingRequestQueue",
        ),
    ),
    *_mutations(
        functions.recursion,
        (
            "an agent without RecursiveLoop",
            drop(of("GiftWrapFunction", "RecursiveLoop")),
            "GiftWrapFunction is missing",
        ),
        (
            "a function outside the loop",
            put(of("SupervisorFunction", "RecursiveLoop"), "Allow"),
            "SupervisorFunction must not",
        ),
    ),
    *_mutations(
        functions.visibility,
        (
            "a message that can come back too early",
            put(of("GiftWrapRequestQueue", "VisibilityTimeout"), 30),
            "GiftWrapRequestQueue: its VisibilityTimeout can be 30 s",
        ),
        (
            "a message that can come back at the timeout",
            put(of("GiftWrapRequestQueue", "VisibilityTimeout"), 40),
            "GiftWrapRequestQueue: its VisibilityTimeout can be 40 s",
        ),
        (
            "a function with the default timeout of Lambda",
            drop(of("GiftWrapFunction", "Timeout")),
            "GiftWrapRequestQueue: its VisibilityTimeout and the Timeout of GiftWrapFunction",
        ),
        (
            "less than six times the timeout by default",
            put(of("GiftWrapRequestQueue", "VisibilityTimeout"), 200),
            "GiftWrapRequestQueue: its VisibilityTimeout is 200 s",
        ),
        (
            "a queue with the default of SQS",
            drop(of("BillingReplyQueue", "VisibilityTimeout")),
            "BillingReplyQueue",
        ),
    ),
    *_mutations(
        functions.scheduler_times,
        (
            "a scheduler that runs for long",
            put(of("SchedulerFunction", "Timeout"), 15),
            "SchedulerFunction",
        ),
        (
            "a scheduler with the default timeout of Lambda",
            drop(of("SchedulerFunction", "Timeout")),
            "SchedulerFunction",
        ),
        (
            "a command that stays hidden for long",
            put(of("SchedulerQueue", "VisibilityTimeout"), 90),
            "SchedulerQueue",
        ),
    ),
    *_mutations(
        functions.agent_times,
        (
            "a timeout within the time of a compensation",
            put(of("BillingFunction", "Timeout"), 300),
            "BillingFunction",
        ),
        (
            "a longer step",
            with_step(replace(thank, complete_within=timedelta(seconds=40))),
            "LettersFunction",
        ),
        (
            "a longer step at its second agent",
            with_step(
                replace(
                    thank,
                    agent="",
                    agents=("billing", "warehouse"),
                    complete_within=timedelta(minutes=5),
                )
            ),
            "WarehouseFunction",
        ),
        (
            "an agent with the default timeout of Lambda",
            drop(of("LettersFunction", "Timeout")),
            "LettersFunction",
        ),
        (
            "a fixed timeout that is too short",
            put(of("LettersFunction", "Timeout"), 30),
            "LettersFunction",
        ),
    ),
    *_mutations(
        functions.step_agents,
        (
            "a step of an unknown agent",
            with_step(replace(thank, agent="heralds")),
            "present: thank: the template has no agent heralds",
        ),
        (
            "an unknown second agent",
            with_step(replace(thank, agent="", agents=("letters", "heralds"))),
            "heralds",
        ),
    ),
    *_mutations(
        functions.requests,
        (
            "a queue with the name of another agent's",
            put(
                of("GiftWrapRequestQueue", "QueueName"),
                {"Fn::Sub": "${AWS::StackName}_BillingRequestQueue"},
            ),
            "GiftWrapRequestQueue: QueueName must be ${AWS::StackName}_GiftWrapRequestQueue",
        ),
        (
            "a queue without a name",
            drop(of("GiftWrapReplyQueue", "QueueName")),
            "GiftWrapReplyQueue: QueueName",
        ),
        (
            "an agent under another name",
            put(variable("GiftWrapFunction", "POWERTOOLS_SERVICE_NAME"), "wrapping"),
            "GiftWrapFunction: its agent must be named Wrapping",
        ),
    ),
    *_mutations(
        functions.replies,
        (
            "an agent's function without its reply queue",
            drop(variable("GiftWrapFunction", "REPLY_QUEUE_URL")),
            "GiftWrapFunction",
        ),
        (
            "replies to another agent's queue",
            put(variable("GiftWrapFunction", "REPLY_QUEUE_URL"), ref("BillingReplyQueue")),
            "GiftWrapReplyQueue",
        ),
    ),
    *_mutations(
        functions.settings,
        (
            "a setting that is missing",
            drop(variable("GiftWrapFunction", "BREAKER_FAILURES")),
            "GiftWrapFunction: the environment variable BREAKER_FAILURES",
        ),
        (
            "an optional setting that is missing",
            drop(variable("GiftWrapFunction", "CALLS_PER_SECOND")),
            "GiftWrapFunction: its environment variables: CALLS_PER_SECOND is missing",
        ),
        (
            "a variable that the engine does not read",
            put(variable("SchedulerFunction", "DUE_SHARDS"), ref("DueShards")),
            "SchedulerFunction: its environment variables: DUE_SHARDS must not be there",
        ),
    ),
    *_mutations(
        functions.service_names,
        (
            "the name of another agent",
            put(variable("GiftWrapFunction", "POWERTOOLS_SERVICE_NAME"), "billing"),
            "GiftWrapFunction",
        ),
        (
            "a name that no workflow can have",
            put(variable("GiftWrapFunction", "POWERTOOLS_SERVICE_NAME"), "_giftwrap"),
            "_giftwrap is not a name",
        ),
        (
            "another name of a function of the engine",
            put(variable("SchedulerFunction", "POWERTOOLS_SERVICE_NAME"), "sched_uler"),
            "SchedulerFunction",
        ),
        (
            "another namespace of metrics",
            put(variable("LettersFunction", "POWERTOOLS_METRICS_NAMESPACE"), "Roundsman"),
            "LettersFunction: POWERTOOLS_METRICS_NAMESPACE must be Roundsman/${AWS::StackName}",
        ),
        (
            "a fixed log level",
            put(variable("LettersFunction", "POWERTOOLS_LOG_LEVEL"), "INFO"),
            "LettersFunction",
        ),
    ),
    *_mutations(
        functions.service_addresses,
        (
            "an address without http",
            put(variable("GiftWrapFunction", "SERVICE_URL"), "wrap.example.com"),
            "GiftWrapFunction: ServiceUrl must be an address",
        ),
    ),
    *_mutations(
        functions.layers,
        (
            "an agent without the workflows",
            put(of("GiftWrapFunction", "Layers"), [ref("CoreLayer0123456789")]),
            "GiftWrapFunction",
        ),
        (
            "a supervisor with the workflows",
            put(
                of("SupervisorFunction", "Layers"),
                [ref("CoreLayer0123456789"), ref("WorkflowsLayer0123456789")],
            ),
            "SupervisorFunction",
        ),
    ),
    *_mutations(
        functions.log_groups,
        (
            "a log group of two functions",
            put(of("GiftWrapFunction", "LoggingConfig", "LogGroup"), ref("BillingLogs")),
            "BillingLogs is there more than once",
        ),
        (
            "a log group that Lambda makes",
            drop(of("GiftWrapFunction", "LoggingConfig", "LogGroup")),
            "GiftWrapLogs is missing",
        ),
        (
            "logs without a retention",
            drop(of("GiftWrapLogs", "RetentionInDays")),
            "GiftWrapLogs: RetentionInDays",
        ),
    ),
    *_mutations(
        functions.system_logs,
        (
            "logs in plain text",
            put(of("GiftWrapFunction", "LoggingConfig", "LogFormat"), "Text"),
            "GiftWrapFunction: LogFormat",
        ),
        (
            "a fixed level",
            put(of("GiftWrapFunction", "LoggingConfig", "SystemLogLevel"), "DEBUG"),
            "GiftWrapFunction: SystemLogLevel",
        ),
        (
            "every start by default",
            put(of("SchedulerFunction", "LoggingConfig", "SystemLogLevel"), "INFO"),
            "SchedulerFunction: SystemLogLevel",
        ),
    ),
    *_mutations(
        functions.metric_logs,
        (
            "metrics that are dropped",
            put(of("GiftWrapFunction", "LoggingConfig", "ApplicationLogLevel"), ref("LogLevel")),
            "GiftWrapFunction",
        ),
    ),
    *_mutations(
        functions.supervisor_schedule,
        (
            "a round that is repeated by the schedule",
            put(of("SupervisorFunctionRounds", "Target", "RetryPolicy", "MaximumRetryAttempts"), 3),
            "schedule: MaximumRetryAttempts",
        ),
        (
            "a round that is repeated by Lambda",
            put(of("SupervisorFunctionEventInvokeConfig", "MaximumRetryAttempts"), 2),
            "EventInvokeConfig",
        ),
        (
            "an old round that is begun after newer ones",
            put(of("SupervisorFunctionEventInvokeConfig", "MaximumEventAgeInSeconds"), 3600),
            "MaximumEventAgeInSeconds 60",
        ),
        (
            "a schedule of single minutes",
            put(of("SupervisorFunctionRounds", "ScheduleExpression"), "cron(0 * * * ? *)"),
            "schedule: ScheduleExpression",
        ),
        (
            "no schedule",
            drop("Resources/SupervisorFunctionRounds"),
            "SupervisorFunction must have one schedule",
        ),
        (
            "another role",
            put(
                of("SupervisorFunctionRounds", "Target", "RoleArn"),
                arn("RecurringOrderRole"),
            ),
            "SupervisorScheduleRole",
        ),
    ),
    *_mutations(
        functions.lost_schedules,
        (
            "an order of a schedule that is lost",
            drop(of("RecurringOrderEvents", "Target", "DeadLetterConfig")),
            "RecurringOrderEvents: DeadLetterConfig must be the dead-letter queue",
        ),
    ),
    *_mutations(
        functions.schedule_names,
        (
            "a schedule with a name",
            put(of("SupervisorFunctionRounds", "Name"), "rounds"),
            "SupervisorFunctionRounds",
        ),
    ),
)

OF_PERMISSIONS = (
    *_mutations(
        permissions.wildcards,
        ("all actions", allow("GiftWrapRole", "s3:*", arn("OrdersTable")), "the action s3:*"),
        ("all resources", allow("GiftWrapRole", "s3:GetObject", "*"), "the resource *"),
        (
            "all resources for a viewer",
            put(of("ViewerPolicy", "PolicyDocument", "Statement", "0", "Resource"), "*"),
            "ViewerPolicy: FindsTheStack: the resource * has a wildcard",
        ),
        (
            "the agents' queues of every stack",
            allow(
                "SchedulerRole",
                "sqs:SendMessage",
                {"Fn::Sub": f"{queues.QUEUE_ARN}${{AWS::StackName}}*RequestQueue"},
            ),
            "*RequestQueue has a wildcard",
        ),
        (
            "all but one action",
            in_statement("GiftWrapRole", "ReadsItsRequests", "NotAction", "sqs:DeleteQueue"),
            "NotAction",
        ),
        (
            "all but one resource",
            in_statement("GiftWrapRole", "ReadsItsRequests", "NotResource", "*"),
            "NotResource",
        ),
    ),
    *_mutations(
        permissions.read_policies,
        (
            "a policy of a kind that no rule reads",
            put(
                "Resources/SidePolicy",
                {
                    "Type": "AWS::IAM::ManagedPolicy",
                    "Properties": {
                        "PolicyDocument": {
                            "Statement": [
                                {
                                    "Effect": "Allow",
                                    "Action": "sqs:*",
                                    "Resource": arn("OrdersTable"),
                                }
                            ]
                        }
                    },
                },
            ),
            "SidePolicy",
        ),
    ),
    *_mutations(
        permissions.managed_policies,
        (
            "a policy of AWS",
            put(
                of("GiftWrapRole", "ManagedPolicyArns"),
                ["arn:aws:iam::aws:policy/service-role/AWSLambdaBasicExecutionRole"],
            ),
            "GiftWrapRole",
        ),
    ),
    *_mutations(
        permissions.policies_for_people,
        ("no policy for viewers", drop("Resources/ViewerPolicy"), "ViewerPolicy is missing"),
        ("a policy with a name", put(of("ViewerPolicy", "ManagedPolicyName"), "v"), "left out"),
        (
            "a policy that the stack gives to a role",
            put(of("OperatorPolicy", "Roles"), [ref("GiftWrapRole")]),
            "OperatorPolicy: Roles must be left out",
        ),
        (
            "a viewer who deletes messages",
            put(
                of("ViewerPolicy", "PolicyDocument", "Statement", "0", "Action"),
                "sqs:DeleteMessage",
            ),
            "it may not do sqs:DeleteMessage",
        ),
        (
            "an operator who writes any row",
            drop(of("OperatorPolicy", "PolicyDocument", "Statement", "3", "Condition")),
            "HoldsAndReleasesAgents needs dynamodb:LeadingKeys",
        ),
    ),
    *_mutations(
        permissions.statement_ids,
        (
            "a statement without a reason",
            in_statement("GiftWrapRole", "ReadsItsRequests", "Sid", None),
            "GiftWrapRole",
        ),
        (
            "a statement with a number",
            in_statement("GiftWrapRole", "ReadsItsRequests", "Sid", "Statement1"),
            "Statement1",
        ),
    ),
    *_mutations(
        permissions.function_roles,
        (
            "a shared role",
            put(of("GiftWrapFunction", "Role"), arn("BillingRole")),
            "GiftWrapFunction: Role must be GiftWrapRole",
        ),
        (
            "a role of no function",
            put("Resources/StrayRole", {"Type": "AWS::IAM::Role", "Properties": {}}),
            "StrayRole must not be there",
        ),
    ),
    *_mutations(
        permissions.table_rights,
        (
            "an agent that reads orders",
            allow("GiftWrapRole", "dynamodb:GetItem", arn("OrdersTable")),
            "GiftWrapRole: GetItem on OrdersTable must not be there",
        ),
        (
            "an agent that finds tasks",
            allow("GiftWrapRole", "dynamodb:Query", {"Fn::Sub": "${TasksTable.Arn}/index/due"}),
            "GiftWrapRole: Query on TasksTable/index/due must not be there",
        ),
        (
            "a scheduler that scans",
            allow("SchedulerRole", "dynamodb:Scan", arn("TasksTable")),
            "SchedulerRole: Scan on TasksTable must not be there",
        ),
        (
            "history that is deleted",
            allow("SupervisorRole", "dynamodb:DeleteItem", arn("HistoryTable")),
            "SupervisorRole: DeleteItem on HistoryTable must not be there",
        ),
        (
            "a right too few",
            in_statement(
                "SubmissionRole",
                "CreatesOrdersOnceAndSetsTheirExpiry",
                "Action",
                "dynamodb:GetItem",
            ),
            "SubmissionRole: PutItem on OrdersTable is missing",
        ),
        (
            "a scheduler that reads the table of an agent",
            allow("SchedulerRole", "dynamodb:GetItem", arn("GiftWrapTable")),
            "SchedulerRole: GetItem on GiftWrapTable must not be there",
        ),
        (
            "a schedule that reads orders",
            allow("SupervisorScheduleRole", "dynamodb:GetItem", arn("OrdersTable")),
            "SupervisorScheduleRole: GetItem on OrdersTable must not be there",
        ),
    ),
    *_mutations(
        permissions.queue_rights,
        (
            "an agent that reads another one's requests",
            allow("GiftWrapRole", "sqs:ReceiveMessage", arn("BillingRequestQueue")),
            "GiftWrapRole: ReceiveMessage on BillingRequestQueue must not be there",
        ),
        (
            "an agent that sends commands",
            allow("GiftWrapRole", "sqs:SendMessage", arn("SchedulerQueue")),
            "GiftWrapRole: SendMessage on SchedulerQueue must not be there",
        ),
        (
            "an agent that empties its queue",
            allow("GiftWrapRole", "sqs:PurgeQueue", arn("GiftWrapRequestQueue")),
            "GiftWrapRole: PurgeQueue on GiftWrapRequestQueue must not be there",
        ),
        (
            "an agent that hides its requests for longer",
            allow("GiftWrapRole", "sqs:ChangeMessageVisibility", arn("GiftWrapRequestQueue")),
            "GiftWrapRole: ChangeMessageVisibility on GiftWrapRequestQueue must not be there",
        ),
        (
            "a scheduler that cannot hide what was throttled",
            in_statement("SchedulerRole", "ReadsCommandsAndReplies", "Action", "sqs:DeleteMessage"),
            "SchedulerRole: ChangeMessageVisibility on SchedulerQueue is missing",
        ),
        (
            "an agent that cannot read",
            without_resource("GiftWrapRole", "ReadsItsRequests", arn("GiftWrapUrgentRequestQueue")),
            "GiftWrapRole: ReceiveMessage on GiftWrapUrgentRequestQueue is missing",
        ),
        (
            "a function that cannot use its dead-letter queue",
            without_resource(
                "SchedulerRole", "SaysWhyWithTheDeadLetters", agents_queues("ReplyDeadLetterQueue")
            ),
            "SchedulerRole: SendMessage on GiftWrapReplyDeadLetterQueue is missing",
        ),
        (
            "an agent that cannot use its dead-letter queue",
            without_resource(
                "GiftWrapRole", "SaysWhyWithTheDeadLetters", arn("GiftWrapRequestDeadLetterQueue")
            ),
            "GiftWrapRole: SendMessage on GiftWrapRequestDeadLetterQueue is missing",
        ),
        (
            "a scheduler that cannot read replies",
            without_resource(
                "SchedulerRole", "ReadsCommandsAndReplies", agents_queues("ReplyQueue")
            ),
            "SchedulerRole: ReceiveMessage on GiftWrapReplyQueue is missing",
        ),
        (
            "a scheduler that reads requests",
            allow("SchedulerRole", "sqs:ReceiveMessage", agents_queues("RequestQueue")),
            "SchedulerRole: ReceiveMessage on GiftWrapRequestQueue must not be there",
        ),
        (
            "a scheduler that cannot send requests",
            without_resource(
                "SchedulerRole",
                "SendsRequestsAndInspectsAndSetsRejectedMessagesAside",
                agents_queues("RequestQueue"),
            ),
            "SchedulerRole: SendMessage on GiftWrapUrgentRequestQueue is missing",
        ),
        (
            "a supervisor that sends requests",
            allow("SupervisorRole", "sqs:SendMessage", arn("GiftWrapRequestQueue")),
            "SupervisorRole: SendMessage on GiftWrapRequestQueue must not be there",
        ),
        (
            "a submission that sends requests",
            allow("SubmissionRole", "sqs:SendMessage", arn("GiftWrapRequestQueue")),
            "SubmissionRole: SendMessage on GiftWrapRequestQueue must not be there",
        ),
    ),
    *_mutations(
        permissions.engine_services,
        (
            "a scheduler with another service",
            allow("SchedulerRole", "s3:GetObject", arn("OrdersTable")),
            "SchedulerRole: actions of s3",
        ),
    ),
    *_mutations(
        permissions.agent_rows,
        (
            "an agent that writes every row",
            in_statement("GiftWrapRole", "OpensItsCircuit", "Condition", None),
            "GiftWrapRole: the rows of ControlTable for PutItem must be restricted",
        ),
        (
            "an agent that may not write its read marks",
            in_statement(
                "GiftWrapRole", "KeepsItsMarksItsHoldItsCircuitAndItsRate", "Effect", "Deny"
            ),
            "GiftWrapRole: the rows of ControlTable for UpdateItem: marks is missing",
        ),
        (
            "an agent that opens another one's circuit",
            in_statement(
                "GiftWrapRole",
                "OpensItsCircuit",
                "Condition",
                {KEYS: {"dynamodb:LeadingKeys": ["breaker#billing"]}},
            ),
            "breaker#billing must not be there",
        ),
        (
            "a pattern that is compared as text",
            in_statement(
                "GiftWrapRole",
                "NotesItsCallsOfStepsWithSeveralAgents",
                "Condition",
                {KEYS: {"dynamodb:LeadingKeys": ["calls#gift_wrap#*"]}},
            ),
            "calls#gift_wrap#* is missing",
        ),
        (
            "a pattern of every agent's calls",
            in_statement(
                "GiftWrapRole",
                "NotesItsCallsOfStepsWithSeveralAgents",
                "Condition",
                {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": ["calls#*"]}},
            ),
            "calls#* must not be there",
        ),
    ),
    *_mutations(
        permissions.group_rows,
        (
            "a scheduler that updates every row",
            in_statement("SchedulerRole", "OpensFailureGroupsAndNotesReads", "Condition", None),
            "SchedulerRole",
        ),
        (
            "a supervisor that updates the holds",
            in_statement(
                "SupervisorRole",
                "OpensAndClosesFailureGroupsAndAsksForMarks",
                "Condition",
                {KEYS: {"dynamodb:LeadingKeys": ["groups", "holds"]}},
            ),
            "SupervisorRole",
        ),
    ),
    *_mutations(
        permissions.credential_rights,
        (
            "an agent that reads a secret that is not its Credential",
            allow("GiftWrapRole", "secretsmanager:GetSecretValue", ref("OtherSecret")),
            "GiftWrapRole: GetSecretValue on OtherSecret must not be there",
        ),
        (
            "an agent that reads a parameter that is not its Credential",
            allow("GiftWrapRole", "ssm:GetParameter", ref("OtherParameter")),
            "GiftWrapRole: GetParameter on OtherParameter must not be there",
        ),
        (
            "an engine that reads secrets",
            allow("SchedulerRole", "secretsmanager:GetSecretValue", ref("OtherSecret")),
            "SchedulerRole: GetSecretValue on OtherSecret must not be there",
        ),
        (
            "an agent that may not read its Credential",
            put(variable("GiftWrapFunction", "CREDENTIAL"), ref("OtherSecret")),
            "GiftWrapRole: GetSecretValue on OtherSecret",
        ),
        (
            "a key without a credential",
            put(
                "Conditions/GiftWrapHasCredentialKey",
                {"Fn::Not": [{"Fn::Equals": ["a key", ""]}]},
            ),
            "GiftWrapRole: it may use CredentialKey only to decrypt its Credential",
        ),
    ),
    *_mutations(
        permissions.network_rights,
        (
            "a function in a VPC without the rights for it",
            put(of("GiftWrapFunction", "VpcConfig"), {"SubnetIds": ["subnet-0a1b2c3d"]}),
            "GiftWrapRole: it may handle network interfaces exactly if",
        ),
        (
            "rights for a VPC without one",
            allow("GiftWrapRole", "ec2:CreateNetworkInterface", "*"),
            "GiftWrapRole: it may handle network interfaces exactly if",
        ),
    ),
    *_mutations(
        permissions.plan_and_lease_rows,
        (
            "a submission that puts every row",
            in_statement("SubmissionRole", "StoresPlans", "Condition", None),
            "SubmissionRole",
        ),
        (
            "a supervisor that puts holds",
            in_statement(
                "SupervisorRole",
                "HoldsLeases",
                "Condition",
                {KEYS: {"dynamodb:LeadingKeys": ["leases", "holds"]}},
            ),
            "SupervisorRole",
        ),
    ),
    *_mutations(
        permissions.alert_rights,
        (
            "a submission that alerts",
            allow("SubmissionRole", "sns:Publish", ref("AlertTopic")),
            "SubmissionRole: Publish on AlertTopic must not be there",
        ),
        (
            "an agent that cannot encrypt",
            in_statement("GiftWrapRole", "EncryptsItsAlerts", "Action", "kms:Decrypt"),
            "GiftWrapRole: GenerateDataKey on AlertKey is missing",
        ),
        (
            "an agent that cannot alert",
            in_statement("GiftWrapRole", "TellsOperatorsOfItsCircuit", "Effect", "Deny"),
            "GiftWrapRole: Publish on AlertTopic is missing",
        ),
        (
            "an agent that subscribes",
            allow("GiftWrapRole", "sns:Subscribe", ref("AlertTopic")),
            "GiftWrapRole: Subscribe on AlertTopic must not be there",
        ),
    ),
    *_mutations(
        permissions.log_rights,
        (
            "a log of another function",
            in_statement("GiftWrapRole", "WritesItsOwnLog", "Resource", arn("BillingLogs")),
            "GiftWrapRole: PutLogEvents on BillingLogs must not be there",
        ),
    ),
    *_mutations(
        permissions.trace_rights,
        (
            "a function that may not send traces",
            remove(of("GiftWrapTracingRights", "Roles"), ref("GiftWrapRole")),
            "GiftWrapRole: a policy must be added that allows just xray:PutTraceSegments",
        ),
        (
            "a function that may read traces",
            allow("SchedulerRole", "xray:BatchGetTraces", "*"),
            "SchedulerRole: a policy must be added that allows just xray:PutTraceSegments",
        ),
        (
            "a right that a function has where nothing is traced",
            drop("Resources/TracingRights/Condition"),
            "TracingRights: needs a condition",
        ),
        (
            "a function that does not know which orders are traced",
            drop(variable("GiftWrapFunction", "TRACING_SAMPLE_PERCENT")),
            "GiftWrapFunction: needs the variable TRACING_SAMPLE_PERCENT",
        ),
    ),
    *_mutations(
        permissions.schedule_roles,
        (
            "a schedule that may do more",
            allow("SupervisorScheduleRole", "lambda:InvokeFunction", arn("GiftWrapFunction")),
            "SupervisorFunctionRounds: its role",
        ),
        (
            "a schedule that invokes another function",
            in_statement(
                "SupervisorScheduleRole",
                "SendsTheSupervisorOnItsRounds",
                "Resource",
                arn("GiftWrapFunction"),
            ),
            "SupervisorFunctionRounds: its role",
        ),
        (
            "a role that every account's schedules may take",
            drop(
                of(
                    "SupervisorScheduleRole",
                    "AssumeRolePolicyDocument",
                    "Statement",
                    "0",
                    "Condition",
                )
            ),
            "SupervisorScheduleRole: only scheduler.amazonaws.com",
        ),
        (
            "a heartbeat that may do more",
            allow("AlertHeartbeatRole", "sqs:SendMessage", arn("SchedulerQueue")),
            "AlertHeartbeat: its role must be AlertHeartbeatRole, for sns and kms alone",
        ),
    ),
    *_mutations(
        permissions.alert_encryption,
        (
            "the key that AWS manages",
            put(of("AlertTopic", "KmsMasterKeyId"), "alias/aws/sns"),
            "KmsMasterKeyId",
        ),
        (
            "a key that is not rotated",
            put(of("AlertKey", "EnableKeyRotation"), False),
            "EnableKeyRotation",
        ),
        (
            "a key that alarms cannot use",
            put(of("AlertKey", "KeyPolicy", "Statement", "1", "Action"), ["kms:Decrypt"]),
            "kms:GenerateDataKey is missing",
        ),
    ),
    *_mutations(
        permissions.alert_transport,
        (
            "calls without TLS",
            put(of("AlertTopicPolicy", "PolicyDocument", "Statement", "0", "Effect"), "Allow"),
            "AlertTopic",
        ),
        (
            "alarms of every account",
            drop(of("AlertTopicPolicy", "PolicyDocument", "Statement", "1", "Condition")),
            "AlertTopic",
        ),
        (
            "alarms of another account",
            put(
                of("AlertTopicPolicy", "PolicyDocument", "Statement", "1", "Condition"),
                {"StringEquals": {"aws:SourceAccount": "123456789012"}},
            ),
            "AlertTopic",
        ),
        (
            "events of another service",
            put(
                of("AlertTopicPolicy", "PolicyDocument", "Statement", "1", "Principal"),
                {"Service": "events.amazonaws.com"},
            ),
            "AlertTopic",
        ),
        ("no policy", drop("Resources/AlertTopicPolicy"), "AlertTopic"),
    ),
)

OF_TABLES = (
    *_mutations(
        tables.engine_tables,
        ("no history", drop("Resources/HistoryTable"), "HistoryTable is missing"),
    ),
    *_mutations(
        tables.table_protection,
        (
            "a table in plain text",
            put(of("OrdersTable", "SSESpecification"), {"SSEEnabled": False}),
            "OrdersTable: SSESpecification",
        ),
        (
            "a table that cannot be restored",
            drop(of("OrdersTable", "PointInTimeRecoverySpecification")),
            "OrdersTable: PointInTimeRecovery",
        ),
        (
            "a table that can be deleted",
            put(of("OrdersTable", "DeletionProtectionEnabled"), False),
            "OrdersTable: DeletionProtection",
        ),
        (
            "a table that a creation which fails cannot remove",
            put(of("OrdersTable", "DeletionProtectionEnabled"), True),
            "OrdersTable: DeletionProtection",
        ),
        (
            "a table that is protected under another condition",
            put(
                of("OrdersTable", "DeletionProtectionEnabled"),
                {"Fn::If": ["HasAlertEmail", True, False]},
            ),
            "OrdersTable: DeletionProtection",
        ),
        (
            "tables that can be deleted by default",
            put("Parameters/DeletionProtection/Default", "false"),
            "TasksTable: DeletionProtection",
        ),
        (
            "tables that cannot be restored by default",
            put(
                of(
                    "TasksTable",
                    "PointInTimeRecoverySpecification",
                    "PointInTimeRecoveryEnabled",
                ),
                "false",
            ),
            "TasksTable: PointInTimeRecovery",
        ),
    ),
    *_mutations(
        tables.table_retention,
        (
            "a table that goes with its stack",
            put("Resources/OrdersTable/DeletionPolicy", "Delete"),
            "OrdersTable: DeletionPolicy",
        ),
        (
            "a table that stays behind when the creation of its stack fails",
            put("Resources/OrdersTable/DeletionPolicy", "Retain"),
            "OrdersTable: DeletionPolicy",
        ),
        (
            "a table that goes when it is replaced",
            drop("Resources/OrdersTable/UpdateReplacePolicy"),
            "OrdersTable: UpdateReplacePolicy",
        ),
        (
            "a table with a fixed name",
            put(of("OrdersTable", "TableName"), "orders"),
            "OrdersTable: TableName",
        ),
    ),
    *_mutations(
        tables.expiry,
        (
            "provisioned capacity",
            put(of("TasksTable", "BillingMode"), "PROVISIONED"),
            "TasksTable: BillingMode",
        ),
        (
            "items without an expiry",
            drop(of("TasksTable", "TimeToLiveSpecification")),
            "TasksTable: TimeToLiveSpecification",
        ),
    ),
    *_mutations(
        tables.keys,
        (
            "another key",
            put(of("OrdersTable", "KeySchema", "0", "AttributeName"), "OrderId"),
            "OrdersTable: its keys",
        ),
        (
            "another index",
            put(of("OrdersTable", "GlobalSecondaryIndexes"), [{"IndexName": "customers"}]),
            "OrdersTable: its indexes: customers must not be there",
        ),
        ("no index", put(of("TasksTable", "GlobalSecondaryIndexes"), []), "due is missing"),
        (
            "another key of an index",
            put(
                of("TasksTable", "GlobalSecondaryIndexes", "0", "KeySchema", "0", "AttributeName"),
                "TaskId",
            ),
            "TasksTable: due: its keys",
        ),
        (
            "an index of all attributes",
            put(
                of("TasksTable", "GlobalSecondaryIndexes", "0", "Projection"),
                {"ProjectionType": "ALL"},
            ),
            "TasksTable: due: its Projection",
        ),
    ),
)

NO_KEY: Document = {"Ref": "AWS::NoValue"}
ANOTHER_KEY = "arn:aws:kms:eu-west-1:123456789012:key/1"

OF_ENCRYPTION = (
    *_mutations(
        encryption.one_key,
        (
            "a table that is never under the key",
            drop(of("HistoryTable", "SSESpecification", "KMSMasterKeyId")),
            "HistoryTable: SSESpecification.KMSMasterKeyId",
        ),
        (
            "a queue that is never under the key",
            drop(of("GiftWrapReplyQueue", "KmsMasterKeyId")),
            "GiftWrapReplyQueue: KmsMasterKeyId",
        ),
        (
            "a queue with two encryptions",
            put(of("GiftWrapReplyQueue", "SqsManagedSseEnabled"), True),
            "GiftWrapReplyQueue: SqsManagedSseEnabled",
        ),
        (
            "a dead-letter queue under another key",
            put(
                of("SchedulerDeadLetterQueue", "KmsMasterKeyId"),
                {"Fn::If": ["OwnKey", ANOTHER_KEY, NO_KEY]},
            ),
            "SchedulerDeadLetterQueue: KmsMasterKeyId",
        ),
        (
            "a queue that asks for a data key every five minutes",
            drop(of("RejectedQueue", "KmsDataKeyReusePeriodSeconds")),
            "RejectedQueue: KmsDataKeyReusePeriodSeconds",
        ),
        (
            "a log that is never under the key",
            drop(of("GiftWrapLogs", "KmsKeyId")),
            "GiftWrapLogs: KmsKeyId",
        ),
        (
            "alerts that are never under the key",
            put(of("AlertTopic", "KmsMasterKeyId"), arn("AlertKey")),
            "AlertTopic: KmsMasterKeyId",
        ),
        (
            "a property that depends on something else",
            put(of("GiftWrapLogs", "KmsKeyId"), {"Fn::If": ["Tracing", "", NO_KEY]}),
            "GiftWrapLogs: KmsKeyId",
        ),
    ),
    *_mutations(
        encryption.key_rights,
        (
            "a function without a right on the key",
            remove(of("GiftWrapKeyRights", "Roles"), ref("GiftWrapRole")),
            "GiftWrapRole: a policy must be added",
        ),
        (
            "a right that is there without a key",
            drop("Resources/KeyRights/Condition"),
            "KeyRights: its condition",
        ),
        (
            "a right with the condition of another thing",
            put("Resources/GiftWrapKeyRights/Condition", "Tracing"),
            "GiftWrapKeyRights: its condition",
        ),
        (
            "a right to use the key for anything",
            in_statement("GiftWrapRole", "ReadsAndWritesUnderTheKeyOfItsOwner", "Condition", None),
            "GiftWrapRole: a policy must be added",
        ),
        (
            "a right to delete the key",
            in_statement(
                "SchedulerRole",
                "ReadsAndWritesUnderTheKeyOfItsOwner",
                "Action",
                [*encryption.USES, "kms:ScheduleKeyDeletion"],
            ),
            "SchedulerRole: a policy must be added",
        ),
        (
            "a recurring order that cannot be sent under the key",
            drop("Resources/RecurringOrderKeyRights"),
            "RecurringOrderRole: a policy must be added",
        ),
        (
            "a heartbeat that cannot be published under the key",
            drop("Resources/AlertHeartbeatKeyRights"),
            "AlertHeartbeatRole: a policy must be added",
        ),
    ),
    *_mutations(
        encryption.former_key_rights,
        (
            "an agent that cannot read what is still under the former key",
            drop("Resources/GiftWrapRightsToFormerKey"),
            "GiftWrapRole: a policy must be added",
        ),
        (
            "a right to write under the former key",
            in_statement(
                "SchedulerRole", "ReadsWhatIsStillUnderTheFormerKey", "Action", [*encryption.USES]
            ),
            "SchedulerRole: a policy must be added",
        ),
        (
            "a right to read anything under the former key",
            in_statement("GiftWrapRole", "ReadsWhatIsStillUnderTheFormerKey", "Condition", None),
            "GiftWrapRole: a policy must be added",
        ),
        (
            "a right on a former key that is there without one",
            drop("Resources/RightsToFormerKey/Condition"),
            "SubmissionRole: a policy must be added",
        ),
    ),
)

OF_ALARMS = (
    *_mutations(
        alarms.messages_put_aside,
        (
            "no alarm on dead letters",
            drop("Resources/GiftWrapReplyDeadLettersAlarm"),
            "GiftWrapReplyDeadLetterQueue is missing",
        ),
        (
            "no alarm on rejected messages",
            drop("Resources/RejectedMessagesAlarm"),
            "RejectedQueue is missing",
        ),
        (
            "an alarm on what came in a minute",
            put(of("RejectedMessagesAlarm", "MetricName"), "NumberOfMessagesSent"),
            "RejectedQueue is missing",
        ),
        (
            "an alarm that ends while the messages are there",
            put(of("RejectedMessagesAlarm", "TreatMissingData"), "notBreaching"),
            "RejectedMessagesAlarm: TreatMissingData must be ignore",
        ),
        (
            "an alarm on many dead letters",
            put(of("GiftWrapReplyDeadLettersAlarm", "Threshold"), 10),
            "GiftWrapReplyDeadLettersAlarm: Threshold must be 0",
        ),
        (
            "an alarm on another queue",
            put(
                of("GiftWrapReplyDeadLettersAlarm", "Dimensions"),
                [
                    {
                        "Name": "QueueName",
                        "Value": {"Fn::GetAtt": ["BillingReplyDeadLetterQueue", "QueueName"]},
                    }
                ],
            ),
            "BillingReplyDeadLetterQueue is there more than once",
        ),
        (
            "an alarm on nothing",
            drop(of("GiftWrapReplyDeadLettersAlarm", "Dimensions")),
            "an unknown dimension of GiftWrapReplyDeadLettersAlarm",
        ),
    ),
    *_mutations(
        alarms.backlog_alarms,
        (
            "no alarm on a backlog",
            drop("Resources/GiftWrapRequestBacklogAlarm"),
            "GiftWrapRequestQueue is missing",
        ),
        (
            "a threshold below the queue's visibility timeout",
            put(of("GiftWrapRequestBacklogAlarm", "Threshold"), 60),
            "GiftWrapRequestBacklogAlarm: Threshold is 60",
        ),
        (
            "the engine's threshold for a queue that hides its messages for longer",
            put("Conditions/BillingHasOwnAge", {"Fn::Not": [{"Fn::Equals": [0, 0]}]}),
            "BillingRequestBacklogAlarm: Threshold is 1200",
        ),
        (
            "no alarm on the backlog of the scheduler's commands",
            drop("Resources/SchedulerBacklogAlarm"),
            "SchedulerQueue is missing",
        ),
    ),
    *_mutations(
        alarms.function_alarms,
        (
            "no alarm on the errors of a function",
            drop("Resources/GiftWrapErrorsAlarm"),
            "Errors of functions: GiftWrapFunction is missing",
        ),
        (
            "no alarm on the throttles of a function",
            drop("Resources/SchedulerThrottlesAlarm"),
            "Throttles of functions: SchedulerFunction is missing",
        ),
    ),
    *_mutations(
        alarms.table_alarms,
        (
            "no alarm on refused writes of a table",
            drop("Resources/OrdersWriteThrottlesAlarm"),
            "WriteThrottleEvents of tables: OrdersTable is missing",
        ),
        (
            "no alarm on refused reads of an index",
            drop("Resources/DueIndexReadThrottlesAlarm"),
            "ReadThrottleEvents of tables: TasksTable/due is missing",
        ),
        (
            "an alarm on no table",
            drop(of("OrdersWriteThrottlesAlarm", "Dimensions")),
            "an unknown dimension of OrdersWriteThrottlesAlarm",
        ),
    ),
    *_mutations(
        alarms.stack_alarms,
        (
            "no alarm on archived tasks",
            drop("Resources/ArchivedTasksAlarm"),
            "ArchivedTasksAlarm must watch TasksArchived",
        ),
        (
            "no alarm on a scheduler that is behind",
            drop("Resources/SchedulerBehindAlarm"),
            "SchedulerBehindAlarm must watch SchedulerBehindMs of the stack for the supervisor",
        ),
        (
            "an alarm on the archived tasks of one function",
            put(
                of("ArchivedTasksAlarm", "Dimensions"), [{"Name": "service", "Value": "scheduler"}]
            ),
            "ArchivedTasksAlarm must watch TasksArchived of the stack for all functions",
        ),
        (
            "an alarm on the metrics of every stack",
            put(of("HandlerErrorsAlarm", "Namespace"), "Roundsman"),
            "HandlerErrorsAlarm must watch HandlerErrors",
        ),
    ),
    *_mutations(
        alarms.existing_metrics,
        (
            "an alarm on a metric that does not exist",
            put(of("HandlerErrorsAlarm", "MetricName"), "HandlerFailures"),
            "HandlerErrorsAlarm: there is no metric HandlerFailures",
        ),
        (
            "an alarm on a namespace without the stack",
            put(of("HandlerErrorsAlarm", "Namespace"), "Roundsman"),
            "HandlerErrorsAlarm: Namespace must be Roundsman/${AWS::StackName}",
        ),
        (
            "an alarm on a metric without the dimension that it has",
            drop(of("TroubledTasksAlarm", "Dimensions")),
            "TroubledTasksAlarm: TasksTroubled has no dimensions -",
        ),
        (
            "an alarm on the average of a counter",
            put(of("GiftWrapErrorsAlarm", "Statistic"), "Average"),
            "GiftWrapErrorsAlarm: Statistic must be Sum",
        ),
        (
            "an alarm on the name of no function",
            put(of("TroubledTasksAlarm", "Dimensions", "0", "Value"), "supervising"),
            "TroubledTasksAlarm: supervising is the name of no function",
        ),
    ),
    *_mutations(
        alarms.alarm_names,
        (
            "a name without the stack's",
            put(of("GiftWrapErrorsAlarm", "AlarmName"), "GiftWrapErrors"),
            "GiftWrapErrorsAlarm: AlarmName must begin with ${AWS::StackName}-",
        ),
        (
            "the name of another alarm",
            put(
                of("GiftWrapErrorsAlarm", "AlarmName"),
                {"Fn::Sub": "${AWS::StackName}-SchedulerErrorsAlarm"},
            ),
            "another alarm has the same AlarmName",
        ),
    ),
    *_mutations(
        alarms.supervisor_alarm,
        (
            "a supervisor whose missing data is no failure",
            put(of("SupervisorHasNotRunAlarm", "TreatMissingData"), "notBreaching"),
            "TreatMissingData",
        ),
        (
            "an alarm that is never raised",
            put(of("SupervisorHasNotRunAlarm", "Threshold"), 0),
            "Threshold",
        ),
        (
            "an alarm on invocations that are made",
            put(of("SupervisorHasNotRunAlarm", "ComparisonOperator"), "GreaterThanThreshold"),
            "ComparisonOperator",
        ),
        (
            "an alarm on another function",
            put(
                of("SupervisorHasNotRunAlarm", "Dimensions"),
                [{"Name": "FunctionName", "Value": ref("SchedulerFunction")}],
            ),
            "SupervisorFunction is missing",
        ),
    ),
    *_mutations(
        alarms.alarm_actions,
        (
            "an alarm without an action",
            put(of("GiftWrapErrorsAlarm", "AlarmActions"), []),
            "GiftWrapErrorsAlarm: AlarmActions",
        ),
        (
            "an alarm whose end nobody hears of",
            drop(of("GiftWrapErrorsAlarm", "OKActions")),
            "GiftWrapErrorsAlarm: OKActions",
        ),
        (
            "an alarm without a description",
            put(of("GiftWrapErrorsAlarm", "AlarmDescription"), " "),
            "GiftWrapErrorsAlarm: AlarmDescription",
        ),
    ),
    *_mutations(
        alarms.missing_data,
        (
            "an alarm on a quiet queue",
            put(of("GiftWrapRequestBacklogAlarm", "TreatMissingData"), "breaching"),
            "GiftWrapRequestBacklogAlarm: TreatMissingData",
        ),
        (
            "an alarm on a short queue",
            put(of("GiftWrapRequestBacklogAlarm", "ComparisonOperator"), "LessThanThreshold"),
            "GiftWrapRequestBacklogAlarm: ComparisonOperator",
        ),
    ),
)

BODY = of("OperatorDashboard", "DashboardBody") + "/Fn::Sub"


def in_the_body(old: str, new: str) -> Change:
    """Replace a part of the text of the dashboard's body."""

    def change(application: Application) -> Application:
        mapping, key = _parent(application.template, BODY)
        text = json.dumps(mapping[key])
        found = json.dumps(old)[1:-1]  # as it stands inside of a JSON text
        assert found in text
        mapping[key] = json.loads(text.replace(found, json.dumps(new)[1:-1], 1))
        return application

    return change


OF_DASHBOARDS = (
    *_mutations(
        dashboards.dashboard_bodies,
        ("a missing comma", in_the_body('"start": "-PT6H",', '"start": "-PT6H"'), "is no JSON"),
        ("no widgets", put(BODY, "{}"), "must have 1 to 500 widgets"),
        (
            "a widget without a region",
            in_the_body('"region"', '"place"'),
            "must be a text, or have",
        ),
        (
            "an expression that is not in a list",
            put(BODY, json.dumps({"widgets": [graph({"expression": "SEARCH()"})]})),
            "a metric must be a list of names",
        ),
        (
            "a widget without metrics",
            put(BODY, json.dumps({"widgets": [graph()]})),
            "widget 1: a metric must be",
        ),
    ),
    *_mutations(
        dashboards.dashboard_of_the_stack,
        (
            "a name for two regions",
            put(of("OperatorDashboard", "DashboardName"), {"Fn::Sub": "${AWS::StackName}"}),
            "DashboardName must be",
        ),
        (
            "the metrics of every stack",
            in_the_body("Roundsman/${AWS::StackName}", "Roundsman/shop"),
            "the namespace of metrics must be",
        ),
        (
            "the logs of every function",
            in_the_body("['/aws/lambda/${AWS::StackName}/']", "['/aws/lambda/']"),
            "a query must read from log groups of",
        ),
        (
            "the logs of stacks whose names begin alike",
            in_the_body("['/aws/lambda/${AWS::StackName}/']", "['/aws/lambda/${AWS::StackName}']"),
            "a query must read from log groups of",
        ),
        (
            "the log of another stack's supervisor",
            in_the_body("'/aws/lambda/${AWS::StackName}/super", "'/aws/lambda/shop/super"),
            "a query must read from log groups of",
        ),
    ),
)

OF_THE_INTERFACE = (
    *_mutations(
        interface.outputs,
        (
            "no prefix of reply queues",
            drop("Outputs/ReplyQueuePrefix"),
            "the output ReplyQueuePrefix must be ${AWS::StackName}-reply-",
        ),
        (
            "an output that names another table",
            put("Outputs/OrdersTableName/Value", ref("TasksTable")),
            "the output OrdersTableName must be OrdersTable",
        ),
    ),
    *_mutations(
        interface.agent_outputs,
        ("no output of an agent", drop("Outputs/GiftWrapAgent"), "the output GiftWrapAgent"),
        (
            "the output of another agent",
            put("Outputs/GiftWrapAgent/Value", {"Fn::Join": [",", ["gift_wrap", ref("Other")]]}),
            "the output GiftWrapAgent must be the Summary of the block GiftWrap",
        ),
    ),
    *_mutations(
        interface.engine_settings,
        ("no settings", drop("Outputs/EngineSettings"), "the output EngineSettings"),
        (
            "the settings of something else",
            put("Outputs/EngineSettings/Value", ref("TasksTable")),
            "the output EngineSettings",
        ),
    ),
    *_mutations(
        interface.alert_email,
        (
            "a subscription without an address",
            drop("Resources/AlertEmailSubscription/Condition"),
            "AlertEmailSubscription needs the condition",
        ),
        (
            "a condition on something else",
            put(
                "Conditions/HasAlertEmail",
                {"Fn::Not": [{"Fn::Equals": [ref("LogLevel"), ""]}]},
            ),
            "HasAlertEmail must be",
        ),
        (
            "another protocol",
            put(of("AlertEmailSubscription", "Protocol"), "https"),
            "Protocol",
        ),
    ),
    *_mutations(
        interface.alert_endpoint,
        (
            "a subscription without an endpoint",
            drop("Resources/AlertEndpointSubscription/Condition"),
            "AlertEndpointSubscription needs the condition HasAlertEndpoint",
        ),
        (
            "an endpoint under a condition on something else",
            put("Conditions/HasAlertEndpoint", {"Fn::Not": [{"Fn::Equals": ["a", ""]}]}),
            "HasAlertEndpoint must be that",
        ),
        (
            "a protocol of telephones",
            put(of("AlertEndpointSubscription", "Protocol"), "sms"),
            "Protocol must be https, sqs or lambda",
        ),
    ),
    *_mutations(
        interface.heartbeat,
        ("no heartbeat", drop("Resources/AlertHeartbeat"), "needs the condition HasAlertHeartbeat"),
        (
            "a heartbeat without a schedule",
            drop("Resources/AlertHeartbeat/Condition"),
            "AlertHeartbeat needs the condition HasAlertHeartbeat",
        ),
        (
            "a call of something else",
            put(
                of("AlertHeartbeat", "Target", "Arn"),
                {"Fn::Sub": "arn:${AWS::Partition}:scheduler:::aws-sdk:sns:deleteTopic"},
            ),
            "Target must be aws-sdk:sns:publish",
        ),
        (
            "a message that is not JSON",
            put(of("AlertHeartbeat", "Target", "Input", "Fn::Sub"), '{"Message": "{"}'),
            "must be JSON",
        ),
        (
            "a message that filters do not know",
            put(
                of("AlertHeartbeat", "Target", "Input", "Fn::Sub"),
                json.dumps({"TopicArn": "${AlertTopic}", "Message": '{"default": "{}"}'}),
            ),
            "Input must be the alert heartbeat",
        ),
    ),
    *_mutations(
        interface.names,
        (
            "a parameter with the name of a block",
            with_root("Parameters", "Engine", {"Type": "String"}),
            "Engine is a parameter and a block: rename one of them",
        ),
        (
            "an output of a block that does not exist",
            with_root("Outputs", "Other", {"Value": {"Fn::GetAtt": ["Gone", "Outputs.Summary"]}}),
            "Other: template.yaml has no Gone",
        ),
        (
            "a reference to a parameter that does not exist",
            with_root("Outputs", "Other", {"Value": [ref("Gone")]}),
            "Other: template.yaml has no Gone",
        ),
    ),
)

OF_SCHEDULES = _mutations(
    schedules.schedules,
    (
        "a schedule that AWS does not take",
        put(of("AlertHeartbeat", "ScheduleExpression"), "cron(0 9 * * MON *)"),
        "AlertHeartbeatSchedule is 'cron(0 9 * * MON *)': exactly one of day-of-month",
    ),
    (
        "a recurring order that is no order",
        put(of("RecurringOrderEvents", "Target", "Input"), "{"),
        "RecurringOrder would be rejected: not JSON",
    ),
)

OF_CODE = (
    *_mutations(
        code.known_agents,
        ("no code of an agent", with_code(), "present: there is no code of the agent warehouse"),
    ),
    *_mutations(
        code.bound_steps,
        (
            "an agent without a function",
            with_code("warehouse"),
            "agent 'warehouse': step 'fetch' of workflow 'present' has no function",
        ),
        (
            "an agent without a function that undoes",
            with_code("warehouse"),
            "step 'fetch' of workflow 'present' has a compensation but no function",
        ),
    ),
    *_mutations(
        code.agent_folders,
        (
            "a folder with another name than its agent",
            lambda application: replace(
                application, folders={"functions/agents/shelf": "warehouse"}
            ),
            "functions/agents/shelf/app.py defines the agent warehouse",
        ),
    ),
    *_mutations(
        code.registry_keys,
        (
            "a key that is not the workflow's name",
            lambda application: replace(application, registry={"gift": "present"}),
            "WORKFLOWS of registry.py has present under the key 'gift'",
        ),
    ),
    *_mutations(
        code.defined_names,
        (
            "a call of a function that is not there",
            with_source("def fetch(request):\n    return _create(request)\n"),
            "functions/agents/warehouse/app.py:2: there is no _create",
        ),
    ),
    *_mutations(
        code.typed_errors,
        (
            "a sentence in place of a type",
            with_source("raise PermanentError('the shelf is empty')"),
            "functions/agents/warehouse/app.py:1: PermanentError has a sentence in place of its",
        ),
    ),
    *_mutations(
        code.registered_workflows,
        (
            "a workflow that the registry lacks",
            with_definition("returns = Workflow(name='returns', steps=())"),
            "returns.py: the workflow returns is not in WORKFLOWS of registry.py",
        ),
    ),
)


def with_many(section: str, number: int, size: int = 1) -> Change:
    """So many more entries of a section of the template as it is written."""

    def change(application: Application) -> Application:
        more: Document = {f"More{n}": {"Description": "x" * size} for n in range(number)}
        entries = {**_mapping(application.root.get(section, {})), **more}
        return replace(application, root={**application.root, section: entries})

    return change


def with_many_resources(application: Application) -> Application:
    """As many agents as make too many resources of all stacks together."""
    more: Document = {f"More{n}": QUEUE for n in range(limits.ALL_RESOURCES)}
    resources = {**_mapping(application.template["Resources"]), **more}
    return replace(application, template={**application.template, "Resources": resources})


OF_LIMITS = (
    *_mutations(
        limits.template_sizes,
        ("too many resources", with_many("Resources", 500), "resources, and CloudFormation"),
        ("too many outputs", with_many("Outputs", 200), "outputs, and CloudFormation"),
        ("too many parameters", with_many("Parameters", 200), "parameters, and CloudFormation"),
        ("a template too large", with_many("Metadata", 1, 1_000_000), "bytes, and CloudFormation"),
        ("too many of all stacks", with_many_resources, "resources with its nested stacks"),
    ),
    *_mutations(
        limits.policy_sizes,
        (
            "a right for each of very many queues",
            allow("SchedulerRole", "sqs:SendMessage", [arn(f"Queue{n}") for n in range(60)]),
            "SchedulerRole: its inline policies may have",
        ),
    ),
    *_mutations(
        limits.variable_sizes,
        (
            "a long setting",
            put(variable("BillingFunction", "PRICES"), "x" * 4_000),
            "BillingFunction: its environment variables may have",
        ),
    ),
)


def of_version(function: str, key: str, value: Json) -> Change:
    """Set a value of the published version of a function."""

    def change(application: Application) -> Application:
        resources = _mapping(application.template["Resources"])
        [name] = [name for name in resources if name.startswith(f"{function}Version")]
        return put(f"Resources/{name}/{key}", value)(application)

    return change


def deleted_layer(application: Application) -> Application:
    """A layer whose former versions are deleted."""
    resources = _mapping(application.template["Resources"])
    [name] = [name for name in resources if name.startswith("CoreLayer")]
    return put(f"Resources/{name}/DeletionPolicy", "Delete")(application)


OF_VERSIONS = (
    *_mutations(
        versions.live_aliases,
        (
            "a function without an alias",
            drop("Resources/GiftWrapFunctionAliaslive"),
            "GiftWrapFunction: needs AutoPublishAlias",
        ),
        (
            "an alias of the version of another function",
            put(
                of("GiftWrapFunctionAliaslive", "FunctionVersion"),
                {"Fn::GetAtt": ["BillingFunctionVersion", "Version"]},
            ),
            "GiftWrapFunction: needs AutoPublishAlias",
        ),
        (
            "an alias of another name",
            put(of("SubmissionFunctionAliaslive", "Name"), "latest"),
            "SubmissionFunction: needs AutoPublishAlias",
        ),
    ),
    *_mutations(
        versions.described_versions,
        (
            "a version without the values of parameters",
            of_version("SchedulerFunction", "Properties/Description", "the scheduler"),
            "SchedulerFunction: VersionDescription must have the values",
        ),
        (
            "a function that does not change with its version",
            put(of("GiftWrapFunction", "Description"), "wraps gifts"),
            "GiftWrapFunction: VersionDescription must be its Description",
        ),
    ),
    *_mutations(
        versions.former_versions,
        (
            "a version that the next one deletes",
            of_version("GiftWrapFunction", "UpdateReplacePolicy", "Delete"),
            "UpdateReplacePolicy must be Retain",
        ),
        (
            "a layer that the next one deletes",
            deleted_layer,
            "CoreLayer: RetentionPolicy must be Retain",
        ),
    ),
    *_mutations(
        versions.invoked_aliases,
        (
            "requests to the function itself",
            put(of("GiftWrapFunctionRequests", "FunctionName"), ref("GiftWrapFunction")),
            "GiftWrapFunctionRequests: must invoke the alias live of GiftWrapFunction",
        ),
        (
            "replies to the function itself",
            put(of("GiftWrapReplies", "FunctionName"), arn("SchedulerFunction")),
            "GiftWrapReplies: must invoke the alias live of SchedulerFunction",
        ),
        (
            "a schedule of the function itself",
            put(of("SupervisorFunctionRounds", "Target", "Arn"), arn("SupervisorFunction")),
            "SupervisorFunctionRounds: must invoke the alias",
        ),
        (
            "a right on the function itself",
            in_statement(
                "SupervisorScheduleRole",
                "SendsTheSupervisorOnItsRounds",
                "Resource",
                arn("SupervisorFunction"),
            ),
            "SupervisorScheduleRole: must invoke the alias",
        ),
        (
            "a permission on the function itself",
            put(
                "Resources/NewsPermission",
                {
                    "Type": "AWS::Lambda::Permission",
                    "Properties": {"FunctionName": ref("LettersFunction")},
                },
            ),
            "NewsPermission: must invoke the alias live of LettersFunction",
        ),
        (
            "a rule for the function itself",
            put(
                "Resources/NewsRule",
                {
                    "Type": "AWS::Events::Rule",
                    "Properties": {"Targets": [{"Arn": arn("LettersFunction"), "Id": "news"}]},
                },
            ),
            "NewsRule: must invoke the alias live of LettersFunction",
        ),
    ),
    *_mutations(
        versions.invocation_settings,
        (
            "settings of the function itself",
            put(of("SupervisorFunctionEventInvokeConfig", "Qualifier"), "$LATEST"),
            "SupervisorFunctionEventInvokeConfig: Qualifier must be live",
        ),
    ),
    *_mutations(
        versions.deployment_order,
        (
            "new plans before the scheduler",
            drop("Resources/SubmissionFunction/DependsOn"),
            "SubmissionFunction: DependsOn must be SchedulerFunctionAliaslive",
        ),
    ),
)

MUTATIONS: tuple[Mutation, ...] = (
    *OF_QUEUES,
    *OF_FUNCTIONS,
    *OF_PERMISSIONS,
    *OF_TABLES,
    *OF_ENCRYPTION,
    *OF_ALARMS,
    *OF_DASHBOARDS,
    *OF_THE_INTERFACE,
    *OF_LIMITS,
    *OF_CODE,
    *OF_SCHEDULES,
    *OF_VERSIONS,
)
BY_LABEL: Mapping[str, Mutation] = {f"{m.rule.__name__}: {m.fault}": m for m in MUTATIONS}


def without_service(application: Application) -> Application:
    """An agent that calls no address, for example because its service is one of AWS."""
    return put(variable("LettersFunction", "SERVICE_URL"), "")(application)


def table_of_an_agent(application: Application) -> Application:
    """A table that only one agent uses."""
    table = deepcopy(_mapping(_parent(application.template, "Resources/OrdersTable/x")[0]))
    properties = _mapping(table["Properties"])
    properties["KeySchema"] = [{"AttributeName": "Paper", "KeyType": "HASH"}]
    properties["BillingMode"] = "PROVISIONED"
    application = put("Resources/GiftWrapTable", table)(application)
    return allow("GiftWrapRole", "dynamodb:Scan", arn("GiftWrapTable"))(application)


ADDITIONS: Mapping[str, Change] = {
    "an agent without an address": without_service,
    "a table of an agent": table_of_an_agent,
    "a variable of an agent": put(variable("GiftWrapFunction", "PAPER"), "red"),
    "a layer of an agent": put(
        of("GiftWrapFunction", "Layers"),
        [ref(f"{layer}0123456789") for layer in ("CoreLayer", "WorkflowsLayer", "PaperLayer")],
    ),
    "a service of AWS": allow("GiftWrapRole", "ses:SendEmail", "arn:aws:ses:::identity/x.example"),
    "retries of an agent's invocations": put(
        "Resources/GiftWrapFunctionEventInvokeConfig",
        {
            "Type": "AWS::Lambda::EventInvokeConfig",
            "Properties": {
                "FunctionName": ref("GiftWrapFunction"),
                "MaximumRetryAttempts": 2,
                "Qualifier": "live",
            },
        },
    ),
    "another topic": put(
        "Resources/NewsTopicPolicy",
        {
            "Type": "AWS::SNS::TopicPolicy",
            "Properties": {
                "Topics": [ref("NewsTopic")],
                "PolicyDocument": {"Statement": [{**WITHOUT_TLS, "Action": "sns:Publish"}]},
            },
        },
    ),
    "an output": put("Outputs/NewsTopicArn", {"Value": ref("NewsTopic")}),
    "the longest retention": put(of("LettersReplyQueue", "MessageRetentionPeriod"), 7 * 86400),
}
