"""Where am I? The stack, account, region and caller on top of each page, and their colour."""

import os
import re
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from roundsman.model.instants import SECOND, format_duration
from roundsman_console.aws.ping import ahead_of
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import now

CLOCKS_DIFFER = 30 * SECOND
"""From here on the page says that the clock of this machine is wrong, in ms."""

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_OF_PRODUCTION = frozenset({"prod", "production", "prd", "live"})
_WORD = re.compile(r"[A-Za-z]+")


class Colour(StrEnum):
    """The colour of the strip on top of each page."""

    RED = "red"
    AMBER = "amber"
    GREEN = "green"
    BLUE = "blue"
    GREY = "grey"


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """What a person must know before they press a button."""

    stack: str
    account: str = ""
    """Twelve digits; empty if it is not known."""
    region: str = ""
    """Empty if it is not known."""
    local: str = ""
    """The address of the local AWS; empty for AWS itself."""
    profile: str = ""
    """The AWS profile; empty if none is used."""
    caller: str = ""
    """Who asks, as AWS authenticates them: `user/amy`. Empty if AWS does not say."""
    colour: Colour = Colour.GREY
    clock_ahead: int = 0
    """By how much the clock of this machine is ahead of that of AWS, in ms; 0 if it is not known.
    """
    in_memory: bool = False
    """Whether the stack is in the memory of this process: then no terminal reaches it, and it has
    neither alarms nor versions of functions nor backups, so that no page offers them.
    """

    @property
    def account_words(self) -> str:
        """The account's digits in groups of four, as they are easier to compare."""
        return "-".join(re.findall(".{1,4}", self.account))


def clock_words(ahead: int) -> str:
    """Return how wrong the clock of this machine is, as sentences; empty if it is right.

    `ahead` is by how much it is ahead of that of AWS, in ms.
    """
    if abs(ahead) < CLOCKS_DIFFER:
        return ""
    how = "ahead of" if ahead > 0 else "behind"
    away = format_duration(abs(ahead))
    wrong = f"The clock of this machine is {away} {how} that of AWS, so times here are wrong."
    return f"{wrong} Set it."


def find_whereabouts(stack: DeployedStack, colour: Colour | None = None) -> Whereabouts:
    """Return where a stack is and who asks; one request to AWS. None chooses the colour by rule."""
    _, _, _, region, account, *_ = [*stack.arn.split(":"), *[""] * 5]
    local = stack.endpoint if urlsplit(stack.endpoint).hostname in _LOOPBACK else ""
    # botocore prefers keys in the environment to a profile that is named there.
    keys = os.environ.get("AWS_ACCESS_KEY_ID")
    named = os.environ.get("AWS_DEFAULT_PROFILE") or os.environ.get("AWS_PROFILE") or ""
    profile = "" if keys else named
    caller, clock_ahead = _caller()
    return Whereabouts(
        stack.name,
        account,
        region,
        local,
        profile,
        caller,
        colour or colour_of(stack.name, profile, local=bool(local)),
        0 if local else clock_ahead,
    )


def colour_of(stack: str, profile: str, *, local: bool) -> Colour:
    """Return the colour by rule: a local AWS is green, production is red, anything else is blue.

    It is production if the name of the stack or of the AWS profile has one of the words `prod`,
    `production`, `prd` and `live`.
    """
    if local:
        return Colour.GREEN
    words = {word.lower() for word in _WORD.findall(f"{stack} {profile}")}
    return Colour.RED if words & _OF_PRODUCTION else Colour.BLUE


def _caller() -> tuple[str, int]:
    """Return the caller's ARN without its account, and by how much the clock here is ahead, in ms.

    They are empty and 0 if AWS does not say: the page of a stack is worth showing to those whom a
    policy or a network keeps from asking.
    """
    try:
        found = boto3.client("sts").get_caller_identity()
    except (BotoCoreError, ClientError):
        return "", 0
    answered = found["ResponseMetadata"]["HTTPHeaders"].get("date", "")
    return found["Arn"].split(":", 5)[-1], ahead_of(answered, now()) or 0
