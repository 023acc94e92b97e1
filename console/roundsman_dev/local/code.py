"""Puts changed code into a running local stack without SAM: into its functions and its layers.

SAM copies the files of a function or of a layer as they are, beside what pip installs. So the copy
that it has built is changed in the same way, and Lambda gets it directly.
"""

import io
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roundsman.aws.outputs import LIVE
from roundsman_console.aws.local_record import LocalRecord
from roundsman_console.aws.resources import ENGINE, stack_resources
from roundsman_console.base.errors import ConsoleError
from roundsman_dev.local.deploy import emulator_session
from roundsman_dev.local.parameters import blocks, read_template

if TYPE_CHECKING:
    from mypy_boto3_lambda.type_defs import LayerVersionContentInputTypeDef

FUNCTION, LAYER = "AWS::Lambda::Function", "AWS::Lambda::LayerVersion"
ALIAS = "AWS::Lambda::Alias"
_SAM_FUNCTION, _SAM_LAYER = "AWS::Serverless::Function", "AWS::Serverless::LayerVersion"
BUILD_FILES = ("requirements.txt", "Makefile", "pyproject.toml")
"""Files that say how SAM builds a function or a layer, and are not copied."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """What SAM has built for one function or layer."""

    name: str
    """Of a function as `stack_resources` names it; of a layer, the layer's name."""
    is_layer: bool
    source: Path
    """The folder of its code, relative to the project."""
    built: Path
    """The folder into which SAM has built it."""

    def copy_of(self, changed: Path) -> Path | None:
        """Return the path of a file's copy in the artifact; None if SAM must build it anew.

        `changed` is in `source`. A layer's packages are in its folder `python`; a package that the
        artifact does not have may be one that its Makefile leaves out.
        """
        relative = changed.relative_to(self.source)
        if relative.name in BUILD_FILES:
            return None
        if not self.is_layer:
            return self.built / relative
        packages = self.built / "python"
        known = len(relative.parts) > 1 and (packages / relative.parts[0]).is_dir()
        return packages / relative if known else None


def artifacts(project: Path, built: Path, stack: str) -> list[Artifact]:
    """Return the artifacts of the project's template, which SAM has built into the folder `built`.

    `stack` is the name of the stack that is deployed. Raises ConsoleError if a template cannot be
    read.
    """
    template = project / "template.yaml"
    root = read_template(template)
    found = [
        Artifact(_named(layer.get("LayerName", name), stack), True, Path(source), built / name)
        for name, source, layer in _resources(root, _SAM_LAYER, "ContentUri", {})
    ]
    found += [
        Artifact(name, False, Path(source), built / name)
        for name, source, _ in _resources(root, _SAM_FUNCTION, "CodeUri", {})
    ]
    for block, location, given in blocks(template, root):
        nested = read_template(project / location)
        for name, source, _ in _resources(nested, _SAM_FUNCTION, "CodeUri", given):
            full_name = name if block == ENGINE else f"{block}{name}"
            folder = Path(os.path.normpath(Path(location).parent / source))
            found.append(Artifact(full_name, False, folder, built / block / name))
    return found


def _named(name: object, stack: str) -> str:
    """Return the name of a layer, which may contain that of its stack."""
    text = name.get("Fn::Sub") if isinstance(name, dict) else name
    return str(text).replace("${AWS::StackName}", stack)


def _resources(
    template: Mapping[str, Any], kind: str, uri: str, given: Mapping[str, object]
) -> Iterator[tuple[str, str, Mapping[str, object]]]:
    """Yield each resource of a kind whose folder is known: its name, its folder, its properties.

    `given` has the parameters of the template.
    """
    for name, resource in (template.get("Resources") or {}).items():
        if resource.get("Type") == kind:
            properties = resource.get("Properties") or {}
            where = properties.get(uri)
            if isinstance(where, dict):
                where = given.get(str(where.get("Ref")))
            if isinstance(where, str) and "://" not in where:
                yield name, where, properties


def code_change(
    files: Iterable[Path], known: Sequence[Artifact]
) -> Mapping[Path, Sequence[Artifact]] | None:
    """Return the artifacts that have a copy of each file; None if the project must be deployed.

    That is so if a file belongs to no function and no layer, or decides how one is built.
    """
    found = {}
    for file in files:
        found[file] = [each for each in known if file.is_relative_to(each.source)]
        if not found[file] or any(each.copy_of(file) is None for each in found[file]):
            return None
    return found


def python_files(project: Path) -> Iterator[Path]:
    """Yield the Python files of the functions and the layers, relative to the project."""
    for name in ("functions", "layers"):
        for path in sorted((project / name).rglob("*.py")):
            file = path.relative_to(project)
            if not any(part.startswith(".") for part in file.parts):
                yield file


def check_syntax(
    project: Path, files: Iterable[Path], then: str = "The code that runs stays."
) -> None:
    """Raise ConsoleError, which ends with `then`, for the first file that is not valid Python."""
    for file in files:
        source = project / file
        if file.suffix == ".py" and source.exists():
            try:
                compile(source.read_bytes(), str(file), "exec")
            except SyntaxError as error:
                raise ConsoleError(f"{file}, line {error.lineno}: {error.msg}. {then}") from error


def copy_files(project: Path, change: Mapping[Path, Sequence[Artifact]]) -> None:
    """Copy the changed files into their artifacts; remove the copies of removed ones."""
    copies = [(file, each.copy_of(file)) for file, owners in change.items() for each in owners]
    for file, target in copies:
        if target is None:  # not so for what `code_change` returns
            continue
        for compiled in (target.parent / "__pycache__").glob(f"{target.stem}.*.pyc"):
            compiled.unlink()  # Python does not compare it with its source
        if (project / file).exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((project / file).read_bytes())
        else:
            target.unlink(missing_ok=True)


def packed(folder: Path) -> bytes:
    """Return the files of a folder as a zip archive."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder))
    return content.getvalue()


class StackCode:
    """The functions of a running stack and their code. Its methods raise the errors of boto3.

    A function with an alias runs the version that the alias names, so each change is published and
    the alias is moved to it.
    """

    def __init__(self, record: LocalRecord) -> None:
        session = emulator_session(record)
        stacks = session.client("cloudformation", endpoint_url=record.endpoint)
        self._client = session.client("lambda", endpoint_url=record.endpoint)
        found = list(stack_resources(stacks, record.stack))
        self._functions = {each.name: each.physical_id for each in found if each.kind == FUNCTION}
        self._layers = [each.physical_id for each in found if each.kind == LAYER]
        # The physical id of an alias is its ARN, which ends with its function's name and its own.
        self._aliases = [each.physical_id for each in found if each.kind == ALIAS]

    def put(self, changed: Iterable[Artifact]) -> tuple[str, ...]:
        """Give the functions and layers the content of these artifacts.

        Returns the names of the functions that changed.
        """
        updated: set[str] = set()
        newest: dict[str, str] = {}
        for artifact in changed:
            code = packed(artifact.built)
            if artifact.is_layer:
                content: LayerVersionContentInputTypeDef = {"ZipFile": code}
                published = self._client.publish_layer_version(
                    LayerName=artifact.name, Content=content
                )
                newest[artifact.name] = published["LayerVersionArn"]
            elif artifact.name in self._functions:
                function = self._functions[artifact.name]
                self._client.update_function_code(FunctionName=function, ZipFile=code)
                updated.add(artifact.name)
        updated |= self._use_layers(newest)
        self._publish(updated)
        return tuple(sorted(updated))

    def put_back_layers(self) -> None:
        """Let each function use the layers that the stack has, not those of `put`."""
        self._publish(self._use_layers({_layer_name(arn): arn for arn in self._layers}))

    def _publish(self, names: Iterable[str]) -> None:
        """Publish these functions as they are now, and let their aliases name these versions."""
        for name in names:
            function = self._functions[name]
            if any(alias.endswith(f":{function}:{LIVE}") for alias in self._aliases):
                version = self._client.publish_version(FunctionName=function)["Version"]
                self._client.update_alias(FunctionName=function, Name=LIVE, FunctionVersion=version)

    def _use_layers(self, newest: Mapping[str, str]) -> set[str]:
        """Replace the versions of layers that functions use; return the functions that changed."""
        changed: set[str] = set()
        for name, function in self._functions.items() if newest else ():
            used = self._client.get_function_configuration(FunctionName=function).get("Layers", [])
            arns = [layer["Arn"] for layer in used if "Arn" in layer]
            wanted = [newest.get(_layer_name(arn), arn) for arn in arns]
            if wanted != arns:
                self._client.update_function_configuration(FunctionName=function, Layers=wanted)
                changed.add(name)
        return changed


def _layer_name(arn: str) -> str:
    return arn.split(":")[6]
