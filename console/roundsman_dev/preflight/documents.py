"""What the checks before a deployment have found."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class PreflightCheck(StrEnum):
    """The checks, in the order in which they are reported. Scripts read the values."""

    NAME = "name"
    PARAMETERS = "parameters"
    ACCOUNT = "account"
    STACK = "stack"
    CONCURRENCY = "concurrency"
    ALERTS = "alerts"
    KEYS = "keys"
    VERSIONS = "versions"
    SNAPSTART = "snapstart"
    ORDERS = "orders"


class CheckStatus(StrEnum):
    """The result of one check."""

    OK = "ok"
    WARNING = "warning"  # the deployment succeeds, and something must be done
    FAULT = "fault"  # the deployment, or the stack after it, does not work
    UNCHECKED = "unchecked"  # it could not be read; the sentence says why


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """The result of one check."""

    check: PreflightCheck
    status: CheckStatus
    sentence: str
    details: Sequence[str] = ()
    """One sentence for each thing that was found."""
    do: str | None = None
    """What to do; null if there is nothing to do."""
    finding: str | None = None
    """The id of what was found; null if nothing was."""
    page: str | None = None
    """The page to read, in the folder docs; null if nothing was found."""


@dataclass(frozen=True, slots=True)
class PreflightReport:
    """The checks before a deployment."""

    stack: str
    environment: str
    """The environment of samconfig.toml."""
    region: str | None
    """Null if no region is set."""
    account: str | None
    """The id of the AWS account; null if it could not be read."""
    ready: bool
    """Whether the deployment may go on; the exit code is then 0."""
    checks: Sequence[CheckOutcome]
