"""Packages the built project as `sam deploy` does, and expands its templates here.

AWS makes no change set of nested stacks whose templates have macros, which `AWS::Serverless` is. So
the templates are put into plain CloudFormation first, by the same library that AWS uses.
"""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from roundsman_console.base.errors import ConsoleError
from roundsman_console.base.process import ProgramRunner, run_program
from roundsman_console.base.project_folder import cache_folder
from roundsman_dev.changes.live import parsed_template
from roundsman_dev.changes.values import mapping_of
from roundsman_dev.changes.whole import StackTemplate
from roundsman_dev.nested_stacks import APPLICATION, Document
from roundsman_dev.sam import SamCli

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

BUILT = Path(".aws-sam/build/template.yaml")
"""Where `sam build` writes, relative to the project."""
VERSION = "AWS::Lambda::Version"
_SERVERLESS = "AWS::Serverless-2016-10-31"
_HANDED_ON = {"s3_bucket": "--s3-bucket", "s3_prefix": "--s3-prefix", "kms_key_id": "--kms-key-id"}
"""The settings of samconfig.toml that decide how code is uploaded, and SAM's options for them."""


@dataclass(frozen=True, slots=True)
class Package:
    """An application whose code and templates are in S3."""

    url: str
    """The address of its template."""
    templates: StackTemplate


def package(
    project: Path,
    s3: "S3Client",
    settings: Mapping[str, object],
    values: Mapping[str, str],
    *,
    region: str,
    runner: ProgramRunner = run_program,
    progress: Callable[[str], None] = lambda _: None,
) -> Package:
    """Upload what `sam build` made of the project, with its templates in plain CloudFormation.

    `settings` are those of `sam deploy`, and `values` those of the template's parameters. Raises
    ConsoleError if the project is not built, or cannot be packaged or expanded, and the errors of
    boto3.
    """
    built = project / BUILT
    if not built.is_file():
        raise ConsoleError("There is no build of this project: run `sam build` first.")
    work = cache_folder(project) / "changes"
    work.mkdir(exist_ok=True)
    progress("Uploading the code (sam package)")
    packaged = _sam_package(built, work, settings, region, runner)
    progress("Expanding the templates")
    return _Expansion(s3).of_root(packaged, values)


def _sam_package(
    built: Path, work: Path, settings: Mapping[str, object], region: str, runner: ProgramRunner
) -> Document:
    out = work / "packaged.json"
    options = ["--output-template-file", str(out), "--use-json", "--region", region]
    options.append("--no-progressbar")
    for name, option in _HANDED_ON.items():
        if isinstance(value := settings.get(name), str) and value:
            options += [option, value]
    if "--s3-bucket" not in options:
        options.append("--resolve-s3")
    sam = SamCli(folder=work, logs=work, environment=os.environ, runner=runner)
    sam.run("package", built, *options)
    return parsed_template(out.read_text(encoding="utf-8"), "sam package")


@dataclass(frozen=True)
class _Expansion:
    s3: "S3Client"

    def of_root(self, template: Document, values: Mapping[str, str]) -> Package:
        """The package of a template whose blocks have the addresses of their templates."""
        addresses = [
            str(mapping_of(block.get("Properties"))["Location"])
            for block in _blocks(template).values()
        ]
        if not addresses:
            raise ConsoleError("template.yaml has no nested stack: it is not one of Roundsman.")
        root, nested = self._expanded(template, values)
        return Package(self._uploaded(root, beside=addresses[0]), StackTemplate(root, nested))

    def _expanded(
        self, template: Document, values: Mapping[str, str]
    ) -> tuple[Document, dict[str, StackTemplate]]:
        nested = {}
        for name, block in _blocks(template).items():
            properties = mapping_of(block.get("Properties"))
            address = str(properties["Location"])
            handed = _known(mapping_of(properties.get("Parameters")), values)
            read = parsed_template(read_object(self.s3, address), name)
            found, inner = self._expanded(read, handed)
            nested[name] = StackTemplate(found, inner)
            properties["Location"] = self._uploaded(found, beside=address)
        return _in_plain_cloudformation(template, values), nested

    def _uploaded(self, template: Document, *, beside: str) -> str:
        """Upload a template into the folder of an address, and return its own."""
        body = json.dumps(template).encode()
        folder = beside.partition("?")[0].rpartition("/")[0]
        address = f"{folder}/{hashlib.sha256(body).hexdigest()[:32]}.template"
        bucket, key = bucket_and_key(address)
        self.s3.put_object(Bucket=bucket, Key=key, Body=body)
        return address


def read_object(s3: "S3Client", address: str) -> str:
    """Return the text at an address in S3. Raises the errors of boto3."""
    bucket, key = bucket_and_key(address)
    return s3.get_object(Bucket=bucket, Key=key)["Body"].read().decode()


def bucket_and_key(address: str) -> tuple[str, str]:
    """Return the bucket and the key of an address such as SAM writes: HOST/BUCKET/KEY."""
    bucket, _, key = urlsplit(address).path.lstrip("/").partition("/")
    return bucket, key


def _in_plain_cloudformation(template: Document, values: Mapping[str, str]) -> Document:
    from samtranslator.model.exceptions import (  # type: ignore[import-untyped]
        InvalidDocumentException,
    )

    from roundsman_dev.template import TemplateProblem, transformed

    macros = template.get("Transform")
    named = macros if isinstance(macros, list) else [macros] if macros else []
    others = [str(one) for one in named if one != _SERVERLESS]
    if others:
        raise ConsoleError(
            f"A template has the macro {', '.join(others)}, which only AWS can expand, so its "
            "changes cannot be shown. Deploy it with sam deploy."
        )
    if not named:
        return template
    try:
        found = transformed(template, values)
    except (InvalidDocumentException, TemplateProblem, KeyError) as error:
        raise ConsoleError(f"A template cannot be expanded: {error}.") from error
    found.pop("Transform", None)
    _give_up_failed_versions(found)
    return found


def _give_up_failed_versions(template: Document) -> None:
    """Let a deployment that fails take its versions of functions with it.

    Lambda publishes no second version of the same code, so that the same deployment would fail
    again. SAM retains them in any case, and offers no other policy that keeps those that ran.
    """
    for resource in map(mapping_of, mapping_of(template.get("Resources")).values()):
        if resource.get("Type") == VERSION and resource.get("DeletionPolicy") == "Retain":
            resource["DeletionPolicy"] = "RetainExceptOnCreate"


def _blocks(template: Document) -> dict[str, Document]:
    """The blocks of nested stacks whose template is in S3, by name."""
    found = {}
    for name, resource in mapping_of(template.get("Resources")).items():
        body = mapping_of(resource)
        location = mapping_of(body.get("Properties")).get("Location")
        if body.get("Type") == APPLICATION and isinstance(location, str) and "://" in location:
            found[name] = body
    return found


def _known(given: Document, values: Mapping[str, str]) -> dict[str, str]:
    """The values that a block gives its parameters, as far as they are known before AWS."""
    known = {}
    for name, value in given.items():
        match value:
            case str() | int() | float():
                known[name] = str(value)
            case {"Ref": str(other)} if other in values:
                known[name] = values[other]
            case _:
                continue
    return known
