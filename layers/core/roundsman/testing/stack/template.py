"""A SAM template as a test needs it: its parameters, its plain CloudFormation, its functions' code.

`sam build` and `sam deploy` would package the code and have AWS transform the template; here the
code is read where the template says it lies, and SAM's own translator does the rest.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TypeAlias

from samtranslator.translator.transform import transform  # type: ignore[import-untyped]
from samtranslator.yaml_helper import yaml_parse  # type: ignore[import-untyped]

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
Document: TypeAlias = dict[str, Json]

CODE_BUCKET = "roundsman-test-code"
CODE_KEY = "function.zip"


class TemplateProblem(Exception):
    """The template cannot be put on moto as it is. The message says what to change."""


@dataclass(frozen=True)
class FunctionCode:
    """Where a function's code lies: `handler` (`app.handler`) in `folder`, beside its layers."""

    folder: Path
    handler: str
    layers: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Template:
    """A template file. `document` is what it says, its short intrinsics (`!Ref`) spelled out."""

    path: Path
    document: Document = field(repr=False, compare=False)

    @classmethod
    def read(cls, path: Path) -> "Template":
        """Raises TemplateProblem where there is no template there."""
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise TemplateProblem(f"there is no template at {path}: {error.strerror}") from error
        return cls(path, copy.deepcopy(_parsed(text, str(path))))

    def parameter_values(self, given: Mapping[str, str] | None = None) -> dict[str, str]:
        """The value of every parameter, as given or by default.

        Raises TemplateProblem for one that has neither, and for a value that has no parameter.
        """
        given, asked = given or {}, part(self.document, "Parameters")
        values = {
            name: str(mapping_of(parameter)["Default"])
            for name, parameter in asked.items()
            if "Default" in mapping_of(parameter)
        } | dict(given)
        if missing := sorted(asked.keys() - values.keys()):
            raise TemplateProblem(
                f"{self.path.name} asks for {', '.join(missing)}: give each a value "
                "(with pytest, in a fixture called roundsman_parameters)"
            )
        if unknown := sorted(given.keys() - asked.keys()):
            raise TemplateProblem(f"{self.path.name} has no parameter {', '.join(unknown)}")
        return values

    def translate(self, given: Mapping[str, str] | None = None) -> Document:
        """The plain CloudFormation that the template becomes, with its mappings looked up."""
        values = self.parameter_values(given)
        text = self.path.read_text(encoding="utf-8")
        return _translated(text, str(self.path), tuple(sorted(values.items())))

    def functions(self) -> dict[str, FunctionCode]:
        """The code of each function, by its logical id. Raises TemplateProblem where there is none.

        The folders are those of the sources: what a build would copy into them is not there, so
        libraries come from where the tests run.
        """
        everywhere = part(part(self.document, "Globals"), "Function")
        return {
            name: self._code_of(name, everywhere, part(mapping_of(resource), "Properties"))
            for name, resource in part(self.document, "Resources").items()
            if mapping_of(resource)["Type"] == "AWS::Serverless::Function"
        }

    def _code_of(self, name: str, everywhere: Document, own: Document) -> FunctionCode:
        both = {**everywhere, **own}
        handler = both.get("Handler")
        if not isinstance(handler, str) or "." not in handler:
            raise TemplateProblem(f"{name} needs a Handler such as app.handler")
        layers = (*_references(everywhere.get("Layers")), *_references(own.get("Layers")))
        found = [self._layer(layer) for layer in layers]
        return FunctionCode(self._folder(name, both.get("CodeUri")), handler, tuple(found))

    def _layer(self, name: str) -> Path:
        """Where a layer's modules lie: AWS puts its `python` folder on the path, if it has one."""
        resource = mapping_of(part(self.document, "Resources").get(name) or {})
        folder = self._folder(name, part(resource, "Properties").get("ContentUri"))
        return folder / "python" if (folder / "python").is_dir() else folder

    def _folder(self, name: str, uri: Json) -> Path:
        if isinstance(uri, str) and (folder := self.path.parent / uri).is_dir():
            return folder.resolve()
        raise TemplateProblem(f"the code of {name} must be a folder beside the template, not {uri}")


def mapping_of(value: Json) -> Document:
    """`value`, which must be an object: what the template says at some place."""
    if not isinstance(value, dict):
        raise TemplateProblem(f"this should be a mapping: {value}")
    return value


def part(document: Document, name: str) -> Document:
    """What stands under that name; empty where nothing does."""
    return mapping_of(document.get(name) or {})


def _references(layers: Json) -> list[str]:
    """The layers of this template that a list names; others (by ARN) hold nothing to run here."""
    listed = layers if isinstance(layers, list) else []
    return [str(each["Ref"]) for each in listed if isinstance(each, dict) and "Ref" in each]


@cache
def _parsed(text: str, path: str) -> Document:
    parsed = yaml_parse(text)
    if not isinstance(parsed, dict) or "Resources" not in parsed:
        raise TemplateProblem(f"{path} is no SAM template: it has no Resources")
    return parsed


@cache
def _translated(text: str, path: str, values: tuple[tuple[str, str], ...]) -> Document:
    template, given = copy.deepcopy(_parsed(text, path)), dict(values)
    for resource in map(mapping_of, part(template, "Resources").values()):
        properties = part(resource, "Properties")
        for place in ("CodeUri", "ContentUri"):  # what `sam package` puts there
            if place in properties:
                properties[place] = f"s3://{CODE_BUCKET}/{CODE_KEY}"
    translated = mapping_of(transform(template, given, _NoManagedPolicies()))
    tables = part(translated, "Mappings")
    translated["Resources"] = _look_up(translated["Resources"], tables, given)
    return translated


class _NoManagedPolicies:
    """What samtranslator asks for the addresses of AWS's own policies; none is needed here."""

    def load(self) -> dict[str, str]:
        return {}


def _look_up(value: Json, tables: Document, values: Mapping[str, str]) -> Json:
    """`value` with each Fn::FindInMap replaced: moto looks numbers up as numbers and finds none."""
    if isinstance(value, list):
        return [_look_up(item, tables, values) for item in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"Fn::FindInMap": [str(table), {"Ref": str(parameter)}, str(column)]}:
            row = mapping_of(part(tables, table)[values[parameter]])
            return row[column]
        case _:
            return {key: _look_up(item, tables, values) for key, item in value.items()}
