"""Reads a SAM template: its parameters, its CloudFormation form and the code of its functions.

`sam build` and `sam deploy` package the code and let AWS transform the template. Here the code is
read from the folders that the template names, and samtranslator transforms the template. Nested
stacks are put into the template (`roundsman_dev.nested_stacks`).
"""

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from unittest.mock import patch

import yaml
from samtranslator.translator.transform import transform  # type: ignore[import-untyped]
from samtranslator.yaml_helper import (  # type: ignore[import-untyped]
    intrinsics_multi_constructor,
)

from roundsman_dev.nested_stacks import (
    Document,
    GivenBlock,
    Json,
    NestedProblem,
    copied,
    flattened,
    given_blocks,
)

__all__ = [
    "CODE_BUCKET",
    "CODE_KEY",
    "ENGINE_FUNCTIONS",
    "Document",
    "FunctionCode",
    "GivenBlock",
    "Json",
    "Template",
    "TemplateProblem",
    "mapping_of",
    "part",
    "transformed",
]

CODE_BUCKET = "roundsman-test-code"
CODE_KEY = "function.zip"
ENGINE_FUNCTIONS = frozenset({"SubmissionFunction", "SchedulerFunction", "SupervisorFunction"})


class TemplateProblem(Exception):
    """The template cannot be deployed on moto. The message says what to change."""


@dataclass(frozen=True)
class FunctionCode:
    """The location of a function's code."""

    folder: Path
    handler: str
    """Module and function (`app.handler`)."""
    layers: tuple[Path, ...] = ()
    """The folders of its layers that are importable."""


@dataclass(frozen=True)
class Template:
    """A template file."""

    path: Path
    document: Document = field(repr=False, compare=False)
    """The parsed template, with short forms such as `!Ref` expanded and with the resources of its
    nested stacks."""
    written: Document = field(default_factory=dict, repr=False, compare=False)
    """The parsed template, with a block for each nested stack."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """The values of parameters of nested stacks that `document` was made with."""

    @classmethod
    def read(cls, path: Path, settings: Mapping[str, str] | None = None) -> "Template":
        """Read a template file.

        `settings` are values of parameters of nested stacks (`Engine.DueShards`). Raises
        TemplateProblem if there is no SAM template at `path`, or a nested stack or a setting is
        wrong.
        """
        return cls._read_by(_read, path, settings)

    @classmethod
    def _read_by(
        cls, read: Callable[[Path], Document], path: Path, settings: Mapping[str, str] | None
    ) -> "Template":
        try:
            written = read(path)
            document = flattened(written, path.parent, read, settings)
            return cls(path, document, written, settings or {})
        except NestedProblem as problem:
            raise TemplateProblem(f"{path.name}: {problem}") from problem

    def blocks(self) -> list[GivenBlock]:
        """Return the blocks of its nested stacks. Raises TemplateProblem if one is wrong."""
        try:
            return given_blocks(self.written, self.path.parent, _read)
        except NestedProblem as problem:
            raise TemplateProblem(f"{self.path.name}: {problem}") from problem

    def objections(self) -> list[str]:
        """Return a sentence for each value of a block that its nested stack does not take."""
        return [problem for block in self.blocks() for problem in block.objections()]

    @classmethod
    def kept(cls, path: Path, settings: Mapping[str, str] | None = None) -> "Template":
        """Like `read`, but the same object as last time if none of its files has changed.

        Nobody may change its documents.
        """
        key = (path.resolve(), *sorted((settings or {}).items()))
        if key in _kept:
            template, texts = _kept[key]
            if all(_text(file) == text for file, text in texts.items()):
                return template
        texts = {}

        def read(file: Path) -> Document:
            texts[file] = _text(file)
            return _read(file)

        template = cls._read_by(read, path, settings)
        _kept[key] = template, texts
        return template

    def parameter_values(self, given: Mapping[str, str] | None = None) -> dict[str, str]:
        """The value of every parameter: the given one, or else its default.

        Raises TemplateProblem if a parameter has no value, or a given name is not a parameter.
        """
        given = {name: value for name, value in (given or {}).items() if "." not in name}
        asked = part(self.document, "Parameters")
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

    def agents(self) -> list[str]:
        """The names of the agents: what their functions have as POWERTOOLS_SERVICE_NAME."""
        return [
            name
            for function, properties in self._functions()
            if function not in ENGINE_FUNCTIONS
            and isinstance(name := _variables(properties).get("POWERTOOLS_SERVICE_NAME"), str)
        ]

    def translate(self, given: Mapping[str, str] | None = None) -> Document:
        """The template in plain CloudFormation, with every Fn::FindInMap replaced by its value.

        `given` are values of its parameters, and of those of its nested stacks.
        """
        values = self.parameter_values(given)
        settings = settings_in(given)
        same = not settings or settings == self.settings
        document = self.document if same else Template.read(self.path, settings).document
        found = _translated(json.dumps(document), tuple(sorted(values.items())))
        return mapping_of(copied(found))

    def functions(self) -> dict[str, FunctionCode]:
        """The code of each function, by its logical id.

        The folders are source folders, without the libraries that a build would copy there; these
        are imported from the environment of the tests. Raises TemplateProblem if a function has no
        handler or its folder does not exist.
        """
        everywhere = part(part(self.document, "Globals"), "Function")
        return {
            name: self._code_of(name, everywhere, properties)
            for name, properties in self._functions()
        }

    def _functions(self) -> Iterator[tuple[str, Document]]:
        for name, resource in part(self.document, "Resources").items():
            if mapping_of(resource)["Type"] == "AWS::Serverless::Function":
                yield name, part(mapping_of(resource), "Properties")

    def _code_of(self, name: str, everywhere: Document, own: Document) -> FunctionCode:
        both = {**everywhere, **own}
        handler = both.get("Handler")
        if not isinstance(handler, str) or "." not in handler:
            raise TemplateProblem(f"{name} needs a Handler such as app.handler")
        layers = (*_references(everywhere.get("Layers")), *_references(own.get("Layers")))
        found = [self._layer(layer) for layer in layers]
        return FunctionCode(self._folder(name, both.get("CodeUri")), handler, tuple(found))

    def _layer(self, name: str) -> Path:
        """The importable folder of a layer: its subfolder `python` if it exists, as on AWS."""
        resource = mapping_of(part(self.document, "Resources").get(name) or {})
        folder = self._folder(name, part(resource, "Properties").get("ContentUri"))
        return folder / "python" if (folder / "python").is_dir() else folder

    def _folder(self, name: str, uri: Json) -> Path:
        if isinstance(uri, str) and (folder := self.path.parent / uri).is_dir():
            return folder.resolve()
        raise TemplateProblem(f"the code of {name} must be a folder beside the template, not {uri}")


def settings_in(given: Mapping[str, str] | None) -> dict[str, str]:
    """The values of parameters of nested stacks (`Engine.DueShards`) among those given."""
    return {name: value for name, value in (given or {}).items() if "." in name}


def _variables(properties: Document) -> Document:
    return part(part(properties, "Environment"), "Variables")


def mapping_of(value: Json) -> Document:
    """Returns `value` if it is a mapping. Raises TemplateProblem if it is not."""
    if not isinstance(value, dict):
        raise TemplateProblem(f"this should be a mapping: {value}")
    return value


def part(document: Document, name: str) -> Document:
    """The mapping under that name; empty if there is none."""
    return mapping_of(document.get(name) or {})


def _references(layers: Json) -> list[str]:
    """The logical ids of the layers in a list.

    Layers given by ARN are ignored, because their code is not in this template.
    """
    listed = layers if isinstance(layers, list) else []
    return [str(each["Ref"]) for each in listed if isinstance(each, dict) and "Ref" in each]


_kept: dict[tuple[object, ...], tuple[Template, dict[Path, str]]] = {}
"""Templates and the texts of their files, by path and settings."""


def _read(path: Path) -> Document:
    try:
        return mapping_of(copied(_parsed(_text(path))))
    except _TextProblem as problem:
        raise TemplateProblem(f"{path}{problem}") from None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise TemplateProblem(f"there is no template at {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise TemplateProblem(f"{path} is not text in UTF-8: save it as such") from error


class _TextProblem(Exception):
    """A text is not a SAM template. The message follows the path of its file."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Reads short forms such as `!Ref`. In C where PyYAML has it, which takes a tenth as long."""


_Loader.add_multi_constructor("!", intrinsics_multi_constructor)


@cache
def _parsed(text: str) -> Document:
    # By the text alone: an application that is copied to another folder is read once.
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if repeated := _repeated_key(node):
            raise _TextProblem(f", {repeated}")
        parsed = None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()
    if not isinstance(parsed, dict) or "Resources" not in parsed:
        raise _TextProblem(" is no SAM template: it has no Resources")
    return parsed


def _repeated_key(node: yaml.Node | None) -> str | None:
    """The first key that a mapping has twice, of which YAML's readers take the last value."""
    pending = [] if node is None else [node]
    while pending:
        each = pending.pop()
        if isinstance(each, yaml.SequenceNode):
            pending += each.value
        elif isinstance(each, yaml.MappingNode):
            seen = set[str]()
            for key, value in each.value:
                if str(key.value) in seen:
                    line = key.start_mark.line + 1
                    return f"line {line}: {key.value} is there twice; remove one of them"
                seen.add(str(key.value))
                pending.append(value)
    return None


@cache
def _translated(text: str, values: tuple[tuple[str, str], ...]) -> Document:
    template, given = mapping_of(json.loads(text)), dict(values)
    for resource in map(mapping_of, part(template, "Resources").values()):
        properties = part(resource, "Properties")
        for place in ("CodeUri", "ContentUri"):  # `sam package` sets these to URLs in S3
            if place in properties:
                properties[place] = f"s3://{CODE_BUCKET}/{CODE_KEY}"
    translated = transformed(template, given)
    tables = part(translated, "Mappings")
    translated["Resources"] = _look_up(translated["Resources"], tables, given)
    return translated


def transformed(template: Document, given: Mapping[str, str]) -> Document:
    """Return a SAM template in plain CloudFormation; the argument is changed.

    `given` are values of its parameters. Raises samtranslator's InvalidDocumentException.
    """
    # Nobody collects its metrics, of which it warns on standard error.
    logging.getLogger("samtranslator.metrics.metrics").setLevel(logging.ERROR)
    # samtranslator asks boto3 for a region, and the user need not have set one.
    region = os.environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    with patch.dict(os.environ, {"AWS_DEFAULT_REGION": region}):
        os.environ.pop("AWS_PROFILE", None)
        return mapping_of(transform(template, dict(given), _NoManagedPolicies()))


class _NoManagedPolicies:
    """The policy loader that samtranslator requires. It is empty: no managed policies are used."""

    def load(self) -> dict[str, str]:
        return {}


def _look_up(value: Json, tables: Document, values: Mapping[str, str]) -> Json:
    """`value` with each Fn::FindInMap replaced by its value.

    moto cannot do this: it looks up a number as a number, while the keys of mappings are text.
    Raises TemplateProblem for a parameter whose value has no row.
    """
    if isinstance(value, list):
        return [_look_up(item, tables, values) for item in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"Fn::FindInMap": [str(table), {"Ref": str(parameter)}, str(column)]}:
            rows, wanted = part(tables, table), values[parameter]
            if wanted not in rows:
                raise TemplateProblem(f"{parameter} is {wanted}: use one of {', '.join(rows)}")
            return mapping_of(rows[wanted])[column]
        case _:
            return {key: _look_up(item, tables, values) for key, item in value.items()}
