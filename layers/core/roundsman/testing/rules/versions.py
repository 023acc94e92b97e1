"""Versions: a function runs a published version, which has its code, layers and settings together.

A function's code and its configuration are updated by two calls, so `$LATEST` is for a time of
neither version. What invokes a function invokes its alias, which is moved once both are done
(docs/decisions/0092).
"""

from collections.abc import Iterator

from roundsman.aws.outputs import LIVE
from roundsman.testing.rules.application import Application, Rule
from roundsman.testing.rules.reading import (
    aliases,
    allowed_to,
    at,
    functions,
    items,
    mappings_in,
    of_type,
    reference,
    roles,
    texts,
)
from roundsman.testing.stack.template import Document, Json

FIRST, THEN = "SchedulerFunction", "SubmissionFunction"


def live_aliases(application: Application) -> list[str]:
    """Each function has one alias, `live`, of the version that the template publishes of it."""
    template, problems = application.template, list[str]()
    versions = of_type(template, "AWS::Lambda::Version")
    for function in functions(template):
        found = [
            (at(alias, "Name"), _version_of(at(alias, "FunctionVersion")))
            for name, alias in of_type(template, "AWS::Lambda::Alias").items()
            if aliases(template)[name] == function
        ]
        own = [
            (LIVE, name)
            for name, version in versions.items()
            if reference(at(version, "FunctionName")) == function
        ]
        if len(own) != 1 or found != own:
            problems.append(f"{function}: needs AutoPublishAlias: {LIVE}")
    return problems


def _version_of(value: Json) -> str:
    match value:
        case {"Fn::GetAtt": [str(name), "Version"]}:
            return name
        case _:
            return ""


def described_versions(application: Application) -> list[str]:
    """A version has the description of its function, and that says more than a fixed text.

    A version is published anew if its description changes, and refused if its function has not
    changed since the last one. So both change with the values of parameters, at the same time.
    """
    template, problems = application.template, list[str]()
    for version in of_type(template, "AWS::Lambda::Version").values():
        function = reference(at(version, "FunctionName"))
        described = at(version, "Description")
        if described != at(functions(template).get(function), "Description"):
            problems.append(f"{function}: VersionDescription must be its Description")
        if not isinstance(described, dict):
            problems.append(f"{function}: VersionDescription must have the values of parameters")
    return problems


def former_versions(application: Application) -> list[str]:
    """A deployment deletes no version of a function or a layer: a stack can go back to them."""
    template, problems = application.template, list[str]()
    for name in of_type(template, "AWS::Lambda::Version"):
        resource = at(template, "Resources", name)
        for policy in ("DeletionPolicy", "UpdateReplacePolicy"):
            if at(resource, policy) != "Retain":
                problems.append(f"{name}: {policy} must be Retain")
    for name in of_type(template, "AWS::Lambda::LayerVersion"):
        if at(template, "Resources", name, "DeletionPolicy") != "Retain":
            # The translator adds a hash of ten characters to the logical id of a layer.
            problems.append(f"{name[:-10]}: RetentionPolicy must be Retain")
    return problems


def invoked_aliases(application: Application) -> list[str]:
    """What invokes a function invokes its alias: event source mappings, schedules, rules of
    EventBridge and permissions; a role may invoke the alias, not the function.
    """
    template = application.template
    return [
        f"{where}: must invoke the alias {LIVE} of {reference(named)}"
        for where, named in _invocations(template)
        if reference(named) in functions(template)
    ]


def _invocations(template: Document) -> Iterator[tuple[str, Json]]:
    """What may name a function to invoke, and where it stands."""
    for kind in ("AWS::Lambda::EventSourceMapping", "AWS::Lambda::Permission"):
        for name, properties in of_type(template, kind).items():
            yield name, at(properties, "FunctionName")
    for name, schedule in of_type(template, "AWS::Scheduler::Schedule").items():
        yield name, at(schedule, "Target", "Arn")
    for name, rule in of_type(template, "AWS::Events::Rule").items():
        for target in mappings_in(at(rule, "Targets")):
            yield name, at(target, "Arn")
    for role in roles(template):
        for statement in allowed_to(template, role):
            if "lambda:InvokeFunction" in texts(at(statement, "Action")):
                for resource in items(at(statement, "Resource")):
                    yield role, resource


def invocation_settings(application: Application) -> list[str]:
    """The settings of a function's asynchronous invocations are those of its alias.

    Lambda applies the settings of the function itself to `$LATEST` only.
    """
    return [
        f"{name}: Qualifier must be {LIVE}"
        for name, config in of_type(application.template, "AWS::Lambda::EventInvokeConfig").items()
        if at(config, "Qualifier") != LIVE
    ]


def deployment_order(application: Application) -> list[str]:
    """Submission is updated after the scheduler's alias: new plans start once it can read them."""
    template = application.template
    wanted = [name for name, function in aliases(template).items() if function == FIRST]
    found = texts(at(template, "Resources", THEN, "DependsOn"))
    if not wanted or not set(wanted) <= set(found):
        return [f"{THEN}: DependsOn must be {FIRST}Alias{LIVE}"]
    return []


RULES: tuple[Rule, ...] = (
    live_aliases,
    described_versions,
    former_versions,
    invoked_aliases,
    invocation_settings,
    deployment_order,
)
