"""Builds and deploys the stack of a proof with the SAM CLI, to the AWS of the environment."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import boto3

from roundsman_console.aws.stack import is_local
from roundsman_console.base.errors import ConsoleError, InspectorError
from roundsman_console.base.process import ProgramRunner, run_program
from roundsman_console.base.project_folder import find_project
from roundsman_dev.local.environment import RUNTIME, ensure_environment
from roundsman_dev.local.parameters import architecture
from roundsman_dev.prove.project import project_files, write_project
from roundsman_dev.sam import UNATTENDED, SamCli, sam_module

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient

TAG = "roundsman-proof"
"""The tag of a proof's stack and of all in it. Its value is the name of the stack."""

ACCOUNT_RUNTIME = "python3.13"
SAM = "sam"
"""The folder of what the SAM CLI builds, and writes beside it."""

_TIMEOUT = "Timeout: !Ref SchedulerTimeoutSeconds"
_TOO_SHORT = "Timeout: 1"
_ENGINE = Path("stacks/engine.yaml")
_AGENT = Path("functions/agents/stock/app.py")


@dataclass(frozen=True, slots=True)
class Place:
    """The AWS that the environment names."""

    account: str
    region: str
    local: bool
    """Whether it is a local AWS on this machine."""

    @property
    def runtime(self) -> str:
        """The runtime that functions get there."""
        return RUNTIME if self.local else ACCOUNT_RUNTIME

    @property
    def words(self) -> str:
        """Where it is, in words."""
        if self.local:
            return "the local AWS"
        return f"account {self.account}, region {self.region}"


def place() -> Place:
    """Return the AWS of the environment. Raises ConsoleError without a region, and boto3's errors.

    The call shows that the credentials are valid, and needs no right.
    """
    session = boto3.Session()
    region = session.region_name
    if not region:
        raise ConsoleError("No region is set: set AWS_DEFAULT_REGION, or choose a profile.")
    client: CloudFormationClient = session.client("cloudformation")
    account = session.client("sts").get_caller_identity()["Account"]
    return Place(account, region, is_local(client.meta.endpoint_url))


@dataclass(frozen=True, kw_only=True)
class ProofProject:
    """The project of a proof in a folder of this machine. Its methods raise ConsoleError."""

    run: str
    """The name of the stack."""
    folder: Path
    """The folder of the proof, in which the project, its build and the logs are."""
    place: Place
    progress: Callable[[str], None]
    runner: ProgramRunner = run_program

    @property
    def project(self) -> Path:
        """The folder with template.yaml."""
        return self.folder / "project"

    def write(self) -> None:
        """Write the project."""
        sam_module("samcli")
        write_project(self.project)

    def deploy(self) -> None:
        """Build the project as it is now, and deploy it. A stack that exists is updated."""
        self.progress("Building the functions and layers (sam build)")
        logs, built = self.folder / "logs", self.folder / SAM / "build"
        sam = SamCli(folder=logs, logs=logs, environment=self._environment(), runner=self.runner)
        made_with = self._parameters()
        into = ("--parallel", "--build-dir", str(built))
        sam.run("build", self.project / "template.yaml", *into, parameters=made_with)
        self.progress(f"Deploying the stack {self.run} (sam deploy)")
        sam.run(
            "deploy",
            built / "template.yaml",
            *("--stack-name", self.run, "--region", self.place.region),
            *("--s3-prefix", self.run, "--tags", f"{TAG}={self.run}"),
            *UNATTENDED,
            parameters=made_with,
        )

    @contextmanager
    def changed_code(self) -> Iterator[None]:
        """Deploy changed code of an agent while orders are under way. It stays."""
        path = self.project / _AGENT
        path.write_text(f"{project_files()[_AGENT]}\nREVISION = 2\n", encoding="utf-8")
        self.deploy()
        yield

    @contextmanager
    def too_short(self) -> Iterator[None]:
        """Deploy a scheduler whose time is too short for a batch; the former one at the end."""
        path, text = self.project / _ENGINE, project_files()[_ENGINE]
        if text.count(_TIMEOUT) != 1:
            raise InspectorError(f"{_ENGINE} has no line {_TIMEOUT}, so it cannot be shortened.")
        path.write_text(text.replace(_TIMEOUT, _TOO_SHORT), encoding="utf-8")
        try:
            self.deploy()
            yield
        finally:
            path.write_text(text, encoding="utf-8")
            self.deploy()

    def forget(self) -> None:
        """Remove the project and its build, and keep the logs."""
        for name in ("project", SAM):
            shutil.rmtree(self.folder / name, ignore_errors=True)

    def _parameters(self) -> Mapping[str, str]:
        if not self.place.local:
            return {"PythonRuntime": ACCOUNT_RUNTIME, "Architecture": "arm64"}
        return {"PythonRuntime": RUNTIME, "Architecture": architecture()}

    def _environment(self) -> dict[str, str]:
        found = {
            **os.environ,
            "ROUNDSMAN_PYTHON": sys.executable,
            "LAYER_PYTHON": sys.executable,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        if self.place.local:
            python = ensure_environment(find_project(Path.cwd()), self.progress).emulator_python
            # This Python has pip and the version that the functions are built for.
            found["LAYER_PYTHON"] = str(python)
            found["PATH"] = os.pathsep.join([str(python.parent), os.environ.get("PATH", "")])
            found["SAM_CLI_POLL_DELAY"] = "1"
        return found
