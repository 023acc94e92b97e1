"""Rules for the parameters of the nested templates; each returns its problems as sentences."""

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

from roundsman.testing.rules.reading import at, items, parameters
from roundsman.testing.stack.template import Document, Json, part

ParameterRule: TypeAlias = Callable[[Document], list[str]]
ADDRESSES = (
    "https://service.example.com",
    "http://127.0.0.1:8080",
    "https://example.com/services/v1",
)
NOT_ADDRESSES = (
    "https://example.com/",
    "ftp://example.com",
    "example.com",
    "https://example.com?key=1",
    "https://example.com/a b",
)


GIVEN = frozenset({"Stack", "Engine", "Agent", "Name", "Code", "CoreLayer", "WorkflowsLayer"})
"""The parameters that every block gives."""


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
    """The address of a service is http or https, without query, fragment and final slash; or empty.

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


RULES: tuple[ParameterRule, ...] = (parameter_bounds, defaults, address_patterns, lookups)
