"""Faults of an application, each with the rule of `roundsman check` that finds it; and additions.

An addition is what the rules allow an application to have besides the engine and its agents.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import TypeAlias

from roundsman import Agent, From, Step
from roundsman_dev.check import (
    Application,
    Rule,
    blocks,
    code,
    events,
    interface,
    limits,
    schedules,
    service_events,
)
from roundsman_dev.check.reading import STACK
from roundsman_dev.nested_stacks import copied
from roundsman_dev.template import Document, Json, mapping_of, part
from tests.support.other_application import present, thank
from tests.template.faults import Fault, allow, arn, drop, put, ref, sub

Change: TypeAlias = Callable[[Application], Application]


def changed(application: Application, change: Fault | Change) -> Application:
    """A copy of the application with this change."""
    template = mapping_of(copied(application.template))
    if isinstance(change, Fault):
        change.make(template)
        return replace(application, template=template)
    return change(replace(application, template=template))


def with_step(**values: object) -> Change:
    """Other values in the last step of the workflow."""
    step: Step = replace(thank, **values)  # type: ignore[arg-type]  # of any field
    workflow = replace(present, steps=(*present.steps[:-1], step))
    return lambda application: replace(application, workflows=(workflow,))


def with_search(*fields: str, with_index: bool = False) -> Change:
    """Fields by which orders are found, and a stack with an index for one of them, or for none."""
    holds: Json = {"Fn::Equals": [int(with_index), 1]}

    def make(application: Application) -> Application:
        indexed = changed(application, put("Conditions/Searches1", holds))
        return replace(indexed, workflows=(replace(present, search=fields),))

    return make


def with_code(*names: str) -> Change:
    """The code of these agents, which bind no step."""
    agents = {name: Agent(name) for name in names}
    return lambda application: replace(application, agents=agents)


def with_source(text: str) -> Change:
    """A module of an agent with this text."""
    sources = {"functions/agents/warehouse/app.py": text}
    return lambda application: replace(application, sources=sources)


def with_event(text: str) -> Change:
    """An event file with this text."""
    events = {"events/smoke/present.json": text}
    return lambda application: replace(application, events=events)


def with_events(*declared: From, listed: Json = "") -> Change:
    """A workflow that declares these events, and what SubmitterSources lists."""
    policy = "SubmissionQueuePolicy/PolicyDocument/Statement"

    def change(application: Application) -> Application:
        workflow = replace(present, events=declared)
        split: Json = {"Fn::Split": [",", listed]}
        admits: Document = {
            "Sid": "TakesEventsOfSources",
            "Condition": {"ArnLike": {"aws:SourceArn": split}},
        }
        made = changed(application, put(policy, [{"Fn::If": ["HasSources", admits, {}]}]))
        return replace(made, workflows=(workflow,))

    return change


def two_workflows_of(declared: From) -> Change:
    """Two workflows that declare the same events."""

    def change(application: Application) -> Application:
        made = with_events(declared, listed=BUCKET)(application)
        return replace(made, workflows=(*made.workflows, replace(made.workflows[0], name="again")))

    return change


def with_definition(text: str) -> Change:
    """A module of the workflows with this text."""
    definitions = {"layers/workflows/workflows/returns.py": text}
    return lambda application: replace(application, definitions=definitions)


def with_pydantic(submission: str) -> Change:
    """Workflows and an agent that import pydantic, with these libraries of submission alone."""
    return lambda application: replace(
        application,
        definitions={"layers/workflows/workflows/returns.py": "import pydantic.types"},
        sources={"functions/agents/warehouse/app.py": "from workflows.returns import x"},
        folders={"functions/agents/warehouse": "warehouse"},
        libraries={"functions/submission": submission},
    )


def with_folder(folder: str, agent: str) -> Change:
    return lambda application: replace(application, folders={folder: agent})


def with_registry(key: str, name: str) -> Change:
    return lambda application: replace(application, names_by_key={key: name})


def with_root(section: str, entries: Mapping[str, Json]) -> Change:
    """More entries in a section of the template as it is written."""

    def change(application: Application) -> Application:
        whole = {**part(application.root, section), **entries}
        return replace(application, root={**application.root, section: whole})

    return change


def with_many(section: str, number: int, size: int = 1) -> Change:
    """So many more entries of a section of the template as it is written."""
    return with_root(section, {f"More{n}": {"Description": "x" * size} for n in range(number)})


def with_many_resources(application: Application) -> Application:
    """As many agents as make too many resources of all stacks together."""
    more: Document = {f"More{n}": QUEUE for n in range(limits.ALL_RESOURCES)}
    resources = {**part(application.template, "Resources"), **more}
    return replace(application, template={**application.template, "Resources": resources})


def deleted_layer(application: Application) -> Application:
    """A layer whose former versions are deleted."""
    resources = part(application.template, "Resources")
    [name] = [name for name in resources if name.startswith("CoreLayer")]
    return changed(application, put(f"Resources/{name}/DeletionPolicy", "Delete"))


def snapshot_of_an_old_runtime(application: Application) -> Application:
    """An agent that begins from a snapshot, with a runtime that has none."""
    snapshot: Json = {"ApplyOn": "PublishedVersions"}
    older = changed(application, put("GiftWrapFunction/Runtime", "python3.11"))
    return changed(older, put("GiftWrapFunction/SnapStart", snapshot))


QUEUE: Document = {"Type": "AWS::SQS::Queue", "Properties": {}}
TOPIC, BUCKET = "arn:aws:sns:eu-west-1:123456789012:presents", "arn:aws:s3:::presents-*"
RULE = "arn:aws:events:eu-west-1:123456789012:rule/presents"
SERVICE_NAME = "GiftWrapFunction/Environment/Variables/POWERTOOLS_SERVICE_NAME"
CONCURRENCY = "BillingFunctionRequests/ScalingConfig/MaximumConcurrency"
NO_SIZE: Json = {"Fn::FindInMap": ["BillingInstances", 11, "Most"]}
ANOTHER_AGENT: Json = {"Fn::Join": [",", ["gift_wrap", ref("Other")]]}
GONE: Json = {"Fn::GetAtt": ["Gone", "Outputs.Summary"]}
FAULTS: Mapping[Rule, tuple[tuple[Fault | Change, str], ...]] = {
    blocks.step_agents: (
        (with_step(agent="heralds"), "present: thank: the template has no agent heralds"),
        (with_step(agent="", agents=("letters", "heralds")), "heralds"),
    ),
    blocks.agent_names: (
        (
            put("GiftWrapRequestQueue/QueueName", sub(f"{STACK}_BillingRequestQueue")),
            "GiftWrapRequestQueue: QueueName must be ${AWS::StackName}_GiftWrapRequestQueue",
        ),
        (drop("GiftWrapReplyQueue/QueueName"), "GiftWrapReplyQueue: QueueName"),
        (put(SERVICE_NAME, "wrapping"), "GiftWrapFunction: its agent must be named Wrapping"),
    ),
    blocks.agent_times: (
        (put("BillingFunction/Timeout", 300), "BillingFunction"),
        (with_step(complete_within=timedelta(seconds=40)), "LettersFunction"),
        (
            with_step(
                agent="", agents=("billing", "warehouse"), complete_within=timedelta(minutes=5)
            ),
            "WarehouseFunction",
        ),
        (drop("LettersFunction/Timeout"), "LettersFunction"),
        (put("LettersFunction/Timeout", 30), "LettersFunction"),
    ),
    blocks.visibility: (
        (
            put("GiftWrapRequestQueue/VisibilityTimeout", 30),
            "GiftWrapRequestQueue: its VisibilityTimeout can be 30 s",
        ),
        (
            put("GiftWrapRequestQueue/VisibilityTimeout", 40),
            "GiftWrapRequestQueue: its VisibilityTimeout can be 40 s",
        ),
        (
            drop("GiftWrapFunction/Timeout"),
            "GiftWrapRequestQueue: its VisibilityTimeout and the Timeout of GiftWrapFunction",
        ),
        (
            put("GiftWrapRequestQueue/VisibilityTimeout", 200),
            "GiftWrapRequestQueue: its VisibilityTimeout is 200 s",
        ),
        (drop("BillingReplyQueue/VisibilityTimeout"), "BillingReplyQueue"),
    ),
    blocks.snapstart_runtimes: (
        (snapshot_of_an_old_runtime, "GiftWrapFunction: Lambda has no SnapStart for python3.11"),
    ),
    blocks.backlog_alarms: (
        (
            put("GiftWrapRequestBacklogAlarm/Threshold", 60),
            "GiftWrapRequestBacklogAlarm: Threshold is 60",
        ),
        (
            put("Conditions/BillingHasOwnAge", {"Fn::Not": [{"Fn::Equals": [0, 0]}]}),
            "BillingRequestBacklogAlarm: Threshold is 1200",
        ),
    ),
    blocks.concurrency: (
        (drop("GiftWrapFunctionRequests/ScalingConfig"), "GiftWrapRequestQueue"),
        (put(CONCURRENCY, "10"), "BillingRequestQueue"),
        (put(CONCURRENCY, 1), "BillingRequestQueue"),
        (put(CONCURRENCY, NO_SIZE), "BillingRequestQueue"),
    ),
    blocks.service_addresses: (
        (
            put("GiftWrapFunction/Environment/Variables/SERVICE_URL", "wrap.example.com"),
            "GiftWrapFunction: ServiceUrl must be an address",
        ),
    ),
    blocks.search_indexes: (
        (
            with_search("input.child", "input.gift.size"),
            "present: orders are found by 2 of their fields, and the orders have 0 indexes",
        ),
        (
            with_search("input.child", "input.gift.size", with_index=True),
            "the orders have 1 indexes for that: set SearchFields of the engine's block to 2",
        ),
    ),
    blocks.layers: (
        (put("GiftWrapFunction/Layers", [ref("CoreLayer0123456789")]), "GiftWrapFunction"),
        (
            put(
                "SupervisorFunction/Layers",
                [ref("CoreLayer0123456789"), ref("WorkflowsLayer0123456789")],
            ),
            "SupervisorFunction",
        ),
        (deleted_layer, "CoreLayer: RetentionPolicy must be Retain"),
    ),
    interface.outputs: (
        (
            drop("Outputs/ReplyQueuePrefix"),
            "the output ReplyQueuePrefix must be ${AWS::StackName}-reply-",
        ),
        (put("Outputs/ReplyQueuePrefix/Value", sub(f"{STACK}-")), "ReplyQueuePrefix"),
        (
            put("Outputs/OrdersTableName/Value", ref("TasksTable")),
            "the output OrdersTableName must be OrdersTable",
        ),
    ),
    interface.agent_outputs: (
        (drop("Outputs/GiftWrapAgent"), "the output GiftWrapAgent"),
        (
            put("Outputs/GiftWrapAgent/Value", ANOTHER_AGENT),
            "the output GiftWrapAgent must be the Summary of the block GiftWrap",
        ),
    ),
    interface.engine_settings: (
        (drop("Outputs/EngineSettings"), "the output EngineSettings"),
        (put("Outputs/EngineSettings/Value", ref("TasksTable")), "the output EngineSettings"),
    ),
    interface.names: (
        (
            with_root("Parameters", {"Engine": {"Type": "String"}}),
            "Engine is a parameter and a block: rename one of them",
        ),
        (
            with_root("Outputs", {"Other": {"Value": GONE}}),
            "Other: template.yaml has no Gone",
        ),
        (
            with_root("Outputs", {"Other": {"Value": [ref("Gone")]}}),
            "Other: template.yaml has no Gone",
        ),
    ),
    limits.template_sizes: (
        (with_many("Resources", 500), "resources, and CloudFormation"),
        (with_many("Outputs", 200), "outputs, and CloudFormation"),
        (with_many("Parameters", 200), "parameters, and CloudFormation"),
        (with_many("Metadata", 1, 1_000_000), "bytes, and CloudFormation"),
        (with_many_resources, "resources with its nested stacks"),
    ),
    code.known_agents: ((with_code(), "present: there is no code of the agent warehouse"),),
    code.bound_steps: (
        (
            with_code("warehouse"),
            "agent 'warehouse': step 'fetch' of workflow 'present' has no function",
        ),
        (
            with_code("warehouse"),
            "step 'fetch' of workflow 'present' has a compensation but no function",
        ),
    ),
    code.agent_folders: (
        (
            with_folder("functions/agents/shelf", "warehouse"),
            "functions/agents/shelf/app.py defines the agent warehouse",
        ),
    ),
    code.registry_keys: (
        (
            with_registry("gift", "present"),
            "WORKFLOWS of registry.py has present under the key 'gift'",
        ),
    ),
    code.defined_names: (
        (
            with_source("def fetch(request):\n    return _create(request)\n"),
            "functions/agents/warehouse/app.py:2: there is no _create",
        ),
    ),
    code.typed_errors: (
        (
            with_source("raise PermanentError('the shelf is empty')"),
            "functions/agents/warehouse/app.py:1: PermanentError has a sentence in place of its",
        ),
    ),
    code.registered_workflows: (
        (
            with_definition("returns = Workflow(name='returns', steps=())"),
            "returns.py: the workflow returns is not in WORKFLOWS of registry.py",
        ),
    ),
    code.shipped_models: (
        (
            with_definition("from pydantic import BaseModel"),
            "functions/submission/requirements.txt must name pydantic, which the workflows import",
        ),
        (
            with_pydantic("pydantic-settings\npydanticx\n"),
            "functions/submission/requirements.txt must name pydantic, which the workflows import",
        ),
        (
            with_pydantic("pydantic>=2\n"),
            "functions/agents/warehouse/requirements.txt must name pydantic, which the workflows",
        ),
    ),
    blocks.values: (
        (
            lambda application: replace(application, objections=("Billing: Name is 'x': it must",)),
            "Billing: Name is 'x': it must",
        ),
    ),
    events.events: (
        (with_event("{"), "events/smoke/present.json would be rejected: not JSON"),
        (
            with_event('{"orderId": "smoke-$ORDER_ID", "processing": {"workflow": "gone"}}'),
            "events/smoke/present.json would be rejected: processing.workflow: ",
        ),
        (
            with_event('{"orderId": "smoke", "cancel": {"reason": "r"}}'),
            "events/smoke/present.json is a cancellation: write an order event",
        ),
        (
            with_event('{"orderId": "smoke", "signal": {"id": "s", "name": "paid"}}'),
            "events/smoke/present.json is a signal: write an order event",
        ),
    ),
    service_events.service_events: (
        (
            with_events(From(topic="presents")),
            "present: From(topic='presents') can never come: SubmitterSources of the block Engine "
            "lists no topic of SNS",
        ),
        (with_events(From(source="shop"), listed=BUCKET), "lists no rule of EventBridge"),
        (with_events(From(topic="x"), listed=BUCKET), "lists no topic of SNS"),
        (with_events(From(bucket="x"), listed=RULE), "lists no bucket of S3"),
        (
            with_events(From(bucket="x"), listed=sub("arn:${AWS::Partition}:events:a:1:rule/x")),
            "lists no bucket of S3",
        ),
        (
            two_workflows_of(From(bucket="x")),
            "again: From(bucket='x') is declared by present, too, which takes every such event",
        ),
        (
            with_events(listed=f"arn:aws:sns:a:{'1' * 12}:x,arn:aws:events:a:{'2' * 12}:rule/x"),
            "SubmitterSources of the block Engine lists sources of the accounts 111111111111 and "
            "222222222222: ",
        ),
    ),
    schedules.schedules: (
        (
            put("AlertHeartbeat/ScheduleExpression", "cron(0 9 * * MON *)"),
            "AlertHeartbeatSchedule is 'cron(0 9 * * MON *)': exactly one of day-of-month",
        ),
        (
            put("GreetingsRecurringOrder/Target/Input", "{"),
            "Greetings: Order would be rejected: not JSON",
        ),
        (
            put("GreetingsRecurringOrder/Target/Arn", arn("SchedulerQueue")),
            "Greetings: Engine must be !GetAtt Engine.Outputs.ForSchedules",
        ),
    ),
}
ALL_FAULTS = [(rule, *fault) for rule, faults in FAULTS.items() for fault in faults]


def table_of_an_agent(application: Application) -> Application:
    """A table that only one agent uses."""
    table: Document = {"Type": "AWS::DynamoDB::Table", "Properties": {"BillingMode": "PROVISIONED"}}
    application = changed(application, put("Resources/GiftWrapTable", table))
    return changed(application, allow("GiftWrapRole", "dynamodb:Scan", arn("GiftWrapTable")))


def resource(kind: str, **properties: Json) -> Document:
    return {"Type": kind, "Properties": {**properties}}


THREE_LAYERS: list[Json] = [
    ref(f"{layer}0123456789") for layer in ("CoreLayer", "WorkflowsLayer", "PaperLayer")
]
ADDITIONS: Mapping[str, Fault | Change] = {
    "an agent without an address": put(
        "LettersFunction/Environment/Variables/SERVICE_URL", ""
    ),  # its service is one of AWS
    "a table of an agent": table_of_an_agent,
    "a variable of an agent": put("GiftWrapFunction/Environment/Variables/PAPER", "red"),
    "a layer of an agent": put("GiftWrapFunction/Layers", THREE_LAYERS),
    "a service of AWS": allow("GiftWrapRole", "ses:SendEmail", "arn:aws:ses:::identity/x.example"),
    "a field of search with its index": with_search("input.child", with_index=True),
    "a queue": put("Resources/NewsQueue", QUEUE),
    "an alarm": put(
        "Resources/NewsAlarm",
        resource("AWS::CloudWatch::Alarm", MetricName="NewsLost", AlarmActions=[]),
    ),
    "a role": put("Resources/NewsRole", resource("AWS::IAM::Role", RoleName="news")),
    "another topic": put("Resources/NewsTopic", resource("AWS::SNS::Topic", TopicName="news")),
    "an output": put("Outputs/NewsTopicArn", {"Value": ref("NewsTopic")}),
    "the longest retention": put("LettersReplyQueue/MessageRetentionPeriod", 7 * 86400),
    "every start in the log": put("SchedulerFunction/LoggingConfig/SystemLogLevel", "INFO"),
}
