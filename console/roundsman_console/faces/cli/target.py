"""Which AWS a command talks to: the account and region of its stack, or a local AWS."""

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import BotoCoreError
from rich.console import Console

from roundsman_console.aws import stack as stacks
from roundsman_console.aws.stack import DeployedStack, configured_stack, is_local
from roundsman_console.base.errors import StackNotFound
from roundsman_console.base.sanitize import inert

if TYPE_CHECKING:
    from roundsman.submission.events import EventReader
    from roundsman_console.aws.local_record import LocalRecord


def find_stack(name: str | None, events: "EventReader | None" = None) -> DeployedStack:
    """Return the stack with this name, as `roundsman_console.aws.stack.find_stack` does.

    If a local AWS of this project runs and is not used, a line on standard error names the command
    that makes the next commands use it.
    """
    # A folder that is gone or may not be read ends no command. What is wrong in the configuration
    # of AWS is an error of the command itself.
    with suppress(OSError, BotoCoreError, ValueError):
        unused = _unused_local_aws(name)
        if unused is not None:
            _print(unused)
    return stacks.find_stack(name, events)


def announced_stack(name: str | None, events: "EventReader | None" = None) -> DeployedStack:
    """Return the stack as `find_stack` does, and print on standard error where it is.

    For a command that changes something, or that judges the stack as a whole.
    """
    found = find_stack(name, events)
    _print(where(found))
    return found


def where(stack: DeployedStack) -> str:
    """Return the stack's name with its account, region and profile, or with its local AWS.

    `Stack shop in account 123456789012, eu-central-1 (profile prod)`, or `Stack shop on the local
    AWS at http://127.0.0.1:4510`. Calls no AWS. The stack must be one that was found.
    """
    if is_local(stack.endpoint):
        return f"Stack {stack.name} on the local AWS at {stack.endpoint}"
    _, _, _, region, account, *_ = stack.arn.split(":")
    # botocore prefers keys in the environment to a profile that is named there.
    keys = os.environ.get("AWS_ACCESS_KEY_ID")
    profile = os.environ.get("AWS_DEFAULT_PROFILE") or os.environ.get("AWS_PROFILE")
    of_profile = f" (profile {profile})" if profile and not keys else ""
    return f"Stack {stack.name} in account {account}, {region}{of_profile}"


def _unused_local_aws(name: str | None) -> str | None:
    """Return a line about a local AWS that runs beside the AWS of this command; None if none does.

    None as well if `name` is another stack than the local one.
    """
    here = Path.cwd()
    folders = (one for one in (here, *here.parents) if (one / "template.yaml").is_file())
    project = next(folders, None)
    if project is None or not (project / ".cache" / "local").is_dir():
        return None
    # The package of the local AWS is large, and few commands run beside one.
    ignored = os.environ.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "")
    if is_local(os.environ.get("AWS_ENDPOINT_URL", "")) and ignored.lower() != "true":
        return None
    from roundsman_console.aws.local_record import Instances

    records = (instance.read() for instance in Instances(project))
    record = next((each for each in records if each and _is_meant(each, name)), None)
    if record is None or is_local(_endpoint()):
        return None
    try:
        configured = configured_stack(project)
    except StackNotFound:
        configured = ""
    return (
        f"A local AWS of this project runs at {record.endpoint}, and this command does not use it. "
        f"To use it: {record.export_command(configured)}"
    )


def _endpoint() -> str:
    """Where the command will look for its stack, by the environment and the profile."""
    client = boto3.client(  # also without a region or credentials
        "cloudformation", region_name="us-east-1", config=Config(signature_version=UNSIGNED)
    )
    return client.meta.endpoint_url


def _is_meant(record: "LocalRecord", name: str | None) -> bool:
    return name in (None, record.stack) and record.is_up()


def _print(line: str) -> None:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(inert(line), style="dim", markup=False)
