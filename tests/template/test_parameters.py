"""The parameters of our stacks: what must hold for all their values, not only for the defaults."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from roundsman.model.instants import MINUTE, SECOND
from roundsman_dev.check.reading import at, bounds, items, of_type, parameters, reference
from roundsman_dev.template import Document, Json, part
from tests.support.template_reading import rate_in_seconds
from tests.template.conftest import nested_template
from tests.template.faults import Check, Fault, drop, put, ref, sub
from tests.template.faults import fails_with as fails_with_of

GIVEN = frozenset({"Stack", "Engine", "Agent", "Name", "Code", "CoreLayer", "WorkflowsLayer"})
"""The parameters that every block gives."""


def fails_with(*faults: Fault) -> Callable[[Check], Callable[..., None]]:
    return fails_with_of(*faults, templates="nested")


def of_the_engine(fault: Fault) -> Fault:
    """The fault in the template of the engine; the others are in that of an agent."""
    return replace(fault, of=1)


@fails_with(
    drop("Parameters/TimeoutSeconds/MaxValue"),
    drop("Parameters/TimeoutSeconds/Description"),
    put("Parameters/Memory/ConstraintDescription", "wrong"),
)
def test_every_parameter_has_bounds_a_description_and_a_sentence_for_a_value_outside_of_them(
    template: Document,
) -> None:
    """CloudFormation then refuses a wrong value before it changes anything."""
    for name, parameter in parameters(template).items():
        assert str(parameter.get("Description", "")).strip(), name
        if name not in GIVEN:
            listed = "AllowedValues" in parameter or "AllowedPattern" in parameter
            assert listed or {"MinValue", "MaxValue"} <= set(parameter), name
            assert str(parameter.get("ConstraintDescription", "")).startswith("must be "), name


@fails_with(
    put("Parameters/TimeoutSeconds/Default", 1),
    put("Parameters/Concurrency/Default", 11),
    put("Parameters/CallsPerSecond/Default", "many"),
    drop("Parameters/Memory/Default"),
)
def test_every_parameter_that_a_block_need_not_give_has_a_default_within_its_bounds(
    template: Document,
) -> None:
    for name, parameter in parameters(template).items():
        assert name in GIVEN or _is_within_bounds(parameter), name


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


@fails_with(
    put("Parameters/ServiceUrl/AllowedPattern", r"^$|https?://[^\s?#]+"),
    put("Parameters/ServiceUrl/AllowedPattern", r"^$|https://[^\s?#]+[^/\s]"),
)
def test_the_address_of_a_service_is_https_without_query_fragment_and_final_slash(
    template: Document,
) -> None:
    """Or empty. Plain http is for the machine itself. Agents add paths to it."""
    if parameter := parameters(template).get("ServiceUrl"):
        pattern = str(at(parameter, "AllowedPattern"))
        accepted = [one for one in (*ADDRESSES, *NOT_ADDRESSES) if re.fullmatch(pattern, one)]
        assert accepted == [*ADDRESSES]


@fails_with(
    drop("Mappings/Instances/7"),
    of_the_engine(put("Mappings/SupervisorRounds/7", {"Rate": "rate(1 minute)", "Seconds": 60})),
)
def test_each_mapping_has_a_row_for_every_value_of_its_parameter_and_no_other(
    template: Document,
) -> None:
    """CloudFormation would otherwise refuse an allowed value in the middle of a deployment."""
    lookups = [lookup[:2] for lookup in _lookups(part(template, "Resources"))]
    assert lookups
    for table, name in lookups:
        allowed = items(at(parameters(template).get(name), "AllowedValues"))
        assert [str(value) for value in allowed] == list(part(part(template, "Mappings"), table))


def _lookups(value: Json) -> Iterator[tuple[str, str, str]]:
    """Each mapping that is looked up by a parameter, the parameter, and the column."""
    match value:
        case {"Fn::FindInMap": [str(table), {"Ref": str(name)}, str(column)]}:
            yield table, name, column
        case dict():
            for item in value.values():
                yield from _lookups(item)
        case list():
            for item in value:
                yield from _lookups(item)
        case _:
            pass


@fails_with(
    put("Mappings/Instances/20/Most", "20"),
    of_the_engine(put("Mappings/Instances/20/Most", 2)),
)
def test_the_row_of_a_maximum_concurrency_is_that_number_within_the_limits_of_lambda(
    template: Document,
) -> None:
    lookups = _lookups(part(template, "Resources"))
    used = {(table, column) for table, name, column in lookups if name.endswith("Concurrency")}
    assert used == {("Instances", "Most")}
    found = part(part(template, "Mappings"), "Instances")
    assert {value: at(row, "Most") for value, row in found.items()} == {n: int(n) for n in found}
    assert all(2 <= int(value) <= 1000 for value in found)


@fails_with(
    of_the_engine(put("Parameters/SubmissionVisibilitySeconds/MinValue", 15)),
    of_the_engine(put("Parameters/SchedulerVisibilitySeconds/MinValue", 20)),
    put("Parameters/VisibilitySeconds/Default", 200),
    drop("Function/Timeout"),
)
def test_a_message_is_hidden_for_six_times_as_long_as_its_function_can_run(
    template: Document,
) -> None:
    """And of the engine for longer, for all values of the two parameters. Otherwise a message is
    handled twice at the same time. Lambda refuses a mapping whose queue has the shorter time. The
    bounds for an agent must fit every service, so they overlap: the rule `visibility` of an
    application compares the two values of each block."""
    queues = of_type(template, "AWS::SQS::Queue")
    for name, function in of_type(template, "AWS::Serverless::Function").items():
        timeout = bounds(template, at(function, "Timeout"))
        for event in part(function, "Events").values():
            if at(event, "Type") == "SQS":
                queue = reference(at(event, "Properties", "Queue"))
                hidden = bounds(template, at(queues.get(queue), "VisibilityTimeout"))
                assert timeout is not None, name
                assert hidden is not None, queue
                assert hidden[1] == 6 * timeout[1], queue
                assert hidden[0] > timeout[2] or not _is_the_engines(template), queue


def _is_the_engines(template: Document) -> bool:
    return "SchedulerFunction" in part(template, "Resources")


LONGEST_DELAY = 900  # seconds; the longest delay of a message that SQS knows


@fails_with(of_the_engine(put("Parameters/OldestMessageAlarmSeconds/MinValue", 900)))
def test_no_redelivery_raises_the_alarm_on_the_oldest_message_of_the_engine(
    template: Document,
) -> None:
    """Its age is longer than any delay of a message and than any time for which a queue hides one,
    for all values. The times of agents must fit every service, so they overlap: the rule
    `backlog_alarms` of an application compares those of each block."""
    if _is_the_engines(template):
        age = bounds(template, ref("OldestMessageAlarmSeconds"))
        hidden = [
            bounds(template, at(queue, "VisibilityTimeout"))
            for queue in of_type(template, "AWS::SQS::Queue").values()
        ]
        assert age is not None
        assert age[0] > max([LONGEST_DELAY, *(each[2] for each in hidden if each is not None)])


SHORTEST_RATE = 60  # seconds; EventBridge Scheduler knows no shorter one


@fails_with(
    of_the_engine(put("Mappings/SupervisorRounds/300/Rate", "rate(50 minutes)")),
    of_the_engine(put("Mappings/SupervisorRounds/60/Rate", "rate(1 minutes)")),
    of_the_engine(put("Mappings/SupervisorRounds/3600/Seconds", 60)),
    of_the_engine(put("SupervisorHasNotRunAlarm/Period", 60)),
    of_the_engine(put("Mappings/SupervisorRounds/120/BehindMs", 300000)),
)
def test_rate_and_alarms_of_the_supervisor_fit_every_interval(template: Document) -> None:
    """The schedule's rate and the period of SupervisorHasNotRunAlarm are the interval; below a
    minute they are a minute. A shorter period would raise the alarm between two rounds. EventBridge
    knows no shorter rate, so one invocation makes several rounds. SchedulerBehindAlarm allows
    orders to wait for five minutes, and for three intervals at least: the attempt of a dead agent
    may be found one interval late, and be counted one interval later."""
    resources = part(template, "Resources")
    if not _is_the_engines(template):
        return
    [event] = part(part(part(resources, "SupervisorFunction"), "Properties"), "Events").values()
    rate = at(event, "Properties", "ScheduleExpression")
    period = at(resources, "SupervisorHasNotRunAlarm", "Properties", "Period")
    behind = at(resources, "SchedulerBehindAlarm", "Properties", "Threshold")
    for value in items(at(parameters(template).get("SupervisorIntervalSeconds"), "AllowedValues")):
        interval = max(int(str(value)), SHORTEST_RATE)
        assert rate_in_seconds(_looked_up(template, rate, value)) == interval
        assert _looked_up(template, period, value) == interval
        assert _looked_up(template, behind, value) == max(5 * MINUTE, 3 * interval * SECOND)


def _looked_up(template: Document, value: Json, interval: Json) -> Json:
    """What an Fn::FindInMap by SupervisorIntervalSeconds finds for that interval."""
    found = next(_lookups(value), None)
    if found is None or found[1] != "SupervisorIntervalSeconds":
        return None
    return at(template, "Mappings", found[0], str(interval), found[2])


# Versions. CloudFormation publishes a version if a property of AWS::Lambda::Version changes. SAM
# publishes one if the code or the text of a property changes, but not if the value of a parameter
# does.

FIXED = frozenset({"Stack", "Name", "Agent", "Code"})
"""Parameters that need not publish a version: with another name it is another stack or agent, and
with another folder the code is another one, which SAM publishes."""

REVISED = frozenset({"Credential", "ServiceCa", "Subnets", "SecurityGroups"})
"""Parameters whose values do not fit in a description: another Revision publishes a version."""

OF_NO_VERSION = frozenset(
    {
        "Description",
        "VersionDescription",
        "Events",
        "EventInvokeConfig",
        "ReservedConcurrentExecutions",
    }
)
"""Properties of a function that are not in its versions."""

EVERYWHERE = "Globals/Function/Environment/Variables/MORE"
OF_ENGINE: Json = {"Fn::Select": [14, {"Fn::Split": [",", ref("Engine")]}]}


@fails_with(
    put("Function/Environment/Variables/MORE", sub("of ${Concurrency}")),
    of_the_engine(put(EVERYWHERE, {"Fn::If": ["HasAlertEmail", "yes", "no"]})),
    put(EVERYWHERE, OF_ENGINE),
    put("Function/VersionDescription", ref("Memory")),
    of_the_engine(put("SchedulerFunction/VersionDescription", sub("${OldestMessageAlarmSeconds}"))),
)
def test_each_parameter_that_decides_about_a_function_is_in_the_description_of_its_versions(
    template: Document,
) -> None:
    for name, function in _whole_functions(template):
        kept = {key: value for key, value in function.items() if key not in OF_NO_VERSION}
        used = set(_decided_by(template, kept))
        described = set(_decided_by(template, function.get("VersionDescription")))
        revised = REVISED if "Revision" in described else frozenset[str]()
        assert described <= used | {"Revision"}, name
        assert used - FIXED - revised <= described, name


LONGEST_DESCRIPTION = 256
NOT_KNOWN = LONGEST_DESCRIPTION + 1
LAYER = {6: 20, 7: 6}
"""Characters of the name and of the version in the ARN of a layer."""


@fails_with(
    put("Parameters/ServiceUrl/MaxLength", 200),
    drop("Parameters/CallsPerSecond/MaxLength"),
    of_the_engine(put("SchedulerFunction/VersionDescription", sub("${AlertEmail}"))),
)
def test_the_description_of_a_version_fits_in_lambdas_limit_for_all_values(
    template: Document,
) -> None:
    for name, function in _whole_functions(template):
        longest = _longest(template, function.get("VersionDescription"))
        assert longest <= LONGEST_DESCRIPTION, name


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
        case {"Fn::If": [str(), str(yes), str(no)]}:
            return max(len(yes), len(no))
        case {"Ref": str(name)}:
            parameter = parameters(template)[name]
            listed = items(parameter.get("AllowedValues")) or [parameter.get("MaxValue")]
            lengths = [len(str(value)) for value in listed if value is not None]
            return max(lengths, default=int(str(parameter.get("MaxLength", NOT_KNOWN))))
        case _:
            return NOT_KNOWN


def _for_agents() -> tuple[Document, list[Json]]:
    """The template of the engine, and the parts of its output for agents."""
    engine = nested_template("engine.yaml")
    joined = at(engine, "Outputs", "ForAgents", "Value", "Fn::Join")
    assert isinstance(joined, list)
    return engine, items(joined[1])
