"""Instances of one agent behind one circuit, and their circuit's clock moved by hand.

Powertools asks the machine what time it is. So tests do not wait for a recovery time: they move
the instant back at which the circuit opened.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import pytest
from aws_lambda_powertools.utilities.circuit_breaker import base as powertools

from roundsman.aws.guard.guard import AgentGuard, guard_of
from roundsman.aws.settings import AgentSettings
from roundsman.errors import TransientError
from roundsman.model.holds import Hold
from roundsman.model.instants import MINUTE, SECOND
from roundsman.wire.alert import Alert
from roundsman_testing.stack.environment import forget_circuits
from tests.contract.worlds import World

T = TypeVar("T")

RECOVERY = 30 * SECOND
FAILURES = 5


def real_now() -> int:
    return time.time_ns() // 1_000_000


@pytest.fixture
def fresh_circuits() -> Iterator[None]:
    """Powertools counts by circuit, for the whole process; a test begins with nothing counted."""
    forget_circuits()
    yield
    forget_circuits()


def count_as_failed(agent: str, calls: int) -> None:
    """As if this process had seen so many calls in a row fail."""
    powertools._LOCAL_FAILURES[f"breaker#{agent}"] = calls


class Unforeseen(Exception):
    """Of nobody's making but the author's."""


@dataclass
class Circuit:
    """The agent `payment` of one stack. The template's defaults are its defaults."""

    world: World
    calls_per_second: float | None = None
    alerts: list[Alert] = field(default_factory=list)
    publish: Callable[[Alert], None] | None = None
    slept: list[int] = field(default_factory=list)
    """The waits for a turn, if there is no `sleep`."""
    sleep: Callable[[int], None] | None = None
    clock: Callable[[], int] = real_now

    def instance(self) -> AgentGuard:
        """Another instance. It counts on its own where `elsewhere` is used to call it."""
        settings = AgentSettings(
            control_table=self.world.tables.control,
            reply_queue_url="-",
            rejected_queue_url="-",
            alert_topic_arn="-",
            breaker_failures=FAILURES,
            breaker_recovery=RECOVERY,
            calls_per_second=self.calls_per_second,
        )
        return guard_of(
            "payment",
            self.world.client,
            settings,
            publish=self.publish or self.alerts.append,
            clock=self.clock,
            sleep=self.sleep or self.slept.append,
        )

    def open(self, guard: AgentGuard) -> None:
        """Let it open by failures, as services make it."""
        for _ in range(FAILURES):
            with pytest.raises(Exception, match=r"no answer|circuit is open"):
                call(guard, fails(TransientError("no answer")))

    def let_recover(self) -> None:
        """As if the recovery time were over since the circuit opened, and the hold with it."""
        table = self.world.tables.control
        self.world.client.update_item(
            TableName=table,
            Key={"ControlId": {"S": "breaker#payment"}},
            UpdateExpression="SET OpenedAt = OpenedAt - :past",
            ExpressionAttributeValues={":past": {"N": str(RECOVERY // SECOND)}},
        )
        self.world.client.update_item(
            TableName=table,
            Key={"ControlId": {"S": "holds"}},
            UpdateExpression="SET #hold.#until = #hold.#until - :past",
            ExpressionAttributeNames={"#hold": "payment/breaker", "#until": "Until"},
            ExpressionAttributeValues={":past": {"N": str(RECOVERY)}},
        )

    def state(self) -> str | None:
        """As stored."""
        row = self.world.client.get_item(
            TableName=self.world.tables.control,
            Key={"ControlId": {"S": "breaker#payment"}},
            ConsistentRead=True,
        )
        return row["Item"]["State"]["S"] if "Item" in row else None

    def holds(self) -> list[Hold]:
        return self.world.holds(self.clock).holds()


def call(guard: AgentGuard, function: Callable[[], T]) -> T:
    return guard.call(function, ends_at=real_now() + MINUTE, order="ord-1")


def fails(error: Exception) -> Callable[[], str]:
    """A service that fails so."""

    def failing() -> str:
        raise error

    return failing


def elsewhere(guard: AgentGuard, function: Callable[[], T]) -> T:
    """Call it as in another process: with counters, and a prober's name, of its own."""
    kept = (
        dict(powertools._LOCAL_FAILURES),
        dict(powertools._LOCAL_SUCCESSES),
        dict(powertools._LAST_OBSERVED_STATE),
        dict(powertools._PROBE_OWNER.__dict__),
    )
    forget_circuits()
    try:
        return call(guard, function)
    finally:
        forget_circuits()
        powertools._LOCAL_FAILURES.update(kept[0])
        powertools._LOCAL_SUCCESSES.update(kept[1])
        powertools._LAST_OBSERVED_STATE.update(kept[2])
        powertools._PROBE_OWNER.__dict__.update(kept[3])
