"""The published versions of a function: which one runs, and which ones never did.

A deployment that fails has published versions that stay, and is taken back. Lambda publishes no
second version of the same code, so the same deployment then fails for good.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roundsman.aws.outputs import LIVE

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

WENT_BACK = "roundsman:went-back-from"
"""The tag of a function with the versions that `roundsman rollback` left, separated by spaces."""
FUNCTION_NAME = "FunctionName"
"""How the outputs that name functions end: `PaymentFunctionName`."""


@dataclass(frozen=True, slots=True)
class FunctionVersions:
    """The versions of one function."""

    name: str
    """As in the template: `Payment`, `Scheduler`."""
    running: int
    """The version that the alias names."""
    newest: int
    """The newest version that exists."""
    left: frozenset[int] = frozenset()
    """The versions from which somebody went back on purpose; not read if the newest one runs."""

    @property
    def orphan(self) -> int | None:
        """The newest version, if no deployment that succeeded has published it; None if one has."""
        is_orphan = self.newest > self.running and self.newest not in self.left
        return self.newest if is_orphan else None


def functions_of(outputs: Mapping[str, str]) -> dict[str, str]:
    """Return the physical name of each function of a stack, by its name in the template."""
    return {
        output.removesuffix(FUNCTION_NAME): function
        for output, function in sorted(outputs.items())
        if output.endswith(FUNCTION_NAME)
    }


def read_versions(client: "LambdaClient", name: str, function: str) -> FunctionVersions:
    """Read the versions of a function. Raises the errors of boto3."""
    live = client.get_function_configuration(FunctionName=function, Qualifier=LIVE)
    return versions_beside(client, name, function, live["Version"], live["FunctionArn"])


def versions_beside(
    client: "LambdaClient", name: str, function: str, running: str, arn: str
) -> FunctionVersions:
    """Read the versions of a function of which it is known what runs.

    `arn` is that of the function, of a version or of an alias of it. Raises the errors of boto3.
    """
    pages = client.get_paginator("list_versions_by_function").paginate(FunctionName=function)
    numbers = [
        int(version["Version"])
        for page in pages
        for version in page["Versions"]
        if version["Version"].isdecimal()
    ]
    runs, newest = _number(running), max(numbers, default=0)
    left = read_left(client, arn) if newest > runs else frozenset[int]()
    return FunctionVersions(name, runs, newest, left)


def _number(version: str) -> int:
    return int(version) if version.isdecimal() else 0


def read_left(client: "LambdaClient", arn: str) -> frozenset[int]:
    """Return the versions that `roundsman rollback` left. Raises the errors of boto3.

    `arn` is that of the function, of a version or of an alias of it.
    """
    tags = client.list_tags(Resource=unqualified(arn))["Tags"]
    return frozenset(int(each) for each in tags.get(WENT_BACK, "").split() if each.isdecimal())


def note_left(client: "LambdaClient", arn: str, left: frozenset[int]) -> None:
    """Keep the versions that were left, the newest twenty. Raises the errors of boto3."""
    newest = sorted(left, reverse=True)[:20]  # a tag has at most 256 characters
    text = " ".join(map(str, newest))
    client.tag_resource(Resource=unqualified(arn), Tags={WENT_BACK: text})


def unqualified(arn: str) -> str:
    """Return the ARN of the function itself."""
    return ":".join(arn.split(":")[:7])
