"""Reads what a project plans to deploy: samconfig.toml, the parameters and the template.

It needs the packages that come with the SAM CLI.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from samtranslator.model.exceptions import (  # type: ignore[import-untyped]
    InvalidDocumentException,
)
from yaml import YAMLError

from roundsman_console.base.errors import ConsoleError
from roundsman_console.facts.application import application_workflows
from roundsman_dev.changes.values import with_values
from roundsman_dev.check.application import ANY_ADDRESS, Application
from roundsman_dev.check.blocks import snapstart_runtimes, too_short
from roundsman_dev.check.project import ProjectProblem, read_agents
from roundsman_dev.check.reading import (
    agents,
    at,
    event_sources,
    functions,
    of_type,
    parameters,
    queues,
)
from roundsman_dev.check.schedules import schedule_problems
from roundsman_dev.check.service_events import event_accounts, event_services
from roundsman_dev.declared_parameter import DeclaredParameter
from roundsman_dev.preflight.checks import PlannedStack
from roundsman_dev.preflight.open_orders import Function
from roundsman_dev.sam import CONFIG, deploy_settings, parameter_overrides
from roundsman_dev.template import Document, GivenBlock, Json, Template, TemplateProblem, part

DOCUMENTATION = re.compile(r"(?:^|[/@.])example\.(?:com|net|org)\b")
"""The domains that are reserved for documentation (RFC 2606), which no service has."""

TOPIC = "AWS::SNS::Topic"
ORDER_QUEUE = "SubmissionQueue"


def planned_stack(project: Path, environment: str, given: Mapping[str, str]) -> PlannedStack:
    """Return what `sam deploy --config-env ENVIRONMENT` would deploy from this folder.

    `given` are values that replace those of samconfig.toml. Raises ConsoleError if samconfig.toml
    or a template cannot be read, or if samconfig.toml names no stack.
    """
    settings = deploy_settings(project / CONFIG, environment)
    stack, region = settings.get("stack_name"), settings.get("region")
    if not isinstance(stack, str) or not stack:
        raise ConsoleError(f"{CONFIG} sets no stack_name in the environment {environment}.")
    overrides = parameter_overrides(settings, project) | dict(given)
    try:
        template = Template.read(project / "template.yaml")
        blocks = template.blocks()
        of_root = {
            name: DeclaredParameter(each) for name, each in parameters(template.written).items()
        }
        values = {
            name: overrides.get(name, ANY_ADDRESS if each.default is None else each.default)
            for name, each in of_root.items()
        }
        translated = template.translate(values)
    except (TemplateProblem, InvalidDocumentException, YAMLError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise ConsoleError(
            f"template.yaml cannot be translated with these parameters: {reason}."
        ) from error
    made = with_values(translated, values)  # without what a condition leaves out
    known: Document = {
        "Resources": {name: {**one, "Condition": None} for name, one in made.items()}
    }
    workflows = application_workflows() or {}  # they are importable then
    performed, functions_problem = _functions(project, known)
    return PlannedStack(
        stack=stack,
        environment=environment,
        region=region if isinstance(region, str) and region else None,
        name_problems=list(_name_problems(blocks, stack)),
        parameter_problems=[
            *_parameter_problems(blocks, of_root, overrides),
            *schedule_problems(known, workflows.values()),
        ],
        parameters=overrides,
        placeholders=[name for name, value in overrides.items() if DOCUMENTATION.search(value)],
        defaults={name: each.default for name, each in of_root.items() if each.default is not None},
        required=[name for name, each in of_root.items() if each.default is None],
        caps={
            queue: most
            for queue, _, mapping in event_sources(known)
            if (most := _whole(at(mapping, "ScalingConfig", "MaximumConcurrency"))) is not None
        },
        others=len(functions(known).keys() - {function for _, function, _ in event_sources(known)}),
        resources=list(part(template.written, "Resources")),
        reserved=sum(
            _whole(function.get("ReservedConcurrentExecutions")) or 0
            for function in functions(known).values()
        ),
        alarm_at=_alarm_at(known),
        snap_starts=sum(
            at(function, "SnapStart", "ApplyOn") == "PublishedVersions"
            for function in functions(known).values()
        ),
        impossible=_impossible(known),
        topic_keys=sorted(key for name in of_type(known, TOPIC) for key in _keys_of(known, name)),
        order_keys=sorted(_keys_of(known, ORDER_QUEUE)),
        event_services=event_services(known),
        event_accounts=event_accounts(known),
        functions=performed,
        functions_problem=functions_problem,
    )


def _name_problems(blocks: Sequence[GivenBlock], stack: str) -> Iterator[str]:
    """Yield why a nested stack would refuse the name of the stack, each reason once."""
    seen = set[str]()
    for block in blocks:
        for name, value in block.given.items():
            if at(value, "Ref") == "AWS::StackName":
                declared = block.declared.get(name, {})
                objection = DeclaredParameter(declared).objection(stack)
                constraint = str(declared.get("ConstraintDescription", objection))
                if objection is not None and constraint not in seen:
                    seen.add(constraint)
                    yield f"stack_name {stack} {constraint}."


def _parameter_problems(
    blocks: Sequence[GivenBlock], of_root: Mapping[str, DeclaredParameter], given: Mapping[str, str]
) -> Iterator[str]:
    for name, value in given.items():
        if name not in of_root:
            known = ", ".join(sorted(of_root)) or "none"
            yield f"template.yaml has no parameter {name}; it has: {known}."
        elif objection := of_root[name].objection(value):
            yield f"{name} cannot be {value!r}: {objection}."
    for root, each in of_root.items():
        handed = given.get(root, each.default)
        for block in blocks if handed is not None else ():
            for name, declared in block.declared.items():
                if at(block.given.get(name), "Ref") != root:
                    continue
                if (refusal := DeclaredParameter(declared).objection(str(handed))) is not None:
                    yield f"{root} cannot be {handed!r}: {refusal} ({block.name}.{name})."


def _functions(project: Path, document: Document) -> tuple[frozenset[Function], str]:
    """Return the functions of the agents that the template has, or why they cannot be read."""
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


def _whole(value: Json) -> int | None:
    """The whole number that a text is; None for anything else."""
    return int(value) if isinstance(value, str) and value.isdecimal() else None


def _alarm_at(document: Document) -> int | None:
    for alarm in of_type(document, "AWS::CloudWatch::Alarm").values():
        if alarm.get("MetricName") == "ClaimedAccountConcurrency":
            return _whole(alarm.get("Threshold"))
    return None


def _impossible(document: Document) -> list[str]:
    """Return what AWS refuses of the values: it finds it only when it makes the nested stack."""
    found = snapstart_runtimes(Application(document, ()))
    for queue, function, _ in event_sources(document):
        timeout = _whole(at(functions(document).get(function), "Timeout"))
        hidden = _whole(at(queues(document).get(queue), "VisibilityTimeout"))
        if timeout is not None and hidden is not None:
            found += too_short(queue, function, hidden, timeout)
    return found


def _keys_of(document: Document, name: str) -> Iterator[str]:
    """Yield the key that encrypts a topic or queue, if it is known and of the application."""
    key = at(document, "Resources", name, "Properties", "KmsMasterKeyId")
    if isinstance(key, str) and key and not key.startswith("alias/aws/"):
        yield key
