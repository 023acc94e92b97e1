"""Puts the nested stacks of a template into the template itself.

An application's template names `stacks/engine.yaml` once and `stacks/agent.yaml` for each agent.
CloudFormation makes a stack of each block. For moto, and for rules about the whole application, one
template with all of their resources is simpler: each parameter of a nested template is replaced by
the value that its block gives it, or by its default.

The resources of the engine keep their names. Those of another block are prefixed with the block's
name: `RequestQueue` of the block `Payment` becomes `PaymentRequestQueue`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from roundsman_dev.declared_parameter import DeclaredParameter

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
Document: TypeAlias = dict[str, Json]

APPLICATION = "AWS::Serverless::Application"
ENGINE_TEMPLATE = "engine.yaml"

_PLACEHOLDER = re.compile(r"\$\{(!?)([^}]*)\}")
_PATHS = ("CodeUri", "ContentUri")


class NestedProblem(Exception):
    """A nested stack cannot be put into its template. The message says what to change."""


def copied(value: Json) -> Json:
    """Return a copy of a template or of a part of it, much faster than `copy.deepcopy`."""
    if isinstance(value, dict):
        return {name: copied(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [copied(inner) for inner in value]
    return value


def flattened(
    document: Document,
    folder: Path,
    read: Callable[[Path], Document],
    settings: Mapping[str, str] | None = None,
) -> Document:
    """Return the template with the resources of its nested stacks, and without their blocks.

    `folder` is that of the template, `read` parses a nested template. `settings` has values of
    parameters of blocks (`Engine.DueShards`), which replace those that the template gives them.
    Raises NestedProblem if a block or a setting is wrong.
    """
    root, given = _mapping(copied(document)), dict(settings or {})
    resources = _mapping(root.get("Resources"))
    outputs: dict[tuple[str, str], Json] = {}
    for block, location in _ordered(root):
        properties = _mapping(_mapping(resources.pop(block)).get("Properties"))
        nested = _mapping(copied(read(folder / location)))
        values = {
            **_mapping(properties.get("Parameters")),
            **{
                name.partition(".")[2]: given.pop(name)
                for name in list(given)
                if name.startswith(f"{block}.")
            },
        }
        values = {
            name: _Scope("", {}, {}, outputs).rewrite(value) for name, value in values.items()
        }
        prefix = "" if PurePosixPath(location).name == ENGINE_TEMPLATE else block
        scope = _Scope(
            prefix,
            _parameters(block, location, nested, values),
            {name: f"{prefix}{name}" for name in _mapping(nested.get("Resources"))},
            {},
            _mapping(nested.get("Mappings")),
        )
        _add(root, nested, scope, PurePosixPath(location).parent)
        for name, output in _mapping(nested.get("Outputs")).items():
            outputs[block, name] = scope.rewrite(_mapping(output)["Value"])
    if given:
        raise NestedProblem(f"there is no block for the setting {', '.join(sorted(given))}")
    whole = _Scope("", {}, {}, outputs)
    for section in ("Resources", "Outputs"):
        if section in root:
            root[section] = whole.rewrite(root[section])
    return root


@dataclass(frozen=True)
class GivenBlock:
    """A block of a nested stack, and what it gives that stack."""

    name: str
    declared: Mapping[str, Document]
    """The parameters that the template of the nested stack declares."""
    given: Document
    """The values that the block gives them."""

    def objections(self) -> Iterator[str]:
        """Yield a sentence for each value that the nested stack does not take.

        CloudFormation finds it only when it makes that stack, minutes after the others. References
        are not judged.
        """
        for name, value in self.given.items():
            if name in self.declared and isinstance(value, str | int | float):
                text = str(value).lower() if isinstance(value, bool) else str(value)
                if objection := DeclaredParameter(self.declared[name]).objection(text):
                    yield f"{self.name}: {name} is {text!r}: {objection}"


def given_blocks(
    document: Document, folder: Path, read: Callable[[Path], Document]
) -> list[GivenBlock]:
    """Return the blocks of a template. `folder` and `read` are as for `flattened`."""
    found = []
    for block, location, given in blocks_of(document):
        asked = _mapping(read(folder / location).get("Parameters"))
        declared = {name: _mapping(one) for name, one in asked.items()}
        found.append(GivenBlock(block, declared, given))
    return found


def blocks_of(document: Document) -> Iterator[tuple[str, str, Document]]:
    """Yield each block of a nested template: its name, the file, and the parameters that it gives.

    Raises NestedProblem for a resource, or parameters, that are no mapping.
    """
    for name, resource in _mapping(document.get("Resources")).items():
        if _mapping(resource).get("Type") == APPLICATION:
            properties = _mapping(_mapping(resource).get("Properties"))
            location = properties.get("Location")
            if isinstance(location, str) and "://" not in location:
                yield name, location, _mapping(properties.get("Parameters"))


def _ordered(document: Document) -> list[tuple[str, str]]:
    """The blocks, each after the blocks whose outputs it needs."""
    blocks = {name: location for name, location, _ in blocks_of(document)}
    resources = _mapping(document.get("Resources"))
    needs = {
        name: {other for other in blocks if other != name and _names(resources[name], other)}
        for name in blocks
    }
    ordered: list[tuple[str, str]] = []
    while needs:
        ready = [name for name, others in needs.items() if not others & needs.keys()]
        if not ready:
            raise NestedProblem(f"these blocks need each other's outputs: {', '.join(needs)}")
        for name in ready:
            ordered.append((name, blocks[name]))
            del needs[name]
    return ordered


def _names(value: Json, block: str) -> bool:
    """Whether a value contains an output of the block."""
    match value:
        case {"Fn::GetAtt": [str(name), *_]}:
            return name == block
        case dict():
            return any(_names(inner, block) for inner in value.values())
        case list():
            return any(_names(inner, block) for inner in value)
        case _:
            return False


def _parameters(
    block: str, location: str, nested: Document, given: Mapping[str, Json]
) -> dict[str, Json]:
    """The value of each parameter of a nested template."""
    asked = _mapping(nested.get("Parameters"))
    if unknown := sorted(given.keys() - asked.keys()):
        raise NestedProblem(f"{block}: {location} has no parameter {', '.join(unknown)}")
    values = {
        name: _mapping(parameter)["Default"]
        for name, parameter in asked.items()
        if "Default" in _mapping(parameter)
    } | dict(given)
    if missing := sorted(asked.keys() - values.keys()):
        raise NestedProblem(f"{block}: {location} asks for {', '.join(missing)}")
    return {name: _typed(_mapping(asked[name]), value) for name, value in values.items()}


def _typed(parameter: Document, value: Json) -> Json:
    """The value of a parameter as a number, if that is its type; settings are text."""
    if parameter.get("Type") == "Number" and isinstance(value, str) and value.isdecimal():
        return int(value)
    return value


def _add(root: Document, nested: Document, scope: "_Scope", folder: PurePosixPath) -> None:
    """Add the sections of a nested template to the root."""
    everywhere = _mapping(_mapping(nested.get("Globals")).get("Function"))
    resources = _mapping(root["Resources"])
    for name, resource in _mapping(nested.get("Resources")).items():
        body = _mapping(resource)
        if body.get("Type") == "AWS::Serverless::Function":
            body["Properties"] = _merged(everywhere, _mapping(body.get("Properties")))
        found = _mapping(scope.rewrite(body))
        properties = _mapping(found.get("Properties"))
        for place in _PATHS:
            uri = properties.get(place)
            if isinstance(uri, str) and "://" not in uri:
                properties[place] = _normal(folder / uri)
        for place in ("Condition", "DependsOn"):
            if isinstance(named := found.get(place), str):
                found[place] = f"{scope.prefix}{named}"
        new = f"{scope.prefix}{name}"
        if new in resources:
            raise NestedProblem(
                f"two resources are named {new}; give one of the blocks another name, and its agent"
            )
        resources[new] = found
    for section in ("Conditions", "Mappings"):
        for name, value in _mapping(nested.get(section)).items():
            _mapping(root.setdefault(section, {}))[f"{scope.prefix}{name}"] = scope.rewrite(value)


def _normal(path: PurePosixPath) -> str:
    """`stacks/../functions/mail` as `functions/mail`."""
    parts: list[str] = []
    for each in path.parts:
        if each == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif each != ".":
            parts.append(each)
    return "/".join(parts)


def _merged(everywhere: Json, own: Json) -> Json:
    """The properties of a function with those of Globals: as SAM merges them."""
    if isinstance(everywhere, dict) and isinstance(own, dict):
        return {
            name: _merged(everywhere[name], own[name])
            if name in everywhere and name in own
            else copied(own.get(name, everywhere.get(name)))
            for name in {**everywhere, **own}
        }
    if isinstance(everywhere, list) and isinstance(own, list):
        return [*(copied(each) for each in everywhere), *own]
    return own


@dataclass(frozen=True)
class _Scope:
    """The names of one nested template, and what they are in the whole."""

    prefix: str
    parameters: Mapping[str, Json]
    resources: Mapping[str, str]
    outputs: Mapping[tuple[str, str], Json]
    """The outputs of the blocks that came before, by block and name; used in the root alone."""
    mappings: Mapping[str, Json] = field(default_factory=dict)

    def rewrite(self, value: Json) -> Json:  # noqa: PLR0911  # one case for each function
        """Return the value with every name of the nested template replaced."""
        match value:
            case {"Ref": str(name)} if name in self.parameters:
                return self.parameters[name]
            case {"Ref": str(name)}:
                resource, dot, part = name.partition(".")  # SAM: `Function.Alias`
                return {"Ref": f"{self.resources.get(resource, resource)}{dot}{part}"}
            case {"Fn::GetAtt": [str(name), str(attribute)]}:
                return self._attribute(name, attribute)
            case {"Fn::Sub": str(text)}:
                return self._substituted(text, {})
            case {"Fn::Sub": [str(text), dict(more)]}:
                return self._substituted(text, {n: self.rewrite(v) for n, v in more.items()})
            case {"Fn::FindInMap": [str(table), key, str(column)]}:
                return self._looked_up(table, self.rewrite(key), column)
            case {"Fn::If": [str(name), yes, no]}:
                return {"Fn::If": [f"{self.prefix}{name}", self.rewrite(yes), self.rewrite(no)]}
            case {"Fn::Select": [index, {"Fn::Split": [separator, joined]}]}:
                return self._selected(index, separator, self.rewrite(joined))
            case dict():
                return {name: self.rewrite(inner) for name, inner in value.items()}
            case list():
                return [self.rewrite(inner) for inner in value]
            case _:
                return value

    def _attribute(self, name: str, attribute: str) -> Json:
        kind, _, output = attribute.partition(".")
        if kind == "Outputs" and (name, output) in self.outputs:
            return self.outputs[name, output]
        return {"Fn::GetAtt": [self.resources.get(name, name), attribute]}

    def _looked_up(self, table: str, key: Json, column: str) -> Json:
        rows = _mapping(self.mappings.get(table))
        if isinstance(key, str | int) and str(key) in rows:
            return _mapping(rows[str(key)])[column]
        return {"Fn::FindInMap": [f"{self.prefix}{table}", key, column]}

    def _selected(self, index: Json, separator: Json, joined: Json) -> Json:
        match joined:
            case {"Fn::Join": [between, list(parts)]} if between == separator:
                return parts[int(str(index))]
            case _:
                return {"Fn::Select": [index, {"Fn::Split": [separator, joined]}]}

    def _substituted(self, text: str, more: Mapping[str, Json]) -> Json:
        values: dict[str, Json] = dict(more)

        def replace(found: re.Match[str]) -> str:
            name = found[2]
            if found[1] or name in more:
                return found[0]
            if name in self.parameters:
                return self._inline(name, self.parameters[name], values)
            resource, dot, attribute = name.partition(".")
            return f"${{{self.resources.get(resource, resource)}{dot}{attribute}}}"

        new = _PLACEHOLDER.sub(replace, text)
        if not _PLACEHOLDER.search(new):
            return new
        return {"Fn::Sub": [new, values]} if values else {"Fn::Sub": new}

    def _inline(self, name: str, value: Json, values: dict[str, Json]) -> str:
        match value:
            case str() | int() | float():
                return str(value)
            case {"Ref": str(other)}:
                return f"${{{other}}}"
            case {"Fn::GetAtt": [str(other), str(attribute)]}:
                return f"${{{other}.{attribute}}}"
            case _:
                values[name] = value
                return f"${{{name}}}"


def _mapping(value: Json) -> Document:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise NestedProblem(f"this should be a mapping: {value}")
    return value
