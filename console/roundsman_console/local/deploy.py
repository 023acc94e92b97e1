"""Builds the project's template and deploys it to the emulator with the SAM CLI."""

import importlib.util
import json
import os
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from roundsman_console.local.environment import EmulatorEnvironment
from roundsman_console.local.errors import LocalError
from roundsman_console.local.progress import ProgressListener
from roundsman_console.local.run import ProgramRunner, last_error, plain_environment, run
from roundsman_console.local.stack import deploy_failure, stack_outputs
from roundsman_console.local.state import LocalFiles, LocalRecord

_CAPABILITIES = ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"]
_UNATTENDED = [
    *("--capabilities", *_CAPABILITIES),
    "--no-confirm-changeset",
    "--no-fail-on-empty-changeset",
    "--no-progressbar",
]


def client_environment(endpoint: str, region: str, certificate: str = "") -> dict[str, str]:
    """Return the environment variables that make an AWS client use the emulator.

    They also hide the configuration and the credentials of a real account. `certificate` is the
    path of the emulator's certificate; empty without TLS.
    """
    return {
        **({"AWS_CA_BUNDLE": certificate} if certificate else {}),
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": region,
        "AWS_REGION": region,
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def check_sam() -> None:
    """Raise LocalError unless the SAM CLI is installed in this Python."""
    if importlib.util.find_spec("samcli") is None:
        raise LocalError(
            f"The SAM CLI is not installed beside roundsman (in {sys.prefix}): run `make install`."
        )


def check_stack_name(name: str) -> None:
    """Raise LocalError for a stack name that CloudFormation would reject."""
    if not re.fullmatch(r"[A-Za-z][-A-Za-z0-9]{0,127}", name):
        raise LocalError(
            "A stack's name is a letter, then letters, digits and hyphens, 128 at most; "
            f"{name!r} is not."
        )


def build_and_deploy(
    project: Path,
    instance: LocalFiles,
    environment: EmulatorEnvironment,
    *,
    record: LocalRecord,
    parameters: Mapping[str, str],
    progress: ProgressListener,
    runner: ProgramRunner = run,
) -> dict[str, str]:
    """Build `template.yaml` in the instance's folder, deploy it, and return the stack's outputs.

    The project's own `.aws-sam` and samconfig.toml are neither read nor written. Raises LocalError
    with the reason and the path of the log.
    """
    region, stack = record.region, record.stack
    work = instance.folder / "sam"
    work.mkdir(exist_ok=True)
    # An empty file, so that SAM does not read the project's own, which is for AWS.
    settings = work / "samconfig.toml"
    settings.write_text("")
    variables = _sam_environment(instance, environment, record)
    common = ["--config-file", str(settings)]
    if parameters:
        overrides = [f'{name}="{value}"' for name, value in parameters.items()]
        common += ["--parameter-overrides", *overrides]
    built = work / "build"

    def sam(name: str, *arguments: str) -> tuple[int, Path]:
        log = instance.logs / f"sam-{name}.log"
        log.unlink(missing_ok=True)
        command = [sys.executable, "-m", "samcli", name, *arguments, *common]
        return runner(command, environment=variables, folder=work, log=log, progress=progress), log

    progress.stage("Building the functions and layers (sam build)")
    code, log = sam(
        "build",
        "--parallel",
        "--template-file",
        str(project / "template.yaml"),
        "--build-dir",
        str(built),
    )
    if code != 0:
        raise LocalError(f"sam build failed: {last_error(log)} (all of it is in {log})")
    progress.stage(f"Deploying the stack {stack} (sam deploy)")
    where = ["--stack-name", stack, "--region", region, "--resolve-s3"]
    code, log = sam("deploy", "--template-file", str(built / "template.yaml"), *where, *_UNATTENDED)
    if code != 0:
        reason = deploy_failure(record) or last_error(log)
        raise LocalError(f"sam deploy failed: {reason} (all of it is in {log})")
    return stack_outputs(record)


def _sam_environment(
    instance: LocalFiles, environment: EmulatorEnvironment, record: LocalRecord
) -> dict[str, str]:
    variables = plain_environment()
    settings = instance.folder / "sam-settings"
    settings.mkdir(exist_ok=True)
    # SAM checks a package index for a new version each week. This records that it has just done so.
    remembered = {"telemetryEnabled": False, "lastVersionCheck": time.time()}
    (settings / "metadata.json").write_text(json.dumps(remembered))
    path = os.environ.get("PATH", os.defpath)
    direct = ",".join(
        filter(None, [variables.get("NO_PROXY", variables.get("no_proxy")), "127.0.0.1,localhost"])
    )
    return {
        **variables,
        **client_environment(record.endpoint, record.region, record.certificate),
        # This Python has pip and the version that the functions are built for.
        "PATH": os.pathsep.join([str(environment.emulator_python.parent), path]),
        "TMPDIR": str(instance.temporary),
        "NO_PROXY": direct,
        "no_proxy": direct,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "SAM_CLI_TELEMETRY": "0",
        "SAM_CLI_POLL_DELAY": "1",  # seconds between polls of the deployment; the default is 5
        "__SAM_CLI_APP_DIR": str(settings),
    }
