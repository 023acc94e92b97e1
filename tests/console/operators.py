"""A deployment with an operator at its command line, for tests of what operators type.

The command line waits for the scheduler by looking again and again; here the real scheduler works
whenever the command line sleeps, and no second passes.
"""

import io
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field

import boto3
import pytest
from typer.testing import CliRunner, Result

from roundsman.aws.dynamodb.control import DynamoReadNotes
from roundsman.aws.dynamodb.holds import DynamoHolds
from roundsman.model.scheduler_queues import REPLIES
from roundsman_console.acts.bulk.start import BETWEEN_READS
from roundsman_console.base import clock as polling
from roundsman_console.facts.set_aside import peek
from roundsman_console.main import app
from roundsman_testing.stack import Stack
from tests.console.schemas import assert_schema
from tests.console.verbs import schema_of, split_verb
from tests.moto.orders import order

DECLINED = {"paymentToken": "tok_declined"}
CHARGED_LATER: dict[str, object] = {
    "operation": "POST /charges",
    "status": 503,
    "retryAfter": 600,
    "times": 1,
}


MOST_WAITS = 5_000
_PLACE = re.compile(
    r"(?m)^(?:Stack \S+ (?:in account|on the local AWS at)|A local AWS of this project runs) .*\n"
)


def without_place(printed: str) -> str:
    """What a command printed without the lines that say which AWS it talks to."""
    return _PLACE.sub("", printed)


@dataclass
class Patience:
    """Stands in for the module `time` where the command line waits."""

    sleeping: Callable[[], None]
    now: float = 0.0
    slept: list[float] = field(default_factory=list)

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.slept.append(seconds)
        assert len(self.slept) < MOST_WAITS, "the command waits for what never happens"
        with redirect_stdout(io.StringIO()):  # functions write their metrics there
            self.sleeping()


@dataclass
class Operator:
    """Someone who types commands at the stack of a world."""

    world: Stack
    patience: Patience

    def types(self, *arguments: str, answer: str | None = None) -> Result:
        """Run one command; `answer` is what is typed when asked. Its JSON is as its schema says.

        The result is without the line that names the stack, which `test_target` looks at.
        """
        verb, rest = split_verb(arguments)
        # The stack is that of samconfig.toml: with --stack, each hint names it too.
        result = CliRunner(env={"COLUMNS": "100"}).invoke(app, [*arguments], input=answer)
        for kept in ("stderr_bytes", "output_bytes"):
            setattr(result, kept, without_place(getattr(result, kept).decode()).encode())
        if "--json" in rest and result.stdout:
            assert_schema(schema_of(verb), document(result))
        return result

    def lets_time_pass(self) -> None:
        """While a command waits, time passes: the supervisor carries out the bulk runs."""
        self.patience.sleeping = lambda: self.world.pass_time(BETWEEN_READS)

    def asks(self, *arguments: str) -> Result:
        """The same by a person called ops, without being asked back."""
        return self.types(*arguments, "--as", "ops", "--reason", "routine", "--yes")

    def reads(self, *arguments: str) -> dict[str, object]:
        """What a command that must go well says as JSON."""
        result = self.types(*arguments, "--json")
        assert result.exit_code == 0, result.output
        return document(result)


def operator_of(world: Stack, monkeypatch: pytest.MonkeyPatch) -> Operator:
    """Someone at the command line of a stack that many tests share, as it was deployed."""
    world.start_over()
    patience = Patience(world.run)
    monkeypatch.setattr(polling, "time", patience)
    monkeypatch.setattr(peek, "LONG_POLL", 0)  # on a clock that stands, it would never end
    return Operator(world, patience)


def document(result: Result) -> dict[str, object]:
    """The one JSON object on standard output."""
    found = json.loads(result.stdout)
    assert isinstance(found, dict)
    return found


def in_retry(operator: Operator) -> None:
    """An order whose charge waits ten minutes for its second attempt."""
    operator.world.faults(CHARGED_LATER)
    operator.world.submit(order("ord-1"))
    operator.world.run()
    assert operator.world.task("ord-1").state == "Retry"


@contextmanager
def at_each_call(operation: str, hook: Callable[..., None]) -> Iterator[None]:
    """Let this happen just before each call of that operation (`sqs.SendMessage`)."""
    session = boto3.DEFAULT_SESSION
    assert session is not None
    session.events.register(f"provide-client-params.{operation}", hook)
    yield
    session.events.unregister(f"provide-client-params.{operation}", hook)


@contextmanager
def let_go_is_seen_at_once(world: Stack) -> Iterator[None]:
    """Let a millisecond pass when messages are let go: moto hides them until after that instant."""

    def pass_by(**_: object) -> None:
        world.clock.now += 1

    session = boto3.DEFAULT_SESSION
    assert session is not None
    session.events.register("after-call.sqs.ChangeMessageVisibilityBatch", pass_by)
    yield
    session.events.unregister("after-call.sqs.ChangeMessageVisibilityBatch", pass_by)


def note_reply_read(world: Stack, agent: str, *, waited: int) -> None:
    """Note that a reply of the agent was read now that had waited for `waited` ms."""
    table = world.stack.outputs["ControlTableName"]
    notes = DynamoReadNotes(world.dynamodb, control_table=table, clock=world.clock)
    notes.note_read(agent, REPLIES, world.clock() - waited)


def holds_of(world: Stack) -> DynamoHolds:
    """The holds on the agents of that world's stack."""
    table = world.stack.outputs["ControlTableName"]
    return DynamoHolds(world.dynamodb, control_table=table, clock=world.clock)
