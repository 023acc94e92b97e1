"""Reads what a project plans to deploy: samconfig.toml, the parameters and the template."""

import importlib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roundsman_console.base.errors import ConsoleError
from roundsman_console.facts.application import application_workflows
from roundsman_dev.declared_parameter import Declared
from roundsman_dev.local.parameters import blocks_of, read_template
from roundsman_dev.preflight.checks import PlannedStack
from roundsman_dev.preflight.open_orders import Function

if TYPE_CHECKING:  # it needs the packages of the extra `testing`
    from roundsman_dev.template import Document, Json

CONFIG = "samconfig.toml"
DOCUMENTATION = re.compile(r"(?:^|[/@.])example\.(?:com|net|org)\b")
"""The domains that are reserved for documentation (RFC 2606), which no service has."""

TOPIC = "AWS::SNS::Topic"
ORDER_QUEUE = "SubmissionQueue"
ANY_ADDRESS = "https://service.test"
"""In place of a value that is missing; these are the addresses of services."""


@dataclass(frozen=True)
class _Written:
    """A template as it is written, with its nested templates, each of which is read once."""

    root: Mapping[str, Any]
    blocks: Sequence[tuple[str, Mapping[str, Any], Mapping[str, Any]]]
    """The name of each block, the parameters that its template declares, and those it is given."""

    @classmethod
    def read(cls, template: Path) -> "_Written":
        """Raises ConsoleError if a template cannot be read."""
        root = read_template(template)
        declared: dict[str, Mapping[str, Any]] = {}
        blocks = []
        for name, location, given in blocks_of(root):
            if location not in declared:
                found = read_template(template.parent / location)
                declared[location] = found.get("Parameters") or {}
            blocks.append((name, declared[location], given))
        return cls(root, blocks)


def planned_stack(project: Path, environment: str, given: Mapping[str, str]) -> PlannedStack:
    """Return what `sam deploy --config-env ENVIRONMENT` would deploy from this folder.

    `given` are values that replace those of samconfig.toml. Raises ConsoleError if samconfig.toml
    or a template cannot be read, or if samconfig.toml names no stack.
    """
    settings = deploy_settings(project / CONFIG, environment)
    stack = settings.get("stack_name")
    if not isinstance(stack, str) or not stack:
        raise ConsoleError(f"{CONFIG} sets no stack_name in the environment {environment}.")
    template = project / "template.yaml"
    written = _Written.read(template)
    of_root = {name: Declared(each) for name, each in written.root.get("Parameters", {}).items()}
    parameters = parameter_overrides(settings, project) | dict(given)
    values = {
        name: parameters.get(name, ANY_ADDRESS if each.default is None else each.default)
        for name, each in of_root.items()
    }
    document = _translated(template, values)
    schedule_problems = _schedule_problems(document, values)  # it makes the workflows importable
    functions, functions_problem = _functions(project, document)
    known = _with_values(document, values)
    return PlannedStack(
        stack=stack,
        environment=environment,
        region=_text(settings, "region"),
        name_problems=list(_name_problems(written, stack)),
        parameter_problems=[
            *_parameter_problems(written, of_root, parameters),
            *schedule_problems,
        ],
        parameters=parameters,
        placeholders=[name for name, value in parameters.items() if DOCUMENTATION.search(value)],
        defaults={name: each.default for name, each in of_root.items() if each.default is not None},
        required=[name for name, each in of_root.items() if each.default is None],
        caps=_caps(known),
        others=_others(known),
        resources=list(written.root.get("Resources", {})),
        reserved=_reserved(known),
        alarm_at=_alarm_at(known),
        snap_starts=_snap_starts(known),
        impossible=_impossible(known),
        topic_keys=sorted(_topic_keys(document, values)),
        order_keys=sorted(_keys_of(document, values, ORDER_QUEUE)),
        event_services=_event_services(document, values),
        event_accounts=_event_accounts(document, values),
        functions=functions,
        functions_problem=functions_problem,
    )


def deploy_settings(path: Path, environment: str) -> Mapping[str, object]:
    """Return the parameters of `sam deploy` in an environment, with the global ones.

    `path` is that of samconfig.toml. Raises ConsoleError if it cannot be read or has no such
    environment.
    """
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConsoleError(f"There is no {CONFIG} beside template.yaml.") from error
    except (OSError, ValueError) as error:
        raise ConsoleError(f"{CONFIG} cannot be read: {error}.") from error
    found = read.get(environment)
    if not isinstance(found, dict):
        known = ", ".join(name for name, value in read.items() if isinstance(value, dict))
        raise ConsoleError(f"{CONFIG} has no environment {environment}; it has: {known}.")
    settings: dict[str, object] = {}
    for section in ("global", "deploy"):
        part = found.get(section, {})
        values = part.get("parameters", {}) if isinstance(part, dict) else {}
        settings |= values if isinstance(values, dict) else {}
    return settings


def _text(settings: Mapping[str, object], name: str) -> str | None:
    value = settings.get(name)
    return value if isinstance(value, str) and value else None


def parameter_overrides(settings: Mapping[str, object], project: Path) -> dict[str, str]:
    """Return the values of parameters, read as SAM reads them.

    Raises ConsoleError if they cannot be read, or the SAM CLI is not installed.
    """
    try:
        types = importlib.import_module("samcli.cli.types")
        usage = importlib.import_module("click").UsageError
    except ImportError as error:
        raise ConsoleError("This needs the SAM CLI: install roundsman[local].") from error
    try:
        found = types.CfnParameterOverridesType().convert(
            settings.get("parameter_overrides"), None, None, current_file=project / CONFIG
        )
    except (usage, OSError) as error:
        raise ConsoleError(f"parameter_overrides of {CONFIG}: {error}.") from error
    return {str(name): str(value) for name, value in found.items()}


def _name_problems(written: "_Written", stack: str) -> Iterator[str]:
    """Yield why a nested stack would refuse the name of the stack, each reason once."""
    seen = set[str]()
    for _, declared, given in written.blocks:
        for name, value in given.items():
            if isinstance(value, dict) and value.get("Ref") == "AWS::StackName":
                objection = Declared(declared.get(name, {})).objection(stack)
                constraint = declared.get(name, {}).get("ConstraintDescription", objection)
                if objection is not None and constraint not in seen:
                    seen.add(constraint)
                    yield f"stack_name {stack} {constraint}."


def _parameter_problems(
    written: "_Written", of_root: Mapping[str, Declared], given: Mapping[str, str]
) -> Iterator[str]:
    for name, value in given.items():
        if name not in of_root:
            known = ", ".join(sorted(of_root)) or "none"
            yield f"template.yaml has no parameter {name}; it has: {known}."
        elif objection := of_root[name].objection(value):
            yield f"{name} cannot be {value!r}: {objection}."
    nested = _nested_parameters(written)
    for name, each in of_root.items():
        handed = given.get(name, each.default)
        for where, declared in nested.get(name, ()) if handed is not None else ():
            if (refusal := declared.objection(str(handed))) is not None:
                yield f"{name} cannot be {handed!r}: {refusal} ({where})."


def _schedule_problems(document: "Document", values: Mapping[str, str]) -> list[str]:
    """Return what is wrong with schedules whose expression or order is a parameter of the root.

    The others are among the problems of `roundsman check`.
    """
    from roundsman_dev.check.schedules import schedule_problems

    workflows = application_workflows() or {}
    return schedule_problems(document, workflows.values(), values)


def _functions(project: Path, document: "Document") -> tuple[frozenset[Function], str]:
    """Return the functions of the agents that the template has, or why they cannot be read."""
    from roundsman_dev.check.project import ProjectProblem, read_agents
    from roundsman_dev.check.reading import agents

    try:
        found = read_agents(project)
    except ProjectProblem as problem:
        return frozenset(), str(problem)
    deployed = {agent.name for agent in agents(document)}
    return frozenset(
        Function(agent.name, step, operation)
        for agent in found.values()
        if agent.name in deployed
        for step, operation in agent.bound
    ), ""


def _nested_parameters(written: "_Written") -> dict[str, list[tuple[str, Declared]]]:
    """Return the parameters of nested stacks that each parameter of the root is handed to."""
    found: dict[str, list[tuple[str, Declared]]] = {}
    for block, declared, given in written.blocks:
        for name, value in given.items():
            root = value.get("Ref") if isinstance(value, dict) else None
            if isinstance(root, str) and isinstance(declared.get(name), dict):
                where = f"{block}.{name}"
                found.setdefault(root, []).append((where, Declared(declared[name])))
    return found


def _translated(template: Path, values: Mapping[str, str]) -> "Document":
    """Return the template as CloudFormation gets it. Raises ConsoleError if it cannot be made."""
    from samtranslator.model.exceptions import (  # type: ignore[import-untyped]
        InvalidDocumentException,
    )

    from roundsman_dev.template import Template, TemplateProblem

    try:
        return Template.read(template).translate(dict(values))
    except (TemplateProblem, InvalidDocumentException, KeyError) as error:
        raise ConsoleError(
            f"template.yaml cannot be translated with these parameters: {error}."
        ) from error


def _with_values(document: "Document", values: Mapping[str, str]) -> "Document":
    """Return the template with each parameter replaced by its value, so that conditions hold."""

    def replaced(value: "Json") -> "Json":
        match value:
            case {"Ref": str(name)} if name in values:
                return int(values[name]) if values[name].isdecimal() else values[name]
            case dict():
                return {name: replaced(inner) for name, inner in value.items()}
            case list():
                return [replaced(inner) for inner in value]
            case _:
                return value

    return {name: replaced(section) for name, section in document.items()}


def _caps(document: "Document") -> dict[str, int]:
    """Return the most instances of each event source mapping, by queue."""
    from roundsman_dev.check.reading import at, chosen, event_sources

    caps = dict[str, int]()
    for queue, _, mapping in event_sources(document):
        most = chosen(document, at(mapping, "ScalingConfig", "MaximumConcurrency"))
        if isinstance(most, int | str) and str(most).isdecimal():
            caps[queue] = int(most)
    return caps


def _others(document: "Document") -> int:
    from roundsman_dev.check.reading import event_sources, functions

    started = {function for _, function, _ in event_sources(document)}
    return len(set(functions(document)) - started)


def _event_services(document: "Document", values: Mapping[str, str]) -> list[str]:
    """Return the services whose events may become orders."""
    from roundsman_dev.check.service_events import event_services

    return event_services(document, values)


def _event_accounts(document: "Document", values: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the accounts whose events the template lists, each with the kinds of source."""
    from roundsman_dev.check.service_events import event_accounts

    return event_accounts(document, values)


def _reserved(document: "Document") -> int:
    from roundsman_dev.check.reading import at, chosen, functions

    found = [
        chosen(document, at(function, "ReservedConcurrentExecutions"))
        for function in functions(document).values()
    ]
    return sum(int(str(one)) for one in found if str(one).isdecimal())


def _alarm_at(document: "Document") -> int | None:
    from roundsman_dev.check.reading import chosen, is_made, of_type

    for name, alarm in of_type(document, "AWS::CloudWatch::Alarm").items():
        if alarm.get("MetricName") == "ClaimedAccountConcurrency" and is_made(document, name):
            threshold = str(chosen(document, alarm.get("Threshold")))
            return int(threshold) if threshold.isdecimal() else None
    return None


def _snap_starts(document: "Document") -> int:
    """Return how many functions begin from a snapshot."""
    from roundsman_dev.check.reading import at, chosen, functions

    return sum(
        chosen(document, at(function, "SnapStart", "ApplyOn")) == "PublishedVersions"
        for function in functions(document).values()
    )


def _impossible(document: "Document") -> list[str]:
    """Return what AWS refuses of the values: it finds it only when it makes the nested stack."""
    from roundsman_dev.check.application import Application
    from roundsman_dev.check.blocks import snapstart_runtimes, too_short
    from roundsman_dev.check.reading import at, bounds, event_sources, functions, queues

    found = snapstart_runtimes(Application(document, ()))
    for queue, function, _ in event_sources(document):
        timeout = bounds(document, at(functions(document).get(function), "Timeout"))
        hidden = bounds(document, at(queues(document).get(queue), "VisibilityTimeout"))
        if timeout is not None and hidden is not None:
            found += too_short(queue, function, hidden[0], timeout[2])
    return found


def _topic_keys(document: "Document", values: Mapping[str, str]) -> Iterator[str]:
    """Yield each key that encrypts a topic, and that the templates or a parameter name."""
    resources = document.get("Resources")
    for name, resource in (resources if isinstance(resources, dict) else {}).items():
        if isinstance(resource, dict) and resource.get("Type") == TOPIC:
            yield from _keys_of(document, values, name)


def _keys_of(document: "Document", values: Mapping[str, str], name: str) -> Iterator[str]:
    """Yield each key that may encrypt a topic or queue, and that a template or parameter names."""
    from roundsman_dev.check.reading import at

    key = at(document, "Resources", name, "Properties", "KmsMasterKeyId")
    yield from (text for text in _texts(key, values) if text and not text.startswith("alias/aws/"))


def _texts(value: object, values: Mapping[str, str]) -> Iterator[str]:
    """Yield the texts that a property may become: its own, or the values of parameters."""
    match value:
        case str():
            yield value
        case {"Ref": str(name)} if name in values:
            yield values[name]
        case {"Fn::If": [_, yes, no]}:
            yield from _texts(yes, values)
            yield from _texts(no, values)
        case _:
            return
