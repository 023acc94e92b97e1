"""The published versions of a function: which one runs, and which ones never did.

A deployment that fails has published versions that stay, and is taken back. Lambda publishes no
second version of the same code, so the same deployment then fails for good.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roundsman.aws.outputs import LIVE
from roundsman.model.instants import read_instant

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_lambda.type_defs import FunctionConfigurationTypeDef

WENT_BACK = "roundsman:went-back-from"
"""The tag of a function with the versions that `roundsman rollback` left, separated by spaces."""
MOST_SNAPSHOTS = 3
"""The most versions of a function of which each keeps a snapshot, before they are too many."""
FUNCTION_NAME = "FunctionName"
"""How the outputs that name functions end: `PaymentFunctionName`."""


@dataclass(frozen=True, slots=True)
class Published:
    """A version of a function that a deployment has published."""

    name: str
    """The name of the function in the template: `Payment`, `Scheduler`."""
    version: int
    at: int
    """When it was published, in epoch ms."""


@dataclass(frozen=True, slots=True)
class FunctionVersions:
    """The versions of one function."""

    name: str
    """As in the template: `Payment`, `Scheduler`."""
    function: str
    """The name of the function in AWS."""
    running: int
    """The version that the alias names."""
    numbers: Sequence[int] = ()
    """All versions that exist, from the oldest to the newest."""
    left: frozenset[int] = frozenset()
    """The versions from which somebody went back on purpose; not read if the newest one runs."""
    snapshots: Sequence[int] = ()
    """The versions that keep a snapshot (SnapStart), from the oldest to the newest."""
    published: Sequence[Published] = ()
    """The versions of which it is known when they were published."""

    @property
    def orphan(self) -> int | None:
        """The newest version, if no deployment that succeeded has published it; None if one has."""
        newest = max(self.numbers, default=0)
        return newest if newest > self.running and newest not in self.left else None

    @property
    def orphans(self) -> list[int]:
        """The versions newer than the one that runs, which nobody went back from."""
        return [one for one in self.numbers if one > self.running and one not in self.left]

    @property
    def superfluous(self) -> list[int]:
        """The versions with a snapshot that nobody needs; empty if few have one.

        What runs is needed, and what ran before it, for `roundsman rollback`.
        """
        if len(self.snapshots) <= MOST_SNAPSHOTS:
            return []
        older = [one for one in self.numbers if one < self.running]
        return [one for one in self.snapshots if one in older[:-1]]

    def removal(self, numbers: Iterable[int]) -> str:
        """Return the command that removes these versions, for a POSIX shell."""
        listed = " ".join(map(str, numbers))
        return (
            f"for v in {listed}; do aws lambda delete-function --function-name {self.function} "
            '--qualifier "$v"; done;'
        )


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
    numbers, snapshots, published = list[int](), list[int](), list[Published]()
    for version in _versions(client, function):
        number = int(version["Version"])
        numbers.append(number)
        published += _published(name, version)
        if version.get("SnapStart", {}).get("OptimizationStatus") == "On":
            snapshots.append(number)
    runs = _number(running)
    left = read_left(client, arn) if max(numbers, default=0) > runs else frozenset[int]()
    return FunctionVersions(
        name, function, runs, sorted(numbers), left, sorted(snapshots), published
    )


def read_published(client: "LambdaClient", name: str, function: str) -> list[Published]:
    """Read when each version of a function was published. Raises the errors of boto3."""
    return [one for each in _versions(client, function) for one in _published(name, each)]


def _versions(client: "LambdaClient", function: str) -> Iterator["FunctionConfigurationTypeDef"]:
    pages = client.get_paginator("list_versions_by_function").paginate(FunctionName=function)
    for page in pages:
        yield from (one for one in page["Versions"] if one["Version"].isdecimal())


def _published(name: str, version: "FunctionConfigurationTypeDef") -> Iterator[Published]:
    """When the version was published; nothing if AWS does not say it as an instant."""
    with suppress(KeyError, ValueError):
        yield Published(name, int(version["Version"]), read_instant(version["LastModified"]))


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
