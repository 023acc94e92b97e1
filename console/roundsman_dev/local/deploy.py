"""Builds the project's template, deploys it to the emulator with the SAM CLI, and reads the stack.

Neither sees the user's own AWS account and settings.
"""

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from roundsman.aws.outputs import with_agents
from roundsman_console.aws.local_record import LocalFiles, LocalRecord
from roundsman_console.base.errors import ConsoleError
from roundsman_console.base.process import (
    ProgramRunner,
    Progress,
    last_error,
    plain_environment,
    run_program,
)
from roundsman_dev.local.environment import EmulatorEnvironment
from roundsman_dev.local.parameters import set_block_parameters

_UNATTENDED = [
    *("--capabilities", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"),
    "--no-confirm-changeset",
    "--no-fail-on-empty-changeset",
    "--no-progressbar",
]
_BEGINNINGS = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS")


def built_folder(instance: LocalFiles) -> Path:
    """Return the folder with the last build of the project."""
    return _work_folder(instance) / "build"


def _work_folder(instance: LocalFiles) -> Path:
    return instance.folder / "sam"


@dataclass(frozen=True, slots=True, kw_only=True)
class SamProject:
    """A project that the SAM CLI builds and deploys to a local AWS.

    The project's own `.aws-sam` and samconfig.toml are neither read nor written. The methods raise
    ConsoleError with the reason and the path of the log.
    """

    project: Path
    instance: LocalFiles
    environment: EmulatorEnvironment
    record: LocalRecord
    parameters: Mapping[str, str]
    progress: Progress
    runner: ProgramRunner = run_program

    def build(self) -> None:
        """Build `template.yaml` in the instance's folder. After a failure the last build is there.

        Raises ConsoleError.
        """
        self.progress("Building the functions and layers (sam build)")
        work, built = _work_folder(self.instance), built_folder(self.instance)
        work.mkdir(exist_ok=True)
        new = built.with_name("build.new")
        into = ("--parallel", "--build-dir", str(new))
        log = self._sam("build", self.project / "template.yaml", *into)
        if log is not None:
            raise ConsoleError(f"sam build failed: {last_error(log)} (full log: {log})")
        set_block_parameters(new / "template.yaml", self.parameters)
        shutil.rmtree(built, ignore_errors=True)
        new.rename(built)

    def deploy(self) -> dict[str, str]:
        """Deploy the last build, and return the stack's outputs.

        A stack that exists is updated; if that fails, the emulator restores it. Raises
        ConsoleError.
        """
        record = self.record
        self.progress(f"Deploying the stack {record.stack} (sam deploy)")
        where = ["--stack-name", record.stack, "--region", record.region, "--resolve-s3"]
        built = built_folder(self.instance) / "template.yaml"
        log = self._sam("deploy", built, *where, *_UNATTENDED)
        if log is not None:
            reason = _deploy_failure(record) or last_error(log)
            raise ConsoleError(f"sam deploy failed: {reason} (full log: {log})")
        return _stack_outputs(record)

    def _sam(self, name: str, template: Path, *arguments: str) -> Path | None:
        """Run a command of SAM, and return the path of its log if it fails."""
        work = _work_folder(self.instance)
        # An empty file, so that SAM does not read the project's own, which is for AWS.
        settings = work / "samconfig.toml"
        settings.write_text("")
        command = [sys.executable, "-m", "samcli", name, "--template-file", str(template)]
        command += [*arguments, "--config-file", str(settings)]
        of_root = {name: value for name, value in self.parameters.items() if "." not in name}
        if of_root:
            overrides = [f'{name}="{value}"' for name, value in of_root.items()]
            command += ["--parameter-overrides", *overrides]
        log = self.instance.logs / f"sam-{name}.log"
        log.unlink(missing_ok=True)
        environment = _sam_environment(self.instance, self.environment, self.record)
        return None if self.runner(command, environment, log) == 0 else log


def _sam_environment(
    instance: LocalFiles, environment: EmulatorEnvironment, record: LocalRecord
) -> dict[str, str]:
    settings = instance.folder / "sam-settings"
    settings.mkdir(exist_ok=True)
    # SAM checks a package index for a new version each week. This records that it has just done so.
    remembered = {"telemetryEnabled": False, "lastVersionCheck": time.time()}
    (settings / "metadata.json").write_text(json.dumps(remembered))
    path = os.environ.get("PATH", os.defpath)
    # An application's core layer is a copy of this very package, wherever Python found it.
    where = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    return {
        **plain_environment(),
        **where,
        "ROUNDSMAN_PYTHON": sys.executable,
        **record.client_environment,
        # This Python has pip and the version that the functions are built for.
        "PATH": os.pathsep.join([str(environment.emulator_python.parent), path]),
        "TMPDIR": str(instance.temporary),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "SAM_CLI_TELEMETRY": "0",
        "SAM_CLI_POLL_DELAY": "1",  # seconds between polls of the deployment; the default is 5
        "__SAM_CLI_APP_DIR": str(settings),
    }


def emulator_session(record: LocalRecord) -> boto3.Session:
    """Return a session with the permissions of the emulator's root user.

    No profile, configuration file or variable of the user changes it. Clients need
    `endpoint_url=record.endpoint`.
    """
    nowhere = (None, None, os.devnull, None)
    botocore_session = botocore.session.Session(
        session_vars={
            "profile": (None, None, None, None),
            "config_file": nowhere,
            "credentials_file": nowhere,
            "ca_bundle": (None, None, record.certificate or None, None),
        }
    )
    directly = Config(proxies={}, retries={"total_max_attempts": 2})
    botocore_session.set_default_client_config(directly)
    return boto3.Session(
        botocore_session=botocore_session,
        region_name=record.region,
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106 - the emulator's credentials for the root user
    )


@contextmanager
def emulator_errors() -> Iterator[None]:
    """Raise an error of an AWS call as a ConsoleError."""
    try:
        yield
    except (BotoCoreError, ClientError) as error:
        raise ConsoleError(f"The emulator refused a call: {error}") from error


def _stack_outputs(record: LocalRecord) -> dict[str, str]:
    stacks = emulator_session(record).client("cloudformation", endpoint_url=record.endpoint)
    with emulator_errors():
        found = stacks.describe_stacks(StackName=record.stack)["Stacks"]
    return with_agents(
        {
            output["OutputKey"]: output["OutputValue"]
            for output in found[0].get("Outputs", [])
            if "OutputKey" in output and "OutputValue" in output
        }
    )


def _deploy_failure(record: LocalRecord) -> str | None:
    """Return the resource that made the last deployment fail, and the reason, if it is known."""
    stacks = emulator_session(record).client("cloudformation", endpoint_url=record.endpoint)
    try:
        answer = stacks.describe_stack_events(StackName=record.stack)
    except (BotoCoreError, ClientError):
        return None  # the deployment failed before the stack was created
    failures = []
    for event in answer.get("StackEvents", []):  # the newest is first
        status = str(event.get("ResourceStatus", ""))
        if status in _BEGINNINGS and event.get("LogicalResourceId") == record.stack:
            break
        if status.endswith("_FAILED") and event.get("ResourceStatusReason"):
            what = f"{event.get('LogicalResourceId')} ({event.get('ResourceType')})"
            failures.append(f"{what}: {event.get('ResourceStatusReason')}")
    # The oldest failure is the cause; later ones are cancellations.
    return failures[-1] if failures else None
