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
from functools import partial
from pathlib import Path

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from roundsman.aws.outputs import with_agents
from roundsman_console.aws.deployment_failure import first_failure
from roundsman_console.aws.local_record import LocalFiles, LocalRecord
from roundsman_console.base.errors import ConsoleError
from roundsman_console.base.process import (
    ProgramRunner,
    Progress,
    plain_environment,
    run_program,
)
from roundsman_dev.local.environment import EmulatorEnvironment
from roundsman_dev.local.parameters import set_block_parameters
from roundsman_dev.sam import UNATTENDED, SamCli


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
        built = built_folder(self.instance)
        new = built.with_name("build.new")
        into = ("--parallel", "--build-dir", str(new))
        self._sam.run("build", self.project / "template.yaml", *into, parameters=self._of_root)
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
        where = ["--stack-name", record.stack, "--region", record.region]
        self._sam.run(
            "deploy",
            built_folder(self.instance) / "template.yaml",
            *where,
            *UNATTENDED,
            parameters=self._of_root,
            why=partial(_failure, record),
        )
        return _stack_outputs(record)

    @property
    def _sam(self) -> SamCli:
        return SamCli(
            folder=_work_folder(self.instance),
            logs=self.instance.logs,
            environment=_sam_environment(self.instance, self.environment, self.record),
            runner=self.runner,
        )

    @property
    def _of_root(self) -> Mapping[str, str]:
        return {name: value for name, value in self.parameters.items() if "." not in name}


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


def _failure(record: LocalRecord) -> str | None:
    """Return what made the last deployment fail, if it is known."""
    stacks = emulator_session(record).client("cloudformation", endpoint_url=record.endpoint)
    try:
        return first_failure(stacks, record.stack)
    except (BotoCoreError, ClientError):
        return None  # it failed before the stack was created
