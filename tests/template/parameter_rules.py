"""Rules for the parameters of the nested templates; each returns its problems as sentences."""

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeAlias

from samtranslator.yaml_helper import yaml_parse  # type: ignore[import-untyped]

from roundsman.model.instants import MINUTE, SECOND
from roundsman.testing.rules.reading import (
    at,
    bounds,
    items,
    of_type,
    parameters,
    reference,
)
from roundsman.testing.stack.template import Document, Json, mapping_of, part
from tests.support.template_reading import rate_in_seconds

ParameterRule: TypeAlias = Callable[[Document], list[str]]
ADDRESSES = (
    "https://service.example.com",
    "http://127.0.0.1:8080",
    "http://localhost:8780/payments",
    "http://[::1]:8080",
    "https://example.com/services/v1",
)
NOT_ADDRESSES = (
    "https://example.com/",
    "ftp://example.com",
    "http://example.com",
    "http://10.0.0.7:8080",
    "http://127.0.0.1.example.com",
    "http://localhost.example.com",
    "example.com",
    "https://example.com?key=1",
    "https://example.com/a b",
)
LONGEST_DELAY = 900  # seconds; the longest delay of a message that SQS knows
SHORTEST_RATE = 60  # seconds; EventBridge Scheduler knows no shorter one

GIVEN = frozenset({"Stack", "Engine", "Agent", "Name", "Code", "CoreLayer", "WorkflowsLayer"})
"""The parameters that every block gives."""


STACKS = Path(__file__).parents[2] / "stacks"

FIXED = frozenset({"Stack", "Name", "Agent", "Code"})
"""Parameters that need not publish a version: with another name it is another stack or agent, and
with another folder the code is another one, which SAM publishes."""

REVISED = frozenset({"Credential", "ServiceCa", "Subnets", "SecurityGroups"})
"""Parameters whose values do not fit in a description: another Revision publishes a version."""

OF_NO_VERSION = frozenset({"Description", "VersionDescription", "Events", "EventInvokeConfig"})
"""Properties of a function that are not in its versions."""

LONGEST_DESCRIPTION = 256
NOT_KNOWN = LONGEST_DESCRIPTION + 1
LAYER = {6: 20, 7: 6}
"""Characters of the name and of the version in the ARN of a layer."""


def parameter_bounds(template: Document) -> list[str]:
    """Every parameter has bounds, a description, and a sentence for a value outside of them.

    CloudFormation then refuses a wrong value before it changes anything.
    """
    problems = []
    for name, parameter in parameters(template).items():
        if not str(parameter.get("Description", "")).strip():
            problems.append(f"{name} needs a Description")
        if name in GIVEN:
            continue
        listed = "AllowedValues" in parameter or "AllowedPattern" in parameter
        if not listed and not {"MinValue", "MaxValue"} <= set(parameter):
            problems.append(f"{name} needs AllowedValues, AllowedPattern, or MinValue and MaxValue")
        if not str(parameter.get("ConstraintDescription", "")).startswith("must be "):
            problems.append(f'{name}: ConstraintDescription must begin with "must be "')
    return problems


def defaults(template: Document) -> list[str]:
    """Every parameter that a block need not give has a default, which is within its bounds."""
    return [
        f"{name}: its default is not within its bounds"
        for name, parameter in parameters(template).items()
        if name not in GIVEN and not _is_within_bounds(parameter)
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


def address_patterns(template: Document) -> list[str]:
    """The address of a service is https, without query, fragment and final slash; or empty.

    Plain http is for the machine itself, as for `RemoteService`.

    Agents add paths to it.
    """
    parameter = parameters(template).get("ServiceUrl")
    if parameter is None:
        return []
    pattern = str(at(parameter, "AllowedPattern"))
    return [
        *(f"AllowedPattern must accept {a!r}" for a in ADDRESSES if not re.fullmatch(pattern, a)),
        *(
            f"AllowedPattern must not accept {a!r}"
            for a in NOT_ADDRESSES
            if re.fullmatch(pattern, a)
        ),
    ]


def lookups(template: Document) -> list[str]:
    """Each mapping has a row for every value of the parameter by which it is looked up, no other.

    CloudFormation would otherwise refuse an allowed value in the middle of a deployment.
    """
    problems = list[str]()
    for table, name in sorted(set(_every_lookup(part(template, "Resources")))):
        allowed = items(at(parameters(template).get(name), "AllowedValues"))
        if [str(value) for value in allowed] != list(part(part(template, "Mappings"), table)):
            problems.append(f"Mappings: the rows of {table} must be the AllowedValues of {name}")
    return problems


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


def instance_rows(template: Document) -> list[str]:
    """A MaximumConcurrency is looked up by its parameter: each row is that number, from 2 to 1000.

    2 and 1000 are the limits of Lambda.
    """
    return [
        f"Mappings: {table}: {value} must have the number itself"
        for table, column in sorted(set(_concurrency_tables(template)))
        for value, row in part(part(template, "Mappings"), table).items()
        if not _is_concurrency(at(row, column)) or str(at(row, column)) != value
    ]


def _is_concurrency(value: Json) -> bool:
    return isinstance(value, int) and 2 <= value <= 1000


def _concurrency_tables(value: Json) -> Iterator[tuple[str, str]]:
    """The mappings and columns that a MaximumConcurrency is looked up in."""
    match value:
        case {"MaximumConcurrency": {"Fn::FindInMap": [str(table), _, str(column)]}}:
            yield table, column
        case dict():
            for item in value.values():
                yield from _concurrency_tables(item)
        case list():
            for item in value:
                yield from _concurrency_tables(item)
        case _:
            pass


def visibility_bounds(template: Document) -> list[str]:
    """A message of the engine stays hidden for longer than its function can run, for all values of
    the two parameters; any message by default six times as long.

    Otherwise a message is handled twice at the same time. Lambda refuses a mapping whose queue has
    the shorter time. The bounds for an agent must fit every service, so they overlap: the rule
    `visibility` of an application compares the two values of each block.
    """
    of_the_engine = "SchedulerFunction" in part(template, "Resources")
    problems = list[str]()
    queues = of_type(template, "AWS::SQS::Queue")
    for name, function in of_type(template, "AWS::Serverless::Function").items():
        timeout = bounds(template, at(function, "Timeout"))
        for event in part(function, "Events").values():
            if at(event, "Type") != "SQS":
                continue
            queue = reference(at(event, "Properties", "Queue"))
            hidden = bounds(template, at(queues.get(queue), "VisibilityTimeout"))
            if timeout is None or hidden is None:
                problems.append(f"{queue}, {name}: their times need MinValue, Default and MaxValue")
            elif of_the_engine and hidden[0] <= timeout[2]:
                problems.append(
                    f"{queue}: its messages can be hidden for {hidden[0]} s, and {name} can run "
                    f"for {timeout[2]} s"
                )
            elif hidden[1] != 6 * timeout[1]:
                problems.append(
                    f"{queue}: its messages are hidden for {hidden[1]} s by default, not for "
                    f"{6 * timeout[1]} s"
                )
    return problems


def supervisor_interval(template: Document) -> list[str]:
    """For every value of SupervisorIntervalSeconds, the schedule's rate and the period of
    SupervisorHasNotRunAlarm are the interval; below a minute they are a minute.

    A shorter period would raise the alarm between two rounds. EventBridge knows no shorter rate, so
    one invocation makes several rounds. SchedulerBehindAlarm allows orders to wait for five
    minutes, and for three intervals at least: the attempt of a dead agent may be found one interval
    late, and be counted one interval later.
    """
    problems = list[str]()
    resources = part(template, "Resources")
    events = part(part(part(resources, "SupervisorFunction"), "Properties"), "Events")
    rates = [at(event, "Properties", "ScheduleExpression") for event in events.values()]
    period = at(resources, "SupervisorHasNotRunAlarm", "Properties", "Period")
    behind = at(resources, "SchedulerBehindAlarm", "Properties", "Threshold")
    for value in items(at(parameters(template).get("SupervisorIntervalSeconds"), "AllowedValues")):
        wanted = max(int(str(value)), SHORTEST_RATE)
        if [rate_in_seconds(_looked_up(template, rate, value)) for rate in rates] != [wanted]:
            problems.append(f"the supervisor's schedule must have a rate of {wanted} s at {value}")
        if _looked_up(template, period, value) != wanted:
            problems.append(f"SupervisorHasNotRunAlarm: Period must be {wanted} at {value}")
        most = max(5 * MINUTE, 3 * wanted * SECOND)
        if _looked_up(template, behind, value) != most:
            problems.append(f"SchedulerBehindAlarm: Threshold must be {most} at {value}")
    return problems


def _looked_up(template: Document, value: Json, interval: Json) -> Json:
    """What an Fn::FindInMap by SupervisorIntervalSeconds finds for that interval."""
    match value:
        case {
            "Fn::FindInMap": [str(table), {"Ref": "SupervisorIntervalSeconds"}, str(column)],
        }:
            return at(template, "Mappings", table, str(interval), column)
        case _:
            return None


def alarm_age_bounds(template: Document) -> list[str]:
    """OldestMessageAlarmSeconds of the engine is longer than any delay of a message and than any
    time for which a queue of the engine hides one, for all values.

    Else one redelivery would raise an alarm. The times of agents must fit every service, so they
    overlap: the rule `backlog_alarms` of an application compares those of each block.
    """
    age = bounds(template, {"Ref": "OldestMessageAlarmSeconds"})
    if "SchedulerFunction" not in part(template, "Resources"):
        return []
    hidden = [
        bounds(template, at(queue, "VisibilityTimeout"))
        for queue in of_type(template, "AWS::SQS::Queue").values()
    ]
    longest = max([LONGEST_DELAY, *(each[2] for each in hidden if each is not None)])
    if age is None or age[0] <= longest:
        return [f"OldestMessageAlarmSeconds: MinValue must be more than {longest}"]
    return []


def published_settings(template: Document) -> list[str]:
    """Each parameter that decides about a function is in the description of its versions.

    CloudFormation publishes a version if a property of AWS::Lambda::Version changes. SAM publishes
    one if the code or the text of a property changes, but not if the value of a parameter does.
    """
    problems = list[str]()
    for name, function in _whole_functions(template):
        kept = {key: value for key, value in function.items() if key not in OF_NO_VERSION}
        used = set(_decided_by(template, kept))
        described = set(_decided_by(template, function.get("VersionDescription")))
        revised = REVISED if "Revision" in described else frozenset[str]()
        problems += [
            f"{name}: VersionDescription needs {parameter}, on which the function depends"
            for parameter in sorted(used - described - FIXED - revised)
        ]
        if described - used - {"Revision"}:
            problems.append(f"{name}: the function does not depend on {sorted(described - used)}")
    return problems


def description_lengths(template: Document) -> list[str]:
    """The description of a version fits in Lambda's limit for all values of the parameters."""
    return [
        f"{name}: VersionDescription may have {size} characters, and Lambda takes 256"
        for name, function in _whole_functions(template)
        if (size := _longest(template, function.get("VersionDescription"))) > LONGEST_DESCRIPTION
    ]


def _whole_functions(template: Document) -> Iterator[tuple[str, Document]]:
    """Each function, its properties with those of Globals under their own names."""
    everywhere = part(part(template, "Globals"), "Function")
    for name, function in of_type(template, "AWS::Serverless::Function").items():
        yield name, {**function, "Globals": everywhere}


def _decided_by(template: Document, value: Json) -> Iterator[str]:
    """The parameters on which a value depends; those of the engine for a part of its output."""
    known = parameters(template)
    match value:
        case {"Fn::Select": [int(place), {"Fn::Split": [",", {"Ref": "Engine"}]}]}:
            engine, parts = _for_agents()
            yield from _decided_by(engine, parts[place])
        case {"Ref": str(name)}:
            yield from (name,) if name in known else ()
        case {"Fn::Sub": str(text)}:
            yield from (n for n in re.findall(r"\$\{([A-Za-z0-9]+)\}", text) if n in known)
        case {"Fn::If": [str(condition), *values]}:
            yield from _decided_by(template, part(template, "Conditions").get(condition))
            yield from _decided_by(template, values)
        case dict():
            for inner in value.values():
                yield from _decided_by(template, inner)
        case list():
            for inner in value:
                yield from _decided_by(template, inner)
        case _:
            pass


def _longest(template: Document, value: Json) -> int:
    """The most characters of a value for all values of the parameters."""
    match value:
        case {"Fn::Join": [str(between), list(values)]}:
            inner = sum(_longest(template, one) for one in values)
            return inner + len(between) * (len(values) - 1)
        case {"Fn::Select": [int(place), {"Fn::Split": [":", _]}]}:
            return LAYER[place]
        case {"Fn::Select": [int(place), {"Fn::Split": [",", {"Ref": "Engine"}]}]}:
            engine, parts = _for_agents()
            return _longest(engine, parts[place])
        case {"Ref": str(name)}:
            parameter = parameters(template)[name]
            listed = items(parameter.get("AllowedValues")) or [parameter.get("MaxValue")]
            lengths = [len(str(value)) for value in listed if value is not None]
            return max(lengths, default=int(str(parameter.get("MaxLength", NOT_KNOWN))))
        case _:
            return NOT_KNOWN


@cache
def _for_agents() -> tuple[Document, list[Json]]:
    """The template of the engine, and the parts of its output for agents."""
    engine = mapping_of(yaml_parse((STACKS / "engine.yaml").read_text(encoding="utf-8")))
    match at(engine, "Outputs", "ForAgents", "Value"):
        case {"Fn::Join": [",", list(parts)]}:
            return engine, parts
        case _:
            raise AssertionError("ForAgents must be a list")


RULES: tuple[ParameterRule, ...] = (
    parameter_bounds,
    defaults,
    address_patterns,
    lookups,
    instance_rows,
    visibility_bounds,
    alarm_age_bounds,
    supervisor_interval,
    published_settings,
    description_lengths,
)
