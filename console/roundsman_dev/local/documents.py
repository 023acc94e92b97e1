"""Documents about local AWS."""

from typing import Literal, NotRequired, TypeAlias, TypedDict

from roundsman_console.base.constraints import Count


class LocalUpDocument(TypedDict):
    """A local AWS with the stack deployed on it."""

    endpoint: str
    stack: str
    region: str
    outputs: dict[str, str]
    services: dict[str, str]


LocalState: TypeAlias = Literal["healthy", "silent", "starting", "dead"]
"""The state of a local AWS."""


class LocalInstanceDocument(TypedDict):
    """One local AWS. The optional fields are missing if its record cannot be read."""

    port: Count
    state: LocalState
    log: str
    """The log file of the emulator."""
    endpoint: NotRequired[str]
    stack: NotRequired[str]
    region: NotRequired[str]
    outputs: NotRequired[dict[str, str]]
    services: NotRequired[dict[str, str]]
    pid: NotRequired[Count | None]


class LocalStatusDocument(TypedDict):
    """The local AWS instances of this project."""

    instances: list[LocalInstanceDocument]
