"""The interface of a stack: its parameters and its outputs."""

import re
from collections.abc import Iterator, Mapping

from roundsman.testing.rules.application import Application, Rule, compare
from roundsman.testing.rules.queues import REPLY_PREFIX
from roundsman.testing.rules.reading import (
    agents,
    at,
    items,
    mappings_in,
    of_type,
    parameters,
    reference,
    texts,
    variables,
)
from roundsman.testing.stack.template import Json, part

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
ADDRESSES = (
    "https://service.example.com",
    "http://127.0.0.1:8080",
    "https://example.com/services/v1",
)
NOT_ADDRESSES = (
    "https://example.com/",
    "ftp://example.com",
    "example.com",
    "",
    "https://example.com?key=1",
    "https://example.com/a b",
)


def parameter_bounds(application: Application) -> list[str]:
    """Every parameter has bounds, a description, and a sentence for a value outside of them.

    CloudFormation then refuses a wrong value before it changes anything.
    """
    problems = []
    for name, parameter in parameters(application.template).items():
        listed = "AllowedValues" in parameter or "AllowedPattern" in parameter
        if not listed and not {"MinValue", "MaxValue"} <= set(parameter):
            problems.append(f"{name} needs AllowedValues, AllowedPattern, or MinValue and MaxValue")
        if not str(parameter.get("Description", "")).strip():
            problems.append(f"{name} needs a Description")
        if not str(parameter.get("ConstraintDescription", "")).startswith("must be "):
            problems.append(f'{name}: ConstraintDescription must begin with "must be "')
    return problems


def defaults(application: Application) -> list[str]:
    """Every default is within its bounds."""
    return [
        f"{name}: its default is not within its bounds"
        for name, parameter in parameters(application.template).items()
        if "Default" in parameter and not _is_within_bounds(parameter)
    ]


def _is_within_bounds(parameter: Json) -> bool:
    match parameter:
        case {"Default": default, "AllowedValues": list(allowed)}:
            return default in allowed
        case {"Default": int(default), "MinValue": int(low), "MaxValue": int(high)}:
            return low <= default <= high
        case {"Default": str(default), "AllowedPattern": str(pattern)}:
            return re.fullmatch(pattern, default) is not None
        case _:
            return False


def _address_parameters(application: Application) -> list[str]:
    """The parameters that agents have as SERVICE_URL."""
    template = application.template
    found = [
        reference(variables(template, agent.function).get("SERVICE_URL"))
        for agent in agents(template)
    ]
    return [name for name in found if name]


def required_parameters(application: Application) -> list[str]:
    """The addresses of services are the only parameters without a default.

    `sam deploy --guided` asks for those, and no agent may call an address that nobody gave.
    """
    found = [n for n, p in parameters(application.template).items() if "Default" not in p]
    expected = _address_parameters(application)
    return compare("the parameters without a default", found, expected)


def address_patterns(application: Application) -> list[str]:
    """The address of a service is http or https, without query, fragment and final slash.

    Agents add paths to it.
    """
    problems = []
    for name in _address_parameters(application):
        pattern = str(at(parameters(application.template).get(name), "AllowedPattern"))
        problems += [
            f"{name}: AllowedPattern must accept {address}"
            for address in ADDRESSES
            if not re.fullmatch(pattern, address)
        ]
        problems += [
            f"{name}: AllowedPattern must not accept {address!r}"
            for address in NOT_ADDRESSES
            if re.fullmatch(pattern, address)
        ]
    return problems


def parameter_groups(application: Application) -> list[str]:
    """Every parameter is in one group of the form in the CloudFormation console."""
    template = application.template
    interface = at(template, "Metadata", "AWS::CloudFormation::Interface")
    groups = mappings_in(at(interface, "ParameterGroups"))
    grouped = [name for group in groups for name in texts(at(group, "Parameters"))]
    return compare("the parameters in groups", grouped, parameters(template))


def lookups(application: Application) -> list[str]:
    """Each mapping has a row for every value of the parameter by which it is looked up, no other.

    CloudFormation would otherwise refuse an allowed value in the middle of a deployment.
    """
    source, problems = application.source, list[str]()
    for table, name in sorted(_lookups(part(source, "Resources"))):
        allowed = items(at(parameters(source).get(name), "AllowedValues"))
        if [str(value) for value in allowed] != list(part(part(source, "Mappings"), table)):
            problems.append(f"Mappings: the rows of {table} must be the AllowedValues of {name}")
    return problems


def _lookups(value: Json) -> set[tuple[str, str]]:
    """The mappings that are looked up in, each with the parameter that is looked up."""
    return set(_every_lookup(value))


def _every_lookup(value: Json) -> Iterator[tuple[str, str]]:
    match value:
        case {"Fn::FindInMap": [str(table), {"Ref": str(name)}, _]}:
            yield table, name
        case dict():
            for item in value.values():
                yield from _every_lookup(item)
        case list():
            for item in value:
                yield from _every_lookup(item)
        case _:
            pass


def alert_email(application: Application) -> list[str]:
    """An address for alerts is optional: the subscription exists if AlertEmail is given."""
    template, problems = application.template, list[str]()
    if at(template, "Resources", "AlertEmailSubscription", "Condition") != "HasAlertEmail":
        problems.append("AlertEmailSubscription needs the condition HasAlertEmail")
    if at(parameters(template).get("AlertEmail"), "Default") != "":
        problems.append("the parameter AlertEmail must be empty by default")
    subscription = of_type(template, "AWS::SNS::Subscription").get("AlertEmailSubscription")
    if at(subscription, "Protocol") != "email":
        problems.append("AlertEmailSubscription: Protocol must be email")
    return problems


def outputs(application: Application) -> list[str]:
    """The stack has the outputs that the command line, the test kit and applications rely on, and
    each names its resource. An application may have more.
    """
    template = application.template
    expected = dict(OUTPUTS)
    for agent in agents(template):
        expected[f"{agent.prefix}FunctionName"] = {"Ref": agent.function}
        for queue in (*agent.request_queues, agent.reply_queue):
            expected[f"{queue}Url"] = {"Ref": queue}
    return [
        f"the output {name} must be {reference(value) or REPLY_PREFIX}"
        for name, value in expected.items()
        if at(template, "Outputs", name, "Value") != value
    ]


RULES: tuple[Rule, ...] = (
    parameter_bounds,
    defaults,
    required_parameters,
    address_patterns,
    parameter_groups,
    lookups,
    alert_email,
    outputs,
)
