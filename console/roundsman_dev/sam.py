"""Runs the SAM CLI, and reads the project's samconfig.toml as it does."""

import importlib
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from roundsman_console.base.errors import ConsoleError
from roundsman_console.base.process import ProgramRunner, last_error, run_program

CONFIG = "samconfig.toml"
TELEMETRY: Mapping[str, str] = {"SAM_CLI_TELEMETRY": "0"}
"""The variable of the environment without which SAM reports its use to AWS."""
UNATTENDED = (
    *("--capabilities", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"),
    "--resolve-s3",
    "--no-confirm-changeset",
    "--no-fail-on-empty-changeset",
    "--no-progressbar",
)
"""The options of a `sam deploy` that asks nothing."""


def sam_module(name: str) -> Any:  # noqa: ANN401 - SAM has no types
    """Return a module that is installed with the SAM CLI. Raises ConsoleError if it is not."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConsoleError("This needs the SAM CLI: install roundsman[local].") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class SamCli:
    """The SAM CLI, which sees no samconfig.toml: that of a project is for its own stack."""

    folder: Path
    """The folder of the empty samconfig.toml that it gets."""
    logs: Path
    environment: Mapping[str, str]
    runner: ProgramRunner = run_program

    def run(
        self,
        name: str,
        template: Path,
        *options: str,
        parameters: Mapping[str, str] | None = None,
        why: Callable[[], str | None] = lambda: None,
    ) -> None:
        """Run a command of SAM.

        Raises ConsoleError with the reason that `why` returns, or else with the last error of its
        log, and with the path of the log.
        """
        for made in (self.folder, self.logs):
            made.mkdir(parents=True, exist_ok=True)
        settings, log = self.folder / CONFIG, self.logs / f"sam-{name}.log"
        settings.write_text("", encoding="utf-8")
        log.unlink(missing_ok=True)
        command = [sys.executable, "-m", "samcli", name, "--template-file", str(template)]
        command += ["--config-file", str(settings), *options]
        if parameters:
            overrides = [f'{key}="{value}"' for key, value in parameters.items()]
            command += ["--parameter-overrides", *overrides]
        if self.runner(command, {**self.environment, **TELEMETRY}, log) != 0:
            reason = why() or last_error(log)
            raise ConsoleError(f"sam {name} failed: {reason} (full log: {log})")


def deploy_settings(path: Path, environment: str) -> Mapping[str, object]:
    """Return the parameters of `sam deploy` in an environment, with the global ones.

    `path` is that of samconfig.toml. Raises ConsoleError if it cannot be read or has no such
    environment.
    """
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConsoleError(f"There is no {CONFIG} beside template.yaml.") from error
    except (OSError, ValueError) as error:
        raise ConsoleError(f"{CONFIG} cannot be read: {error}.") from error
    found = read.get(environment)
    if not isinstance(found, dict):
        known = ", ".join(name for name, value in read.items() if isinstance(value, dict))
        raise ConsoleError(f"{CONFIG} has no environment {environment}; it has: {known}.")
    settings: dict[str, object] = {}
    for section in ("global", "deploy"):
        part = found.get(section, {})
        values = part.get("parameters", {}) if isinstance(part, dict) else {}
        settings |= values if isinstance(values, dict) else {}
    return settings


def parameter_overrides(settings: Mapping[str, object], project: Path) -> dict[str, str]:
    """Return the values of parameters, read as SAM reads them.

    Raises ConsoleError if they cannot be read, or the SAM CLI is not installed.
    """
    name, beside = "parameter_overrides", project / CONFIG
    return _as_sam_reads(name, settings.get(name), "CfnParameterOverridesType", current_file=beside)


def stack_tags(settings: Mapping[str, object]) -> dict[str, str]:
    """Return the tags of the stack, read as SAM reads them. Raises like `parameter_overrides`."""
    written = settings.get("tags")
    return _as_sam_reads("tags", written, "CfnTags") if written else {}


def _as_sam_reads(name: str, written: object, kind: str, **beside: Path) -> dict[str, str]:
    types = sam_module("samcli.cli.types")
    usage: type[Exception] = sam_module("click").UsageError
    try:
        found = getattr(types, kind)().convert(written, None, None, **beside)
    except (usage, OSError) as error:
        raise ConsoleError(f"{name} of {CONFIG}: {error}.") from error
    return {str(key): str(value) for key, value in found.items()}
