"""The record of what runs: a folder for each port, with a JSON file and all the emulator writes."""

import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from roundsman_console.local.errors import LocalError
from roundsman_console.local.files import cache_folder, exclusive
from roundsman_console.local.process import (
    ProcessIdentity,
    command_lines,
    end_each,
    end_group,
    identify,
)

RECORD = "state.json"


@dataclass(frozen=True)
class LocalRecord:
    """What is known of one local AWS. Without outputs it is still being brought up, by `owner`."""

    port: int
    owner: ProcessIdentity
    emulator: ProcessIdentity | None = None
    mark: str = ""  # what the emulator answers in its health check, and no other does
    stack: str = ""
    region: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    services: dict[str, str] = field(default_factory=dict)
    deployed: bool = False
    certificate: str = ""  # the file of what it proves itself by; without one it speaks no TLS

    @property
    def endpoint(self) -> str:
        return f"{'https' if self.certificate else 'http'}://127.0.0.1:{self.port}"

    def is_starting(self) -> bool:
        """Whether the command that brings it up is still at it."""
        return not self.deployed and self.owner.is_alive()

    def is_up(self) -> bool:
        """Whether it was brought up to the end, and its emulator still runs."""
        return self.deployed and self.emulator is not None and self.emulator.is_alive()


@dataclass(frozen=True)
class LocalFiles:
    """The files of one local AWS."""

    folder: Path

    @property
    def port(self) -> int:
        return int(self.folder.name)

    @property
    def temporary(self) -> Path:
        """The emulator's own temporary folder: its functions' sandboxes lie in it."""
        return self.folder / "tmp"

    @property
    def certificate(self) -> Path:
        """What the emulator makes, and proves itself by, where it speaks TLS."""
        return self.temporary / "ministack-tls" / "server.crt"

    @property
    def logs(self) -> Path:
        """Logs lie apart, since they are wanted most when the rest is gone."""
        return self.folder.parent.parent / "logs" / f"local-{self.folder.name}"

    def read(self) -> LocalRecord | None:
        """The record; None where there is none that can be read."""
        try:
            stored = json.loads((self.folder / RECORD).read_text())
            stored["owner"] = ProcessIdentity(**stored["owner"])
            stored["emulator"] = (
                ProcessIdentity(**stored["emulator"]) if stored["emulator"] else None
            )
            return LocalRecord(**stored)
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def write(self, record: LocalRecord) -> None:
        """Store the record as a whole: a reader sees the old one or the new one."""
        written = self.folder / f"{RECORD}.new"
        written.write_text(json.dumps(asdict(record), indent=1))
        os.replace(written, self.folder / RECORD)

    def remove(self, *, keep_logs: bool = False) -> None:
        """End all that runs for this instance and remove its files. Harmless to repeat.

        Only what is known to be its own is ended: the emulator by its recorded identity, and
        programs whose command line is one that only this instance starts.
        """
        record = self.read()
        if record is not None and record.emulator is not None:
            end_group(record.emulator)
        end_each([pid for pid, arguments in command_lines() if self._started(arguments)])
        shutil.rmtree(self.folder, ignore_errors=True)
        if not keep_logs:
            shutil.rmtree(self.logs, ignore_errors=True)

    def _started(self, arguments: list[str]) -> bool:
        """Whether these are the arguments of something that only this instance starts."""
        emulator = "ministack.app" in " ".join(arguments) and arguments[-1] == str(self.folder)
        sandbox = self.sandbox_of(arguments) is not None
        inside = any(argument.startswith(f"{self.folder}/") for argument in arguments)
        return emulator or sandbox or ("samcli" in arguments and inside)

    def sandbox_of(self, arguments: list[str]) -> str | None:
        """The function whose sandbox has these arguments; None if they are not a sandbox's."""
        script = Path(arguments[-1])
        sandbox = script.parent
        prefix = "ministack-lambda-"
        if (
            script.name != "_worker.py"
            or sandbox.parent != self.temporary
            or not sandbox.name.startswith(prefix)
        ):
            return None
        return sandbox.name.removeprefix(prefix).rpartition("-")[0]

    def sandboxes(self, function_name: str) -> list[int]:
        """The process ids of a function's sandboxes, busy or idle."""
        return [
            pid for pid, arguments in command_lines() if self.sandbox_of(arguments) == function_name
        ]


class Instances:
    """All local AWSs of one project."""

    def __init__(self, project: Path) -> None:
        self._folder = cache_folder(project) / "local"

    def __iter__(self) -> Iterator[LocalFiles]:
        if self._folder.is_dir():
            for folder in sorted(self._folder.iterdir()):
                if folder.name.isdigit():
                    yield LocalFiles(folder)

    def at(self, port: int) -> LocalFiles:
        """The instance of a port, whether or not there is one."""
        return LocalFiles(self._folder / str(port))

    def claim(self, port: int) -> tuple[LocalFiles, LocalRecord]:
        """Take the port for a new instance, clearing away what a dead one left there.

        Raises LocalError if one runs there, or is being brought up.
        """
        instance = self.at(port)
        with exclusive(self._folder.parent / "local.lock"):
            record = instance.read()
            if record is not None and record.is_starting():
                raise LocalError(
                    f"A local AWS is being brought up on port {port} already, "
                    f"by process {record.owner.pid}."
                )
            if record is not None and record.is_up():
                raise LocalError(
                    f"A local AWS runs on port {port} already: choose another with --port, "
                    f"or end it with `roundsman local down --port {port}`."
                )
            instance.remove()
            owner = identify(os.getpid())
            if owner is None:
                raise LocalError("This machine shows no processes: it has neither /proc nor ps.")
            instance.temporary.mkdir(parents=True)
            record = LocalRecord(port, owner)
            instance.write(record)
        return instance, record
