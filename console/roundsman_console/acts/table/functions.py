"""Stops all functions of a stack that write to its tables, and starts them again.

Each function is named by an output of the stack, and its event source mappings are asked for by its
name: those of another stack, whatever its name begins with, are never touched. Each function here
raises CallRefused or TryAgain if AWS refuses a call.
"""

from collections.abc import Sequence

from roundsman.aws.errors import aws_errors
from roundsman_console.aws.resources import event_source_mappings
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.aws.versions import functions_of
from roundsman_console.base import clock
from roundsman_console.facts.table.record import Record

BETWEEN_LOOKS = 5.0
_SUPERVISOR, _SCHEDULER = "SupervisorFunctionName", "Scheduler"
_OFF = ("Disabled", "Deleting")


def note_what_runs(stack: DeployedStack, record: Record) -> None:
    """Note what `stop` will stop."""
    client = stack.lambda_client
    with aws_errors("reading the event source mappings"):
        for name, function in functions_of(stack.outputs).items():
            enabled = [
                one["UUID"]
                for one in event_source_mappings(client, function)
                if one.get("State") not in _OFF
            ]
            record.mappings += enabled
            if name == _SCHEDULER:
                record.scheduler += enabled
    with aws_errors("reading the concurrency of the supervisor"):
        found = client.get_function_concurrency(FunctionName=stack.output(_SUPERVISOR))
        reserved = found.get("ReservedConcurrentExecutions")
        record.concurrency = reserved if reserved else None


def stop(stack: DeployedStack, record: Record) -> None:
    """Stop the supervisor, then each function that reads a queue, and return when none reads.

    May be repeated.
    """
    client = stack.lambda_client
    with aws_errors("stopping the functions"):
        client.put_function_concurrency(
            FunctionName=stack.output(_SUPERVISOR), ReservedConcurrentExecutions=0
        )
        for uuid in record.mappings:
            client.update_event_source_mapping(UUID=uuid, Enabled=False)
        for uuid in record.mappings:
            while client.get_event_source_mapping(UUID=uuid).get("State") not in _OFF:
                clock.pause(BETWEEN_LOOKS)


def are_stopped(stack: DeployedStack, record: Record) -> bool:
    """Whether nothing that `stop` stopped runs again."""
    client = stack.lambda_client
    with aws_errors("reading whether the functions are stopped"):
        found = client.get_function_concurrency(FunctionName=stack.output(_SUPERVISOR))
        return found.get("ReservedConcurrentExecutions") == 0 and all(
            client.get_event_source_mapping(UUID=uuid).get("State") in _OFF
            for uuid in record.mappings
        )


def start(stack: DeployedStack, mappings: Sequence[str]) -> None:
    """Let these event source mappings read again. May be repeated."""
    with aws_errors("starting the functions"):
        for uuid in mappings:
            stack.lambda_client.update_event_source_mapping(UUID=uuid, Enabled=True)


def start_supervisor(stack: DeployedStack, record: Record) -> None:
    """Let the supervisor run as before. May be repeated."""
    name, client = stack.output(_SUPERVISOR), stack.lambda_client
    with aws_errors("starting the supervisor"):
        if record.concurrency is None:
            client.delete_function_concurrency(FunctionName=name)
        else:
            client.put_function_concurrency(
                FunctionName=name, ReservedConcurrentExecutions=record.concurrency
            )
