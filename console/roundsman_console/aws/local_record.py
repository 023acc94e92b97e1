"""Stores the state of each local AWS: a folder for each port, with a record and temporary files."""

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from roundsman_console.base.errors import ConsoleError
from roundsman_console.base.process import (
    ProcessIdentity,
    command_lines,
    end_group,
    identify,
)
from roundsman_console.base.project_folder import CACHE, cache_folder, exclusive

RECORD = "state.json"
EXPORTED = ("AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION")
"""The variables that a person sets to use a local AWS."""
REMOVED = "removed"  # the folder in the project's cache from which files are removed later


@dataclass(frozen=True)
class LocalRecord:
    """The stored record of one local AWS."""

    port: int
    owner: ProcessIdentity
    """The process that started it."""
    emulator: ProcessIdentity | None = None
    """None if the emulator has not been started yet."""
    mark: str = ""
    """A random token that only this emulator returns in its health check."""
    stack: str = ""
    region: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    """The outputs of the stack; empty until it is deployed."""
    services: dict[str, str] = field(default_factory=dict)
    """The base URL of each agent's remote service, by the agent's name."""
    deployed: bool = False
    """False while `owner` still starts the emulator and deploys the stack."""
    certificate: str = ""
    """The path of the TLS certificate; empty if the emulator does not use TLS."""
    parameters: dict[str, str] = field(default_factory=dict)
    """The parameters that were asked for; `local deploy` uses them again."""
    services_url: str = ""
    """The base URL of all services that was asked for; empty for the addresses by default."""
    stand_ins: ProcessIdentity | None = None
    """The process of the stand-ins for services; None if none were started."""
    stand_ins_url: str = ""
    """The base URL of the stand-ins; empty if none were started."""
    changed: list[str] = field(default_factory=list)
    """The functions and layers whose code was replaced without CloudFormation, by name."""

    @property
    def endpoint(self) -> str:
        return f"{'https' if self.certificate else 'http'}://127.0.0.1:{self.port}"

    @property
    def client_environment(self) -> dict[str, str]:
        """The environment variables that make an AWS client use the emulator, past any proxy.

        They also hide the configuration and the credentials of a real account.
        """
        proxied = os.environ.get("NO_PROXY", os.environ.get("no_proxy"))
        direct = ",".join(filter(None, [proxied, "127.0.0.1,localhost"]))
        return {
            **({"AWS_CA_BUNDLE": self.certificate} if self.certificate else {}),
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": self.region,
            "AWS_REGION": self.region,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
            "NO_PROXY": direct,
            "no_proxy": direct,
        }

    def export_command(self, configured: str) -> str:
        """Return the command that makes the next commands of a shell use this stack.

        `configured` is the stack that they use by default.
        """
        given = self.client_environment
        settings = " ".join(f"{name}={given[name]}" for name in EXPORTED)
        if self.stack != configured:
            settings += f" ROUNDSMAN_STACK={self.stack}"
        return f"export {settings}"

    def is_starting(self) -> bool:
        """Whether the process that starts it is still running and has not finished."""
        return not self.deployed and self.owner.is_alive()

    def is_up(self) -> bool:
        """Whether the stack was deployed and the emulator still runs."""
        return self.deployed and self.emulator is not None and self.emulator.is_alive()


def discard(folder: Path, into: Path) -> None:
    """Move a folder into another one, which a program of its own then empties.

    A sandbox of a function has a thousand files, and to remove one that has reached the disk can
    take milliseconds. The program also removes what an earlier one, which was killed, has left.
    """
    into.mkdir(parents=True, exist_ok=True)
    if folder.exists():
        os.rename(folder, into / f"{folder.name}-{secrets.token_hex(8)}")
    # The shell ends at once, and its child goes on without a parent and without a terminal.
    emptying = 'rm -rf -- "$1"/* </dev/null >/dev/null 2>&1 &'
    remover = ["/bin/sh", "-c", emptying, "sh", str(into)]
    subprocess.run(remover, start_new_session=True, check=False)


@dataclass(frozen=True)
class LocalFiles:
    """The files of one local AWS."""

    folder: Path

    @property
    def port(self) -> int:
        return int(self.folder.name)

    @property
    def temporary(self) -> Path:
        """The emulator's temporary folder, which contains the functions' sandboxes."""
        return self.folder / "tmp"

    @property
    def certificate(self) -> Path:
        """The path of the certificate that the emulator creates if it uses TLS."""
        return self.temporary / "ministack-tls" / "server.crt"

    @property
    def logs(self) -> Path:
        """The folder of the logs; it is separate so that logs remain when `folder` is removed."""
        return self.folder.parent.parent / "logs" / f"local-{self.folder.name}"

    def read(self) -> LocalRecord | None:
        """Return the record; None if it does not exist or cannot be read."""
        try:
            stored = json.loads((self.folder / RECORD).read_text())
            stored["owner"] = ProcessIdentity(**stored["owner"])
            for name in ("emulator", "stand_ins"):
                found = stored.get(name)
                stored[name] = found and ProcessIdentity(**found)
            return LocalRecord(**stored)
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def write(self, record: LocalRecord) -> None:
        """Replace the record atomically: a reader sees the old record or the new one."""
        written = self.folder / f"{RECORD}.new"
        written.write_text(json.dumps(asdict(record), indent=1))
        os.replace(written, self.folder / RECORD)

    @contextmanager
    def updating(self) -> Iterator[None]:
        """Let no other process update the stack. Raises ConsoleError if one does so now."""

        def refuse() -> None:
            raise ConsoleError(
                f"Another command updates the local AWS on port {self.port}; wait until it is done."
            )

        with exclusive(self.folder / "update.lock", waiting=refuse):
            yield

    def remove(self, *, keep_logs: bool = False) -> None:
        """End all processes of this instance and remove its files. Repeating is harmless.

        The files are moved aside first, and removed by a program that goes on after the return.

        Only processes that belong to this instance are ended: the emulator and the stand-ins with
        the recorded identities, and processes whose command line only this instance uses.
        """
        record = self.read()
        if record is not None and record.emulator is not None:
            # Killed at once: asked to stop, it first removes its sandboxes' files one by one.
            end_group(record.emulator, patience=0.0)
        if record is not None and record.stand_ins is not None:
            end_group(record.stand_ins, patience=0.0)
        for pid, arguments in command_lines():
            if self._started(arguments):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        discard(self.folder, into=self.folder.parent.parent / REMOVED)
        if not keep_logs:
            shutil.rmtree(self.logs, ignore_errors=True)

    def _started(self, arguments: list[str]) -> bool:
        """Whether these are the arguments of a process of this instance."""
        emulator = "ministack.app" in " ".join(arguments) and arguments[-1] == str(self.folder)
        stand_ins = "services" in arguments and arguments[-1] == str(self.folder)
        sandbox = self.sandbox_of(arguments) is not None
        inside = any(argument.startswith(f"{self.folder}/") for argument in arguments)
        return emulator or stand_ins or sandbox or ("samcli" in arguments and inside)

    def sandbox_of(self, arguments: list[str]) -> str | None:
        """Return the function whose sandbox has these arguments; None if it is no sandbox."""
        script = re.escape(f"{self.temporary}/ministack-lambda-") + r"([^/]+)-[^-/]*/_worker\.py"
        found = re.fullmatch(script, arguments[-1])
        return found[1] if found else None

    def sandboxes(self, function_name: str) -> list[int]:
        """Return the process IDs of a function's sandboxes, busy or idle."""
        return [
            pid for pid, arguments in command_lines() if self.sandbox_of(arguments) == function_name
        ]


class Instances:
    """All local AWS instances of one project. Only `claim` writes in the project."""

    def __init__(self, project: Path) -> None:
        self._project = project
        self._folder = project / CACHE / "local"

    def __iter__(self) -> Iterator[LocalFiles]:
        if self._folder.is_dir():
            for folder in sorted(self._folder.iterdir()):
                if folder.name.isdigit():
                    yield LocalFiles(folder)

    def at(self, port: int) -> LocalFiles:
        """Return the files of the instance on a port, which need not exist."""
        return LocalFiles(self._folder / str(port))

    def claim(self, port: int) -> tuple[LocalFiles, LocalRecord]:
        """Reserve the port for a new instance, and remove the files of a dead one.

        Raises ConsoleError if an instance runs on the port or is starting.
        """
        instance = self.at(port)
        cache_folder(self._project)
        with exclusive(self._folder.parent / "local.lock"):
            record = instance.read()
            if record is not None and record.is_starting():
                raise ConsoleError(
                    f"Process {record.owner.pid} is already starting a local AWS on port {port}."
                )
            if record is not None and record.is_up():
                raise ConsoleError(
                    f"A local AWS already runs on port {port}. Choose another port with "
                    f"--port, or stop it with `roundsman local down --port {port}`."
                )
            instance.remove()
            owner = identify(os.getpid())
            if owner is None:
                raise ConsoleError("This machine has neither /proc nor ps, which list processes.")
            instance.temporary.mkdir(parents=True)
            record = LocalRecord(port, owner)
            instance.write(record)
        return instance, record

    def only(self, port: int | None) -> LocalFiles | None:
        """Return the instance on a port, or the only one there is; None if there is none.

        Raises ConsoleError if there are several and `port` is None.
        """
        found = [instance for instance in self if port in (None, instance.port)]
        if len(found) > 1:
            ports = ", ".join(str(instance.port) for instance in found)
            raise ConsoleError(f"Several run, on ports {ports}. Choose one with --port.")
        return found[0] if found else None


def none_here(port: int | None) -> str:
    """Return the sentence that no local AWS runs, or none on this port."""
    return "No local AWS runs here." if port is None else f"No local AWS runs here on port {port}."
