"""Starts, restarts and stops a local AWS with the project's stack, for commands and for tests."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from roundsman_console.aws.local_record import Instances, LocalFiles, LocalRecord
from roundsman_console.base.errors import ConsoleError
from roundsman_console.base.process import (
    ProcessIdentity,
    ProgramRunner,
    Progress,
    end_group,
    run_program,
    silent,
    uninterrupted,
)
from roundsman_console.base.project_folder import find_project
from roundsman_dev.local.code import check_syntax, python_files
from roundsman_dev.local.deploy import SamProject
from roundsman_dev.local.emulator import check_port, free_port, start
from roundsman_dev.local.environment import RUNTIME, ensure_environment
from roundsman_dev.local.parameters import choose_parameters, declared_parameters, service_urls
from roundsman_dev.local.rights import enforcing
from roundsman_dev.local.stand_ins import stand_ins_url, with_stand_ins
from roundsman_dev.local.update import deploy_stack

DEFAULT_PORT = 4510
DEFAULT_STACK = "roundsman"
SAVED_WITHIN = 60.0  # seconds in which the emulator must save its state; it needs 1 s to 2 s


class LocalAws:
    """A running emulator and its stack; leaving the context stops it and removes its files."""

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
        progress: Progress = silent,
        runner: ProgramRunner = run_program,
    ) -> Self:
        """Start a local AWS and deploy the project's template to it.

        `port` 0 selects a free port. `services` is the base URL of all remote services. Without
        it, the agents whose service has no address get stand-ins, which run until `down`.
        `parameters` are parameters of the template and take precedence over `services`.
        `emulator_environment` is added to the emulator's environment variables. With `enforce_iam`,
        each function has only the permissions of its role, and the emulator uses TLS;
        `local.rights` describes what is added to the roles.

        Raises ConsoleError if the project, the SAM CLI, a parameter or the port cannot be used, or
        if the emulator or the deployment fails. After any exception, nothing runs.
        """
        project = find_project(project or Path.cwd()).resolve()
        if not 0 <= port <= 65535:
            raise ConsoleError(f"A port must be a number from 0 to 65535, not {port}.")
        check_syntax(project, python_files(project), "Nothing was started.")
        declared = declared_parameters(project / "template.yaml")
        stand_ins = stand_ins_url()
        chosen = choose_parameters(
            declared, parameters or {}, services, RUNTIME, stand_ins=stand_ins
        )
        instance, record = Instances(project).claim(port or free_port())
        with _removed_on_failure(instance):
            check_port(instance.port)
            environment = ensure_environment(project, progress, runner)
            progress(f"Starting the local AWS on 127.0.0.1:{instance.port}")
            record = replace(
                record,
                stack=stack,
                services=service_urls(declared, chosen),
                parameters=dict(parameters or {}),
                services_url=services or "",
            )
            extra = dict(emulator_environment or {})
            if enforce_iam:
                record, variables = enforcing(instance, record)
                extra |= variables
            start_it = partial(start, instance, environment=environment, extra=extra)
            record, emulator = start_it(record)
            record = with_stand_ins(project, instance, record, stand_ins)
            sam = SamProject(
                project=project,
                instance=instance,
                environment=environment,
                record=record,
                parameters=chosen,
                progress=progress,
                runner=runner,
            )
            record = deploy_stack(sam)
        return cls(instance, record, emulator, start_it)

    @property
    def endpoint(self) -> str:
        """The endpoint URL of all AWS services."""
        return self.record.endpoint

    @property
    def region(self) -> str:
        """The region of the stack."""
        return self.record.region

    @property
    def stack(self) -> str:
        """The name of the stack."""
        return self.record.stack

    @property
    def outputs(self) -> dict[str, str]:
        """The outputs of the stack."""
        return dict(self.record.outputs)

    @property
    def services(self) -> dict[str, str]:
        """The base URL of each agent's remote service, by the agent's name."""
        return dict(self.record.services)

    @property
    def pid(self) -> int:
        """The ID of the emulator's process and of its process group."""
        return self._emulator.pid

    @property
    def log(self) -> Path:
        """The file of the emulator's log, which includes the output of the functions."""
        return self._instance.logs / "emulator.log"

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables that make an AWS client use this emulator."""
        return self.record.client_environment

    def worker_pids(self, function_name: str) -> list[int]:
        """Return the process IDs of a function's sandboxes, busy or idle.

        `function_name` is the physical name.
        """
        return self._instance.sandboxes(function_name)

    def restart(self) -> None:
        """Stop the emulator and its sandboxes in an orderly way, and start it on the same port.

        With PERSIST_STATE=1 in `emulator_environment`, the emulator restores its tables, queues,
        messages, topics, functions and event source mappings. It saves them only when it is stopped
        in an orderly way. Without this variable, it starts empty. Raises ConsoleError if it does
        not start; nothing keeps running then.
        """
        with _removed_on_failure(self._instance):
            end_group(self._emulator, patience=SAVED_WITHIN)
            self.record, self._emulator = self._start_again(self.record)

    def down(self) -> None:
        """Stop the emulator and all that it started, and remove its files. May be repeated."""
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
    """Remove the instance, except its logs, after any exception or interrupt."""
    try:
        yield
    except BaseException:
        with uninterrupted():
            instance.remove(keep_logs=True)
        raise
