"""Chooses the stack's parameters and checks them against the template."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from roundsman_console.base.errors import ConsoleError
from roundsman_dev.declared_parameter import DeclaredParameter
from roundsman_dev.nested_stacks import Document, NestedProblem, blocks_of
from roundsman_dev.sam import sam_module

SERVICE_URL = "ServiceUrl"


def parse_assignments(assignments: Sequence[str]) -> dict[str, str]:
    """Parse `Key=Value` texts into a mapping.

    Spaces around a key are ignored, and those of a value are kept. Raises ConsoleError if `=` or
    the key is missing, or a key is repeated.
    """
    found: dict[str, str] = {}
    for text in assignments:
        name, equals, value = text.partition("=")
        key = name.strip()
        if not equals or not key:
            raise ConsoleError(
                f"--param requires Key=Value, as in SupervisorIntervalSeconds=5, not {text!r}."
            )
        if key in found:
            raise ConsoleError(f"--param {key} is given twice.")
        found[key] = value
    return found


@dataclass(frozen=True)
class DeclaredTemplate:
    """The parameters of a template and of its nested stacks."""

    parameters: Mapping[str, DeclaredParameter] = field(default_factory=dict)
    """By name; those of a nested stack by block and name (`Engine.DueShards`)."""
    service_urls: Mapping[str, str] = field(default_factory=dict)
    """The parameter that has the base URL of an agent's remote service, by the agent's name."""


def declared_parameters(template: Path) -> DeclaredTemplate:
    """Return the parameters that a template and its nested stacks declare.

    Raises ConsoleError if one of them is unreadable.
    """
    document = read_template(template)
    found = _declared(document)
    urls: dict[str, str] = {}
    for name, location, given in blocks(template, document):
        nested = _declared(read_template(template.parent / location))
        for parameter, declared in nested.items():
            properties = dict(declared.properties)
            computed = isinstance(given.get(parameter), dict)
            if parameter in given:  # the block gives it
                value = given[parameter]
                properties["Default"] = value if isinstance(value, str | int) else ""
            found[f"{name}.{parameter}"] = DeclaredParameter(properties, computed)
        if SERVICE_URL in nested:
            reference = given.get(SERVICE_URL)
            root = reference.get("Ref") if isinstance(reference, dict) else None
            urls[str(given.get("Agent", name))] = (
                root if isinstance(root, str) else f"{name}.{SERVICE_URL}"
            )
    return DeclaredTemplate(found, urls)


def set_block_parameters(template: Path, values: Mapping[str, str]) -> None:
    """Write the values of nested stacks' parameters (`Engine.DueShards`) into a built template.

    SAM passes parameters to the root only. Raises ConsoleError if the template is unreadable.
    """
    of_blocks = {name: value for name, value in values.items() if "." in name}
    if not of_blocks:
        return
    document = read_template(template)
    for name, value in of_blocks.items():
        block, _, parameter = name.partition(".")
        document["Resources"][block]["Properties"].setdefault("Parameters", {})[parameter] = value
    template.write_text(sam_module("samcli.yamlhelper").yaml_dump(document), encoding="utf-8")


def read_template(template: Path) -> dict[str, Any]:
    """Return a parsed template. Raises ConsoleError if it cannot be read or is not valid YAML."""
    parse = sam_module("samcli.yamlhelper").yaml_parse
    try:
        parsed = parse(template.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConsoleError(f"Cannot read {template}: {error.strerror}.") from error
    except Exception as error:  # the parser's exception types are not known
        where = " ".join(str(error).split())
        raise ConsoleError(f"{template} is not valid YAML: {where}") from error
    return parsed if isinstance(parsed, dict) else {}


def blocks(template: Path, document: Document) -> list[tuple[str, str, Document]]:
    """Return the blocks of nested stacks in local files, as `blocks_of` yields them.

    `document` is what the template has. Raises ConsoleError if one is no mapping.
    """
    try:
        return list(blocks_of(document))
    except NestedProblem as problem:
        raise ConsoleError(f"{template}: {problem}.") from problem


def _declared(document: Mapping[str, Any]) -> dict[str, DeclaredParameter]:
    sections = document.get("Parameters")
    if not isinstance(sections, dict):
        return {}
    return {
        str(name): DeclaredParameter(body)
        for name, body in sections.items()
        if isinstance(body, dict)
    }


def architecture(machine: str | None = None) -> str:
    """Return Lambda's name for this machine's architecture.

    Raises ConsoleError if Lambda does not have this architecture.
    """
    machine = machine or platform.machine()
    names = {"x86_64": "x86_64", "arm64": "arm64", "aarch64": "arm64"}
    if machine not in names:
        raise ConsoleError(
            f"Lambda has no {machine} architecture, so its functions cannot run on this machine."
        )
    return names[machine]


def choose_parameters(
    template: DeclaredTemplate,
    asked: Mapping[str, str],
    services: str | None,
    runtime: str,
    *,
    stand_ins: str,
) -> dict[str, str]:
    """Return all parameters for the deployment.

    The values in `asked` take precedence over those from the machine and from `services`. Without
    `services`, the agents that have no address get that of the stand-ins, `stand_ins`.

    Raises ConsoleError if the template does not declare a name, or if a value is not valid.
    """
    declared = template.parameters
    # The tables of a local stack go with it, so nothing need ask for their protection.
    chosen = {
        "PythonRuntime": runtime,
        "Architecture": architecture(),
        "DeletionProtection": "false",
    }
    chosen = {name: value for name, value in chosen.items() if name in declared}
    # The emulator refuses an alarm with an expression.
    chosen |= {name: "0" for name in declared if name.endswith(".UndoneAlarmPercent")}
    if services is None:
        urls = [name for name in template.service_urls.values() if _has_no_address(declared, name)]
        chosen.update(dict.fromkeys(urls, stand_ins))
    else:
        chosen.update(dict.fromkeys(template.service_urls.values(), services.rstrip("/")))
    chosen.update(asked)
    for name, value in chosen.items():
        _check(declared, name, value)
    return chosen


def _has_no_address(declared: Mapping[str, DeclaredParameter], name: str) -> bool:
    return name in declared and not declared[name].default and not declared[name].computed


def _check(declared: Mapping[str, DeclaredParameter], name: str, value: str) -> None:
    if name not in declared:
        known = ", ".join(sorted(declared)) or "none"
        raise ConsoleError(f"template.yaml has no parameter {name}; it has: {known}.")
    objection = declared[name].objection(value)
    if objection is None and '"' in value:
        # SAM's syntax for parameter overrides cannot escape it.
        objection = "it must contain no double quote"
    if objection is not None:
        raise ConsoleError(f"The parameter {name} cannot be {value!r}: {objection}.")


def service_urls(template: DeclaredTemplate, chosen: Mapping[str, str]) -> dict[str, str]:
    """Return the base URL of each agent's remote service, by the agent's name."""
    declared = template.parameters.items()
    defaults = {name: each.default for name, each in declared if each.default is not None}
    urls = {**defaults, **chosen}
    return {agent: urls[name] for agent, name in template.service_urls.items() if urls.get(name)}
