"""A local AWS with the project's stack on it, as an object: for commands and for tests."""

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from roundsman_console.local.deploy import (
    build_and_deploy,
    check_sam,
    check_stack_name,
    client_environment,
)
from roundsman_console.local.emulator import check_port, free_port, start
from roundsman_console.local.environment import EmulatorEnvironment, ensure_environment
from roundsman_console.local.errors import LocalError
from roundsman_console.local.files import find_project
from roundsman_console.local.parameters import choose_parameters, declared_parameters, service_urls
from roundsman_console.local.process import ProcessIdentity, end_group
from roundsman_console.local.progress import ProgressListener, Quiet
from roundsman_console.local.rights import allow_batches, enforcing
from roundsman_console.local.run import ProgramRunner, run
from roundsman_console.local.state import Instances, LocalFiles, LocalRecord

DEFAULT_PORT = 4510
DEFAULT_STACK = "roundsman"
SAVED_WITHIN = 60.0  # seconds, for what the emulator keeps; it takes one or two


class LocalAws:
    """One running emulator and the stack on it. Leaving its context takes it down."""

    def __init__(
        self,
        instance: LocalFiles,
        record: LocalRecord,
        emulator: ProcessIdentity,
        start_again: Callable[[LocalRecord], tuple[LocalRecord, ProcessIdentity]],
    ) -> None:
        self._instance = instance
        self._emulator = emulator
        self._start_again = start_again
        self.record = record

    @classmethod
    def up(
        cls,
        *,
        port: int = DEFAULT_PORT,
        services: str | None = None,
        parameters: Mapping[str, str] | None = None,
        stack: str = DEFAULT_STACK,
        project: Path | None = None,
        emulator_environment: Mapping[str, str] | None = None,
        enforce_iam: bool = False,
        progress: ProgressListener | None = None,
        runner: ProgramRunner = run,
    ) -> Self:
        """Bring up a local AWS and deploy the project's template to it.

        `port` 0 takes any free one. `services` is the base URL of all four remote services;
        `parameters` are the template's own, and win. `emulator_environment` is added to the
        emulator's variables. `enforce_iam` gives each function the rights of its role and no more,
        over TLS (`local.rights` says what is added to the roles for it). Raises LocalError with a
        sentence for a person; whatever it raises, nothing is left running.
        """
        progress = progress or Quiet()
        project = find_project(project or Path.cwd()).resolve()
        check_stack_name(stack)
        if not 0 <= port <= 65535:
            raise LocalError(f"A port is a number from 0 to 65535; {port} is not.")
        check_sam()
        declared = declared_parameters(project / "template.yaml")
        # The environment is made by the Python that runs this, so its version is known before it is
        # there.
        runtime = EmulatorEnvironment(Path(), Path()).runtime
        chosen = choose_parameters(declared, parameters or {}, services, runtime)
        instances = Instances(project)
        instance, record = instances.claim(port or free_port())
        with _removed_on_failure(instance):
            check_port(instance.port)
            environment = ensure_environment(project, progress, runner)
            progress.stage(f"Starting the local AWS on 127.0.0.1:{instance.port}")
            record, extra = replace(record, stack=stack), dict(emulator_environment or {})
            if enforce_iam:
                record, variables = enforcing(instance, record)
                extra |= variables

            def start_it(record: LocalRecord) -> tuple[LocalRecord, ProcessIdentity]:
                return start(instance, record, environment, extra)

            record, emulator = start_it(record)
            outputs = build_and_deploy(
                project,
                instance,
                environment,
                record=record,
                parameters=chosen,
                progress=progress,
                runner=runner,
            )
            if enforce_iam:
                allow_batches(record)
            urls = service_urls(declared, chosen)
            record = replace(record, outputs=outputs, services=urls, deployed=True)
            instance.write(record)
        return cls(instance, record, emulator, start_it)

    @property
    def endpoint(self) -> str:
        """Where every AWS service answers."""
        return self.record.endpoint

    @property
    def region(self) -> str:
        """The region that the stack is in."""
        return self.record.region

    @property
    def stack(self) -> str:
        """The stack's name."""
        return self.record.stack

    @property
    def outputs(self) -> dict[str, str]:
        """The stack's outputs."""
        return dict(self.record.outputs)

    @property
    def services(self) -> dict[str, str]:
        """The base URL of each agent's remote service."""
        return dict(self.record.services)

    @property
    def pid(self) -> int:
        """The emulator's process id, and that of its group."""
        return self._emulator.pid

    @property
    def log(self) -> Path:
        """The emulator's log, with what the functions print."""
        return self._instance.logs / "emulator.log"

    @property
    def environment(self) -> dict[str, str]:
        """The variables that point any AWS client at this emulator."""
        return client_environment(self.endpoint, self.region, self.record.certificate)

    def worker_pids(self, function_name: str) -> list[int]:
        """The process ids of a function's sandboxes, busy or idle, by its physical name."""
        return self._instance.sandboxes(function_name)

    def restart(self) -> None:
        """End the emulator in order, with all its sandboxes, and start it again on its port.

        With PERSIST_STATE=1 in `emulator_environment` it comes back with its tables, queues and
        messages, topics, functions and their mappings; without it, empty. It keeps them only at
        such an end. Raises LocalError if it does not come back; nothing is left running then.
        """
        with _removed_on_failure(self._instance):
            end_group(self._emulator, patience=SAVED_WITHIN)
            self.record, self._emulator = self._start_again(self.record)

    def down(self) -> None:
        """End the emulator and all it started, and remove its files. Harmless to repeat."""
        with uninterrupted():
            self._instance.remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.down()


@contextmanager
def _removed_on_failure(instance: LocalFiles) -> Iterator[None]:
    """Whatever ends this early, an interrupt too, leaves nothing but the logs."""
    try:
        yield
    except BaseException:
        with uninterrupted():
            instance.remove(keep_logs=True)
        raise


@contextmanager
def uninterrupted() -> Iterator[None]:
    """A second Ctrl-C, while the first is being cleaned up after, is not heard."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread hears signals
        return
    before = {
        number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
