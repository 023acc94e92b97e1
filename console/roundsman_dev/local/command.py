"""`roundsman local up | deploy | status | down`: a local AWS with the stack."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import create_connection
from typing import Annotated
from urllib.parse import urlsplit

import typer

from roundsman_console.aws.local_record import Instances, LocalFiles, LocalRecord, none_here
from roundsman_console.aws.stack import LOOPBACK, configured_stack
from roundsman_console.base.errors import ConsoleError, InvalidArgument, StackNotFound
from roundsman_console.base.process import (
    NOTHING_IS_LEFT,
    on_stderr,
    stopped_by_signals,
    uninterrupted,
)
from roundsman_console.base.project_folder import find_project
from roundsman_console.base.sanitize import inert
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_dev.local import DEFAULT_PORT, DEFAULT_STACK, LocalAws
from roundsman_dev.local.documents import (
    LocalInstanceDocument,
    LocalState,
    LocalStatusDocument,
    LocalUpDocument,
)
from roundsman_dev.local.emulator import is_healthy
from roundsman_dev.local.parameters import parse_assignments
from roundsman_dev.local.update import deploy as update_stack
from roundsman_dev.local.update import running_instance
from roundsman_dev.local.watch import snapshot, watch_project

local_app = typer.Typer(
    help="A local AWS on this machine, with the stack deployed on it. No account and no Docker.",
    no_args_is_help=True,
)

NOT_HEALTHY, NONE, STARTING = 1, 3, 4  # exit codes of `status`

ProjectOption = Annotated[
    Path | None,
    typer.Option(
        "--project", help="The project's folder; this one, or the nearest above it, by default."
    ),
]
PortOption = Annotated[
    int | None, typer.Option(help="The local AWS on this port; required if several run.")
]
ServicesOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="The base URL of all agents' remote services; by default, that of stand-ins, which "
        "are started, or that of the last deployment.",
    ),
]
ParamOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="KEY=VALUE",
        help="A parameter of the template: Key=Value; may be repeated. `deploy` keeps the others.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object, for scripts.")]


@local_app.command()
def up(
    port: Annotated[
        int, typer.Option(help="The loopback port to listen on; 0 takes any free port.")
    ] = DEFAULT_PORT,
    services: ServicesOption = None,
    param: ParamOption = None,
    stack: StackOption = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start a local AWS and stand-ins for its services, build the project and deploy it there.

    Example: roundsman local up --param LogLevel=DEBUG
    """
    with _sentences():
        local = LocalAws.up(
            port=port,
            services=services,
            parameters=parse_assignments(param or []),
            stack=stack or _stack_of(project),
            project=project,
            progress=on_stderr,
        )
    if as_json:
        print(json.dumps(_described(local.record)))
        return
    for line in up_lines(local, _stack_of(project)):
        _print_line(line)


@local_app.command()
def deploy(
    port: PortOption = None,
    services: ServicesOption = None,
    param: ParamOption = None,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Then deploy each change when it is saved, until Ctrl-C."),
    ] = False,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Update the stack of a running local AWS in place; its orders stay.

    Example: roundsman local deploy --watch
    """
    with _sentences("Stopped; the local AWS keeps running."):
        if watch and as_json:
            raise InvalidArgument("--json prints one update: leave out --watch.")
        asked = parse_assignments(param or [])
        home = find_project(project or Path.cwd()).resolve()
        instance = running_instance(home, port)
        seen = snapshot(home)
        began = time.monotonic()
        record = update_stack(
            home, instance, services=services, parameters=asked, progress=on_stderr
        )
        if as_json:
            print(json.dumps(_described(record)))
            return
        _print_line(f"Deployed {record.stack} ({time.monotonic() - began:.1f} s).")
        if watch:
            watch_project(home, instance, seen, _print_line)


def _print_line(line: str) -> None:
    print(inert(line), flush=True)  # not wrapped: some lines are copied


@local_app.command()
def status(
    port: Annotated[int | None, typer.Option(help="Only the local AWS on this port.")] = None,
    project: ProjectOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the local AWS of this project, one line for each.

    Exits 0 if all are healthy, 1 if one is not, 3 if none runs, and 4 if one is starting.

    Example: roundsman local status --json
    """
    with _sentences():
        home = find_project(project or Path.cwd()).resolve()
        instances = [each for each in Instances(home) if port in (None, each.port)]
    found = [(instance, _health(instance)) for instance in instances]
    if as_json:
        described = [_status(instance, health) for instance, health in found]
        print(json.dumps(LocalStatusDocument(instances=described)))
    else:
        for instance, health in found:
            record = instance.read()
            named = f"{record.endpoint} {record.stack}" if record else f"port {instance.port}"
            _print_line(f"{named}: {health}; logs in {instance.logs.relative_to(home)}")
        if not found:
            print(none_here(port))
    states = {health for _, health in found}
    raise typer.Exit(_exit_code(states))


@local_app.command()
def down(
    port: PortOption = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every local AWS of this project.")
    ] = False,
    project: ProjectOption = None,
) -> None:
    """Stop a local AWS and its stand-ins, and remove everything that it created, except its logs.

    Example: roundsman local down --port 4510
    """
    with _sentences():
        home = find_project(project or Path.cwd()).resolve()
        instances = Instances(home)
        one = instances.only(port) if not everything else None
        found = list(instances) if everything else [one] if one else []
        if port is not None and not found:
            raise ConsoleError(none_here(port))
        for instance in found:
            with uninterrupted():
                instance.remove(keep_logs=True)
            print(f"Stopped the local AWS on port {instance.port}.{_logs(instance, home)}")
        if not found:
            print(none_here(None))


def _stack_of(project: Path | None) -> str:
    """Return the stack that the other commands use in this project: that of samconfig.toml."""
    try:
        return configured_stack(find_project(project or Path.cwd()))
    except StackNotFound:
        return DEFAULT_STACK


def _logs(instance: LocalFiles, project: Path) -> str:
    if not instance.logs.is_dir():
        return ""
    return f" Its logs are in {instance.logs.relative_to(project)}."


def _health(instance: LocalFiles) -> LocalState:
    record = instance.read()
    if record is not None and record.is_starting():
        return "starting"
    if record is None or not record.is_up():
        return "dead"
    return "healthy" if is_healthy(record) else "silent"


def _exit_code(states: set[LocalState]) -> int:
    if not states:
        return NONE
    if states & {"dead", "silent"}:
        return NOT_HEALTHY
    return STARTING if "starting" in states else 0


def _described(record: LocalRecord) -> LocalUpDocument:
    return {
        "endpoint": record.endpoint,
        "stack": record.stack,
        "region": record.region,
        "outputs": record.outputs,
        "services": record.services,
    }


def _status(instance: LocalFiles, health: LocalState) -> LocalInstanceDocument:
    record = instance.read()
    described: LocalInstanceDocument = {
        "port": instance.port,
        "state": health,
        "log": str(instance.logs / "emulator.log"),
    }
    if record is None:
        return described
    pid = record.emulator.pid if record.emulator else None
    return {**described, **_described(record), "pid": pid}


def up_lines(local: LocalAws, configured: str) -> list[str]:
    """Return what to type next in a local AWS; `configured` is the stack of samconfig.toml."""
    found = [f"{local.stack} is deployed on {local.endpoint}. For the next commands:"]
    found.append(f"  {local.record.export_command(configured)}")
    given = local.record.services_url
    otherwise = "leave out --services for stand-ins" if given else "give its address with --param"
    for url in sorted({url for url in local.services.values() if not _listens(url)}):
        found.append(f"No service answers at {url}: start yours, or {otherwise}")
    if local.record.stand_ins_url:
        url = local.record.stand_ins_url
        found.append(f"Stand-ins play its services. Effects: {url}/_ledger   Faults: {url}/_faults")
    port = local.record.port
    found.append(f"Its outputs: roundsman local status --port {port} --json")
    found.append(f"To stop it: roundsman local down --port {port}")
    return found


_PORTS = {"http": 80, "https": 443}


def _listens(url: str) -> bool:
    """Whether a process may answer at this URL; True for an address elsewhere.

    One that is too busy to accept a connection is there as well.
    """
    parts = urlsplit(url)
    if parts.hostname not in LOOPBACK:
        return True
    try:
        port = parts.port or _PORTS.get(parts.scheme, 80)
        with create_connection((parts.hostname, port), timeout=1):
            return True
    except TimeoutError:
        return True
    except (OSError, ValueError):  # the latter if there is no such port
        return False


@contextmanager
def _sentences(interrupted: str = NOTHING_IS_LEFT) -> Iterator[None]:
    """Print an error in the `with` block as one sentence, and raise typer.Exit.

    `interrupted` is printed after Ctrl-C.
    """
    with sentences(), stopped_by_signals(interrupted):
        try:
            yield
        except OSError as error:
            raise ConsoleError(f"The local AWS cannot continue: {error}.") from error
