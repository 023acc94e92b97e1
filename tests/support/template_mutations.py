"""Changes of the template of `other_application`: faults, each with its rule, and additions.

An addition is what the rules allow an application to have besides the engine and its agents.
"""

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
    functions,
    interface,
    limits,
    permissions,
    queues,
    tables,
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
            remove(of("GiftWrapQueuesAnswerOverTlsOnly", "Queues"), ref("GiftWrapReplyQueue")),
            "GiftWrapReplyQueue is missing",
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
            put(variable("LettersFunction", "POWERTOOLS_METRICS_NAMESPACE"), "Letters"),
            "LettersFunction",
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
            in_statement("SubmissionRole", "CreatesOrdersOnce", "Action", "dynamodb:GetItem"),
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
            in_statement("SchedulerRole", "OpensFailureGroups", "Condition", None),
            "SchedulerRole",
        ),
        (
            "a supervisor that updates the holds",
            in_statement(
                "SupervisorRole",
                "OpensAndClosesFailureGroups",
                "Condition",
                {KEYS: {"dynamodb:LeadingKeys": ["groups", "holds"]}},
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

OF_ALARMS = (
    *_mutations(
        alarms.dead_letter_alarms,
        (
            "no alarm on dead letters",
            drop("Resources/GiftWrapReplyDeadLettersAlarm"),
            "GiftWrapReplyDeadLetterQueue is missing",
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
            "a fixed threshold",
            put(of("GiftWrapRequestBacklogAlarm", "Threshold"), 60),
            "GiftWrapRequestBacklogAlarm: Threshold",
        ),
    ),
    *_mutations(
        alarms.error_alarms,
        (
            "no alarm on the errors of a function",
            drop("Resources/GiftWrapErrorsAlarm"),
            "GiftWrapFunction is missing",
        ),
    ),
    *_mutations(
        alarms.archived_alarms,
        (
            "no alarm on tasks that the supervisor archives",
            drop("Resources/SupervisorArchivedTasksAlarm"),
            "supervisor is missing",
        ),
    ),
    *_mutations(
        alarms.handler_alarms,
        (
            "no alarm on steps without a handler",
            drop("Resources/GiftWrapStepsWithoutHandlerAlarm"),
            "gift_wrap is missing",
        ),
    ),
    *_mutations(
        alarms.rejected_alarm,
        (
            "no alarm on rejected messages",
            drop("Resources/RejectedMessagesAlarm"),
            "RejectedQueue is missing",
        ),
    ),
    *_mutations(
        alarms.alarmed_services,
        (
            "an alarm on the name of no function",
            put(of("GiftWrapStepsWithoutHandlerAlarm", "Dimensions", "0", "Value"), "giftwrapping"),
            "giftwrapping",
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

MUTATIONS: tuple[Mutation, ...] = (
    *OF_QUEUES,
    *OF_FUNCTIONS,
    *OF_PERMISSIONS,
    *OF_TABLES,
    *OF_ALARMS,
    *OF_THE_INTERFACE,
    *OF_LIMITS,
    *OF_CODE,
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
            "Properties": {"FunctionName": ref("GiftWrapFunction"), "MaximumRetryAttempts": 2},
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
