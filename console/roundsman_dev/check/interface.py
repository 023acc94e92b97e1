"""The interface of a stack: the outputs that applications, operators and tests rely on."""

from collections.abc import Iterator, Mapping

from roundsman_dev.check.application import Application, Rule
from roundsman_dev.check.reading import STACK, agents, at, reference
from roundsman_dev.template import Json, part

REPLY_PREFIX = f"{STACK}-reply-"
OUTPUTS: Mapping[str, Json] = {
    "SubmissionQueueUrl": {"Ref": "SubmissionQueue"},
    "SchedulerQueueUrl": {"Ref": "SchedulerQueue"},
    "RejectedQueueUrl": {"Ref": "RejectedQueue"},
    "OrdersTableName": {"Ref": "OrdersTable"},
    "TasksTableName": {"Ref": "TasksTable"},
    "ControlTableName": {"Ref": "ControlTable"},
    "HistoryTableName": {"Ref": "HistoryTable"},
    "AlertTopicArn": {"Ref": "AlertTopic"},
    "ReplyQueuePrefix": {"Fn::Sub": REPLY_PREFIX},
    "SubmissionFunctionName": {"Ref": "SubmissionFunction"},
    "SchedulerFunctionName": {"Ref": "SchedulerFunction"},
    "SupervisorFunctionName": {"Ref": "SupervisorFunction"},
}


def outputs(application: Application) -> list[str]:
    """The stack has the outputs that the command line, the test kit and applications rely on, and
    each names its resource. An application may have more.
    """
    template = application.template
    return [
        f"the output {name} must be {reference(value) or REPLY_PREFIX}"
        for name, value in OUTPUTS.items()
        if at(template, "Outputs", name, "Value") != value
    ]


def agent_outputs(application: Application) -> list[str]:
    """Each agent has an output such as `GiftWrapAgent`, with its name, function and queues.

    Operators' tools and the client find an agent by it (`roundsman.aws.outputs`).
    """
    template, problems = application.template, list[str]()
    for agent in agents(template):
        joined = at(template, "Outputs", f"{agent.prefix}Agent", "Value", "Fn::Join")
        parts = joined[1] if isinstance(joined, list) and len(joined) == 2 else None
        wanted = [agent.function, *agent.request_queues, agent.reply_queue]
        found = [reference(part) for part in parts[1:5]] if isinstance(parts, list) else []
        if found != wanted or not isinstance(parts, list) or parts[:1] != [agent.name]:
            problems.append(
                f"the output {agent.prefix}Agent must be the Summary of the block {agent.prefix}"
            )
    return problems


def engine_settings(application: Application) -> list[str]:
    """The output EngineSettings has the settings of the engine, for operators' tools."""
    joined = at(application.template, "Outputs", "EngineSettings", "Value", "Fn::Join")
    if not isinstance(joined, list) or len(joined) != 2 or joined[0] != ",":
        return ["the output EngineSettings must be the Settings of the block Engine"]
    return []


def names(application: Application) -> list[str]:
    """No parameter has the name of a resource, and each Ref and GetAtt in the template names one
    that it has. CloudFormation refuses the template otherwise, at the deployment.
    """
    root, problems = application.root, list[str]()
    declared, resources = part(root, "Parameters"), part(root, "Resources")
    # SAM adds resources, such as the role of a function.
    known = {*declared, *resources, *part(application.template, "Resources")}
    problems += [
        f"{name} is a parameter and a block: rename one of them"
        for name in sorted(declared.keys() & resources.keys())
    ]
    for section in ("Resources", "Outputs"):
        for where, value in part(root, section).items():
            problems += [
                f"{where}: template.yaml has no {name}"
                for name in sorted(set(_named(value)))
                if name not in known and "::" not in name
            ]
    return problems


def _named(value: Json) -> Iterator[str]:
    """The names in each Ref and GetAtt of a value."""
    match value:
        case {"Ref": str(name)}:
            yield name.partition(".")[0]
        case {"Fn::GetAtt": [str(name), *_]}:
            yield name
        case {"Fn::GetAtt": str(name)}:
            yield name.partition(".")[0]
        case dict():
            for inner in value.values():
                yield from _named(inner)
        case list():
            for inner in value:
                yield from _named(inner)
        case _:
            pass


RULES: tuple[Rule, ...] = (
    outputs,
    agent_outputs,
    engine_settings,
    names,
)
