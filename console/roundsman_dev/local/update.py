"""Updates a running local stack in place: its tables and queues keep their data."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError

from roundsman_console.aws.local_record import Instances, LocalFiles, LocalRecord, none_here
from roundsman_console.base.errors import ConsoleError
from roundsman_console.base.process import ProgramRunner, Progress, run_program, silent
from roundsman_dev.local.code import (
    StackCode,
    artifacts,
    check_syntax,
    code_change,
    copy_files,
    python_files,
)
from roundsman_dev.local.deploy import (
    SamProject,
    built_folder,
    emulator_errors,
    emulator_session,
)
from roundsman_dev.local.environment import RUNTIME, ensure_environment
from roundsman_dev.local.parameters import choose_parameters, declared_parameters, service_urls
from roundsman_dev.local.rights import allow_batches
from roundsman_dev.local.stand_ins import stand_ins_url, with_stand_ins

UP = "`roundsman local up` starts one"


def running_instance(project: Path, port: int | None) -> LocalFiles:
    """Return the files of the project's running local AWS, or of the one on a port.

    Raises ConsoleError if none runs there, or if several run and `port` is None.
    """
    instance = Instances(project).only(port)
    if instance is None:
        raise ConsoleError(f"{none_here(port)} {UP}.")
    running_record(instance)
    return instance


def running_record(instance: LocalFiles) -> LocalRecord:
    """Return the record of an instance. Raises ConsoleError unless its stack is up."""
    record = instance.read()
    if record is not None and record.is_up():
        return record
    if record is not None and record.is_starting():
        raise ConsoleError(f"The local AWS on port {instance.port} is still starting.")
    raise ConsoleError(f"The local AWS on port {instance.port} has ended. {UP}.")


def deploy(
    project: Path,
    instance: LocalFiles,
    *,
    services: str | None = None,
    parameters: Mapping[str, str] | None = None,
    progress: Progress = silent,
    runner: ProgramRunner = run_program,
) -> LocalRecord:
    """Build the project, update the instance's stack with it, and return its new record.

    `services` and `parameters` are as for `LocalAws.up`. Without them, those of the last deployment
    are used; a parameter that the template no longer has is left out. Stand-ins for services are
    started if they are needed and do not run. After an exception the stack
    runs as before. Raises ConsoleError if the instance does not run, if a file is not valid Python,
    or if the project cannot be built or deployed.
    """
    with instance.updating():
        record = running_record(instance)
        check_syntax(project, python_files(project))
        declared = declared_parameters(project / "template.yaml")
        before = {
            name: value for name, value in record.parameters.items() if name in declared.parameters
        }
        asked = {**before, **(parameters or {})}
        url = services or record.services_url
        stand_ins = stand_ins_url(record)
        chosen = choose_parameters(declared, asked, url or None, RUNTIME, stand_ins=stand_ins)
        record = replace(
            record,
            services=service_urls(declared, chosen),
            parameters=asked,
            services_url=url,
        )
        record = with_stand_ins(project, instance, record, stand_ins)
        sam = SamProject(
            project=project,
            instance=instance,
            environment=ensure_environment(project, progress, runner),
            record=record,
            parameters=chosen,
            progress=progress,
            runner=runner,
        )
        return deploy_stack(sam)


def deploy_stack(sam: SamProject) -> LocalRecord:
    """Build a project, deploy it, and return the record of its stack, which is stored.

    After an exception a stack that was there before runs as before. Raises ConsoleError.
    """
    record = sam.record
    sam.build()
    try:
        outputs = sam.deploy()
    except ConsoleError as error:
        if not record.deployed:
            raise
        _put_code(sam, deployed=False)
        raise ConsoleError(f"{error}. {_state_after_failure(record)}") from error
    if record.certificate:  # IAM is enforced
        allow_batches(record)
    _put_code(sam, deployed=True)
    record = replace(record, outputs=outputs, deployed=True, changed=[])
    sam.instance.write(record)
    return record


class CodePutter:
    """Puts changed files into the running functions, without a deployment.

    It is made after a deployment, and knows what that one built.
    """

    def __init__(self, project: Path, instance: LocalFiles) -> None:
        """Raises ConsoleError if the instance does not run, or if its stack cannot be read."""
        self._project = project
        self._instance = instance
        record = running_record(instance)
        self._known = artifacts(project, built_folder(instance), record.stack)
        with emulator_errors():
            self._code = StackCode(record)

    def put(self, files: Iterable[Path]) -> tuple[str, ...] | None:
        """Put these files, which are relative to the project, where copies of them run.

        Returns the names of the functions that changed; None if the files need a deployment.
        Raises ConsoleError if a file is not valid Python, if the instance does not run, or if the
        emulator refuses.
        """
        files = list(files)
        change = code_change(files, self._known)
        if change is None:
            return None
        check_syntax(self._project, files)
        with self._instance.updating(), emulator_errors():
            record = running_record(self._instance)
            changed = {each.name: each for owners in change.values() for each in owners}
            names = sorted({*record.changed, *changed})
            # Stored before the functions differ from what CloudFormation knows.
            record = replace(record, changed=names)
            self._instance.write(record)
            copy_files(self._project, change)
            return self._code.put(changed.values())


def _put_code(sam: SamProject, *, deployed: bool) -> None:
    """Let functions whose code was replaced without CloudFormation run the code of the last build.

    CloudFormation does not know that code: it may see no difference where there is one, and it
    takes the code back when it restores a stack. With `deployed`, the stack's layers are those of
    the last build.
    """
    if not sam.record.changed:
        return
    known = artifacts(sam.project, built_folder(sam.instance), sam.record.stack)
    changed = [each for each in known if each.name in sam.record.changed]
    with emulator_errors():
        code = StackCode(sam.record)
        code.put(each for each in changed if not (each.is_layer and deployed))
        if deployed:
            code.put_back_layers()


def _state_after_failure(record: LocalRecord) -> str:
    """Return a sentence that says whether the stack runs as before."""
    stacks = emulator_session(record).client("cloudformation", endpoint_url=record.endpoint)
    try:
        status = stacks.describe_stacks(StackName=record.stack)["Stacks"][0]["StackStatus"]
    except (BotoCoreError, ClientError, LookupError) as error:
        return f"Whether the stack still runs is not known: {error}"
    if status.endswith("_COMPLETE"):
        return "The stack runs as before."
    return (
        f"The stack is {status}, since the emulator could not restore it: start again with "
        f"`roundsman local down --port {record.port}` and `roundsman local up`."
    )
