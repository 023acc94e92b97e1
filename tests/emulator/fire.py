"""A fire for the deployed stack: orders of every ending, and all that goes wrong around them.

Everything that is chosen is chosen by one seed: who orders what, which worker dies, which calls
fail. When it happens goes by how far the orders have come, not by the clock, so that a busy
machine has the same fire. How it all falls together is the machine's; the claims hold however.
"""

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.emulator.conftest import DeployedStack
from tests.emulator.helpers import is_open, set_faults, states_of, submit_many
from tests.emulator.proxy import KINDS, FaultProxy, Faults
from tests.moto.orders import ALL_EFFECTS, order

Event = dict[str, object]
Effects = dict[str, int]

TICK = 1.5  # seconds from one look to the next
UNDER_WAY = 100  # orders at a time; more would only wait for each other
DOWN_AT, DOWN_FOR = 60, 6  # orders that have ended; ticks with an open circuit
RESTART_AT = 200  # orders that have ended
CALM_AT = 450
GUSTS, GUST, BREEZE = 0.18, 0.25, 0.015  # how often; the share of calls that fails: 5% in all
OF_ALERTS = 0.50  # there are so few that a smaller share would often strike none
CALLS_PER_KILL = (200, 600)
OLD_ENOUGH = 10.0  # seconds
SERVICES = ("inventory", "payment", "shipping", "mail")
FUNCTIONS = ("submission", "scheduler", "scheduler", "supervisor", *SERVICES)  # to die
HOW = ("status", "hang", "loseAnswer", "truncate")  # a service's call can fail
MOST_READ = 100  # tasks; DynamoDB's most in one BatchGetItem
END_STATES = ("Completed", "Undone", "Archived", "Cancelled")


@dataclass(frozen=True)
class Ending:
    """Orders of a kind: how each must end, and what then happened in the world, each once."""

    name: str
    orders: int
    state: str
    status: str
    effects: Effects
    changes: Callable[[Event], Event] = dict


def declined(event: Event) -> Event:
    return {**event, "paymentToken": "tok_declined"}


def undeliverable(event: Event) -> Event:
    address = event["shippingAddress"]
    assert isinstance(address, dict)
    return {**event, "shippingAddress": {**address, "country": "XX"}}


def sold_out(event: Event) -> Event:
    lines = event["lines"]
    assert isinstance(lines, list)
    return {**event, "lines": [{**line, "sku": "OUT-101"} for line in lines]}


RELEASED = {"inventory perform": 1, "inventory undo": 1}
REFUNDED = {**RELEASED, "payment perform": 1, "payment undo": 1}
UNCONFIRMED = {name: count for name, count in ALL_EFFECTS.items() if name != "mail perform"}

ENDINGS = (
    Ending("plain", 400, "Completed", "completed", ALL_EFFECTS),
    Ending("declined", 40, "Undone", "undone", RELEASED, declined),
    Ending("undeliverable", 25, "Undone", "undone", REFUNDED, undeliverable),
    Ending("sold-out", 15, "Undone", "undone", {}, sold_out),
    # Its confirmation is refused for good; there the workflow says Archive, and alerts.
    Ending("unconfirmed", 20, "Archived", "failed", UNCONFIRMED),
)
STATUSES_FOR_EVERY = 5  # every fifth order's application wants its statuses


@dataclass
class Fire:
    """The orders and the fire around them. `say` prints a line of progress."""

    stack: DeployedStack
    proxy: FaultProxy
    reply_to: str
    seed: int
    say: Callable[[str], None]
    kills: Counter[str] = field(default_factory=Counter)
    restarts: list[float] = field(default_factory=list)  # seconds that each took
    struck: Counter[str] = field(default_factory=Counter)  # calls of the services, by how
    began: float = field(default_factory=time.monotonic)
    lasted: float = 0.0  # seconds
    states: dict[str, str] = field(default_factory=dict)  # of the tasks, when last looked at
    _sent: list[str] = field(default_factory=list)
    _reported_at: float = 0.0
    _gust: bool | None = None
    _down_for: int = 0  # ticks with an open circuit, and the first one
    _next_kill: int = 0  # after so many calls
    _seen: dict[int, float] = field(default_factory=dict)  # workers' process ids, and since when

    def __post_init__(self) -> None:
        self._dice = random.Random(self.seed)  # noqa: S311 - it chooses what goes wrong
        kinds = [ending for ending in ENDINGS for _ in range(ending.orders)]
        self._dice.shuffle(kinds)
        self.orders = {f"fire-{number:03d}-{kind.name}": kind for number, kind in enumerate(kinds)}
        wanting = list(self.orders)[::STATUSES_FOR_EVERY]
        self.ends_by_order = {order_id: self.orders[order_id].status for order_id in wanting}

    def rage(self) -> None:
        """Send all orders while everything fails, until nearly all of them have ended.

        Afterwards nothing fails any more but what orders are refused for.
        """
        events = self._events()
        self._let_services_fail(down=False)
        while (ended := self.ended()) < CALM_AT:
            began = time.monotonic()
            if events and len(self._sent) - ended < UNDER_WAY:
                batch, events = events[:20], events[20:]
                submit_many(self.stack, batch)
                self._sent += [str(event["orderId"]) for event in batch]
            self._let_calls_fail(gust=self._dice.random() < GUSTS)
            self._let_payment_fail(ended)
            self._kill_sometimes()
            if ended >= RESTART_AT and not self.restarts:
                self._restart()
            self.report()
            time.sleep(max(0.0, TICK - (time.monotonic() - began)))
        self.proxy.set_faults()
        self._fail_services()
        self.lasted = time.monotonic() - self.began
        self.say(f"{self.lasted:4.0f} s: the fire is out")

    def _events(self) -> list[Event]:
        found = []
        for order_id, kind in self.orders.items():
            event = order(
                order_id, **({"replyTo": self.reply_to} if order_id in self.ends_by_order else {})
            )
            found.append(kind.changes(event))
        return found

    # ---- AWS ----------------------------------------------------------------------------

    def _let_calls_fail(self, *, gust: bool) -> None:
        """Faults come in gusts: spread evenly, the SDK's own tries hide nearly all of them."""
        if gust == self._gust:
            return
        self._gust = gust
        # botocore checks the sum of DynamoDB's answers, and tries again; but the last try's answer
        # it takes as it is, and half of one reads as an empty one. TLS rules that out on AWS, so
        # it must not happen three times in a row here.
        of_tables = tuple(kind for kind in KINDS if not gust or kind.name != "truncated")
        share = GUST if gust else BREEZE
        self.proxy.set_faults(
            Faults("dynamodb", share, of_tables), Faults("sqs", share), Faults("sns", OF_ALERTS)
        )

    def _kill_sometimes(self) -> None:
        """One worker after so many calls, of those that have been there for a while.

        Where one dies as it starts, the emulator ends all others of its function with it.
        """
        now, calls = time.monotonic(), self.proxy.calls().total()
        function = self._dice.choice(FUNCTIONS)
        workers = self.stack.worker_pids(function)
        for pid in workers:
            self._seen.setdefault(pid, now)
        old = sorted(pid for pid in workers if self._may_die(pid, now))
        if old and calls >= self._next_kill:
            self._next_kill = calls + self._dice.randint(*CALLS_PER_KILL)
            os.kill(self._dice.choice(old), signal.SIGKILL)
            self.kills[function] += 1

    def _may_die(self, pid: int, now: float) -> bool:
        """Whether it is old enough, and this very emulator's."""
        try:
            return now - self._seen[pid] > OLD_ENOUGH and os.getpgid(pid) == self.stack.aws.pid
        except ProcessLookupError:
            return False

    def _restart(self) -> None:
        began = time.monotonic()
        self.stack.aws.restart()
        self.restarts.append(time.monotonic() - began)
        self.say(f"{began - self.began:4.0f} s: the emulator was restarted")

    # ---- the services -------------------------------------------------------------------

    def _let_payment_fail(self, ended: int) -> None:
        """For everybody, from some time on until its circuit has been open for a while."""
        if ended < DOWN_AT or self._down_for > DOWN_FOR:
            return
        if self._down_for == 0:
            self._let_services_fail(down=True)
        self._down_for += self._down_for == 0 or is_open(self.stack, "payment")
        if self._down_for > DOWN_FOR:
            self._let_services_fail(down=False)

    def _let_services_fail(self, *, down: bool) -> None:
        """No answer, a lost one or half of one, anywhere; some calls hang until they are late."""
        outage: list[Event] = [{"service": "payment", "status": 503}] if down else []
        hang: Event = {"hang": True, "times": 1}
        late = [
            {**hang, "service": service, "operation": "perform", "after": 20}
            for service in SERVICES
        ]
        self._fail_services(
            *outage,
            *late,
            {**hang, "service": "inventory", "operation": "undo"},
            {"status": 503, "errorRate": 0.05, "seed": self.seed},
            {"loseAnswer": True, "errorRate": 0.05, "seed": self.seed + 1},
            {"truncate": True, "errorRate": 0.02, "seed": self.seed + 2},
        )

    def _fail_services(self, *rules: Event) -> None:
        """Let calls fail by these rules beside the refusals, and note what has failed so far."""
        before = json.loads(json.dumps(self.stack.services.application.faults()))
        for rule, count in zip(before["rules"], before["counts"], strict=True):
            how = next(name for name in HOW if name in rule)
            self.struck[str(rule["status"]) if how == "status" else how] += count["struck"]
        refused = [
            {"operation": "POST /messages", "status": 422, "orderId": order_id}
            for order_id, kind in self.orders.items()
            if kind.name == "unconfirmed"
        ]
        set_faults(self.stack, *refused, *rules)

    # ---- looking on ---------------------------------------------------------------------

    def ended(self) -> int:
        """How many orders have ended. Only those that had not are looked at again."""
        open_ones = [
            order_id for order_id in self._sent if self.states.get(order_id) not in END_STATES
        ]
        for first in range(0, len(open_ones), MOST_READ):
            self.states |= states_of(self.stack, open_ones[first : first + MOST_READ])
        return sum(state in END_STATES for state in self.states.values())

    def report(self) -> None:
        """Say how it goes, every ten seconds."""
        now = time.monotonic()
        if now - self._reported_at < 10:
            return
        self._reported_at = now
        states = Counter(self.states.values())
        counts = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
        self.say(
            f"{now - self.began:4.0f} s: {counts or 'no task yet'}; {self.proxy.fired().total()} "
            f"calls failed, {self.kills.total()} workers killed"
        )


def summed(counts: Mapping[tuple[str, str], int], place: int) -> dict[str, int]:
    """Counts by two names, summed by one of them."""
    found: Counter[str] = Counter()
    for names, count in counts.items():
        found[names[place]] += count
    return dict(sorted(found.items()))
