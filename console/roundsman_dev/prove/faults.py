"""The faults that a proof makes while orders are under way, by rights that a deployer has.

What the services do, and what becomes of the processes of agents, is no fault here: it follows from
each order (`application.orders.Treatment`).
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Final, TypeAlias

from botocore.exceptions import BotoCoreError, ClientError

from roundsman.errors import RoundsmanError
from roundsman_console.aws.resources import event_source_mappings
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.aws.versions import functions_of
from roundsman_console.base import clock
from roundsman_console.base.errors import sentence_of
from roundsman_dev.prove.deployment import ProofProject
from roundsman_dev.prove.document import THROTTLED, TIMED_OUT, FaultOutcome, MadeFault

LEAST_WRITES = 5
"""The most write units a second of the table while it is at its maximum."""

NO_MAXIMUM = -1
"""What takes the maximum of a table back; a table of a proof is made without one."""

TRIES = 3
BETWEEN_TRIES = 5.0  # seconds

ENGINE = ("submission", "scheduler", "supervisor")

_NO_RIGHT = ("AccessDenied", "UnauthorizedOperation", "AuthorizationError")


@dataclass(frozen=True)
class Means:
    """What a fault is made with."""

    stack: DeployedStack
    project: ProofProject


Make: TypeAlias = Callable[[Means], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True)
class ProofFault:
    """A fault: it begins, lasts for a time, and ends."""

    name: str
    does: str
    needs: tuple[str, ...]
    """The rights that it needs beside those of a deployment."""
    local: bool
    """Whether a local AWS can have it."""
    seconds: float
    """How long it lasts."""
    make: Make
    makes: tuple[tuple[str, str], ...] = ()
    """Each function that may fail meanwhile, with the failure."""
    deployments: int = 0
    """How many deployments it takes."""


@contextmanager
def _no_concurrency(means: Means) -> Iterator[None]:
    client = means.stack.lambda_client
    name = means.stack.output("SchedulerFunctionName")
    client.put_function_concurrency(FunctionName=name, ReservedConcurrentExecutions=0)
    try:
        yield
    finally:
        _surely(lambda: client.delete_function_concurrency(FunctionName=name))


@contextmanager
def _paused_mappings(means: Means) -> Iterator[None]:
    client = means.stack.lambda_client
    function = functions_of(means.stack.outputs)["Stock"]
    paused = [one["UUID"] for one in event_source_mappings(client, function)]

    def enable(uuid: str, enabled: bool) -> object:
        return client.update_event_source_mapping(UUID=uuid, Enabled=enabled)

    try:
        for uuid in paused:
            enable(uuid, enabled=False)
        yield
    finally:
        for uuid in paused:
            _surely(partial(enable, uuid, enabled=True))


@contextmanager
def _table_at_its_maximum(means: Means) -> Iterator[None]:
    client, table = means.stack.dynamodb, means.stack.output("TasksTableName")

    def limit(units: int) -> object:
        return client.update_table(
            TableName=table, OnDemandThroughput={"MaxWriteRequestUnits": units}
        )

    def take_back() -> None:
        client.get_waiter("table_exists").wait(TableName=table)  # until it is active again
        limit(NO_MAXIMUM)

    try:
        limit(LEAST_WRITES)
        yield
    finally:
        _surely(take_back)


def _changed_code(means: Means) -> AbstractContextManager[None]:
    return means.project.changed_code()


def _too_short(means: Means) -> AbstractContextManager[None]:
    return means.project.too_short()


FAULTS: Final = (
    ProofFault(
        "no concurrency",
        "the scheduler may not run at all",
        ("lambda:PutFunctionConcurrency", "lambda:DeleteFunctionConcurrency"),
        local=True,
        seconds=45,
        make=_no_concurrency,
    ),
    ProofFault(
        "changed code",
        "another version of an agent is deployed",
        (),
        local=True,
        seconds=0,
        make=_changed_code,
        deployments=1,
    ),
    ProofFault(
        "paused mapping",
        "an agent reads none of its requests",
        ("lambda:ListEventSourceMappings", "lambda:UpdateEventSourceMapping"),
        local=True,
        seconds=60,
        make=_paused_mappings,
    ),
    ProofFault(
        "time-out too short",
        "a scheduler is deployed that has one second for a batch",
        (),
        local=True,
        seconds=45,
        make=_too_short,
        makes=(("scheduler", TIMED_OUT),),
        deployments=2,
    ),
    ProofFault(
        "table at its maximum",
        f"the tasks table takes {LEAST_WRITES} writes a second",
        ("dynamodb:UpdateTable", "dynamodb:DescribeTable"),
        local=False,
        seconds=60,
        make=_table_at_its_maximum,
        makes=tuple(product(ENGINE, (TIMED_OUT, THROTTLED))),
    ),
)
"""In the order in which they are made."""

NOT_LOCAL = "a local AWS takes every write, whatever the maximum of a table"
"""Why a fault is not tried there."""


def made(fault: ProofFault, means: Means) -> MadeFault:
    """Make a fault, wait for its time, and end it. A fault that cannot be made is no error.

    Ctrl-C ends it, and is raised.
    """
    if means.project.place.local and not fault.local:
        return MadeFault(fault.name, FaultOutcome.NOT_HERE, NOT_LOCAL)
    began = clock.now()
    try:
        with fault.make(means):
            clock.pause(fault.seconds)
    except (ClientError, BotoCoreError, RoundsmanError) as error:
        outcome = FaultOutcome.REFUSED if _is_of_rights(error) else FaultOutcome.FAILED
        why = sentence_of(error)
        if outcome is FaultOutcome.REFUSED and fault.needs:
            why = f"{', '.join(fault.needs)}: {why}"
        return MadeFault(fault.name, outcome, why)
    return MadeFault(
        fault.name,
        FaultOutcome.MADE,
        began_at=began,
        ended_at=clock.now(),
        makes=fault.makes,
    )


def _is_of_rights(error: Exception) -> bool:
    if isinstance(error, ClientError):
        return str(error.response.get("Error", {}).get("Code", "")).startswith(_NO_RIGHT)
    return any(word in str(error) for word in (*_NO_RIGHT, "not authorized"))


def _surely(end: Callable[[], object]) -> None:
    """End a fault, with more than one try: the orders could not end under it."""
    for left in reversed(range(TRIES)):
        try:
            end()
            return
        except (ClientError, BotoCoreError):
            if not left:
                raise
            clock.pause(BETWEEN_TRIES)
