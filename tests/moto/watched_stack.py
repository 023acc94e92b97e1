"""A deployment whose functions and tables can be made to fail, and who notices it when.

Time passes by minutes. After each, the alerts are read, and each alarm of the stack is evaluated on
what CloudWatch would have of that minute: what the functions wrote, and what Lambda, SQS and
DynamoDB count. CloudWatch's own delay is left out.
"""

import io
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from functools import cache

from roundsman_dev.check.reading import chosen
from roundsman_dev.template import Document
from roundsman_testing.stack import AwsFault, Clock, InjectedFault, Killed, Services, Stack
from roundsman_testing.stack.calls import AwsCall
from roundsman_testing.stack.functions import Context, Event
from roundsman_testing.stack.resources import EventSource
from tests.moto.orders import order
from tests.moto.test_alarms import SHARE, share_of, sums_of
from tests.project import AGENTS, deployed_project, translate
from tests.support.alarms import MetricKey, emitted, metric_key
from tests.support.template_reading import alarms

STEP = 10_000
"""ms between two looks at the queues by Lambda."""
MINUTE = 60_000
MORE_PERIODS = 2
"""How many more periods than it evaluates CloudWatch looks at before data is missing: five for
three in the examples of its page on missing data."""
OF_SHARE = 10
"""Minutes of the one alarm with a longer period."""
HIDES_AFTER = 3
"""Deliveries after which SQS leaves a message out of the age of the oldest one."""

Metrics = dict[MetricKey, list[float]]


class Lasting(list[InjectedFault]):
    """Faults that hit every call that they meet, and not one alone."""

    def remove(self, _fault: InjectedFault, /) -> None:
        """Keep it."""


@dataclass
class RefusesCalls(InjectedFault):
    """A table, or an index of it, that refuses all reads or all writes for want of capacity."""

    table: str = ""
    index: str | None = None
    writes: bool = False
    asked_by_others: bool = False
    """Whether somebody calls it each minute who is no function."""
    hits: int = 0
    """The calls of this minute that were refused."""

    def meets(self, call: AwsCall) -> bool:
        """Whether the call reads or writes the table."""
        parameters = call.parameters
        found = call.service == "dynamodb" and self.table in json.dumps(parameters, default=str)
        wrote = call.operation in ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems")
        of_index = self.writes or self.index == parameters.get("IndexName")
        hit = found and wrote is self.writes and of_index
        self.hits += hit
        return hit


@dataclass
class WatchedStack:
    """A stack, what is wrong with it, and who noticed it."""

    stack: Stack
    template: Document
    fails: set[str] = field(default_factory=set)
    """Functions that fail at each invocation."""
    is_refused: set[str] = field(default_factory=set)
    """Functions that Lambda refuses to start for want of concurrency."""
    is_not_started: set[str] = field(default_factory=set)
    """Functions that nothing starts."""
    is_unread: set[str] = field(default_factory=set)
    """Queues that no mapping reads."""
    unknown_step: str = ""
    """A step that the agents are asked for by another name, which none knows."""
    claimed: int = 0
    """Instances that are claimed in the account."""
    tables: list[RefusesCalls] = field(default_factory=list)
    noticed: dict[str, int] = field(default_factory=dict)
    """In which minute each alarm, with `<Agent>` for the name of an agent, or kind of alert was
    first there, the first minute being 1."""
    _counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    _minutes: list[Metrics] = field(default_factory=list)
    _ends: list[Mapping[str, float]] = field(default_factory=list)
    orders: int = 0
    """The orders that were sent; the last one is `ord-N`."""

    def __post_init__(self) -> None:
        self.alerts = self.stack.alert_queue()
        self._alarms = alarms(self.template)
        self._invoke, self._work_off = self.stack.invoke, self.stack.work_off
        self.stack.invoke = self.invoke  # type: ignore[method-assign]  # this stack alone
        self.stack.work_off = self.work_off  # type: ignore[method-assign]

    def invoke(self, function: str, event: Event, context: Context | None = None) -> object:
        """As Lambda does. An exception is one of its errors."""
        if function in self.is_not_started:
            return None
        if function in self.is_refused:
            self._counts["Throttles", function] += 1
            return None
        self._counts["Invocations", function] += 1
        try:
            if function in self.fails:
                raise Killed(function)
            return self._invoke(function, event, context)
        except (Exception, Killed):  # noqa: BLE001  # Lambda counts every one
            self._counts["Errors", function] += 1
            raise Killed(function) from None

    def work_off(self, source: EventSource) -> bool:
        """As a mapping does: of a function that is not started it leaves the messages visible."""
        if source.queue_url in {self.stack.url(queue) for queue in self.is_unread}:
            return False
        if source.function in self.is_refused and self._visible(source.queue_url):
            self._counts["Throttles", source.function] += 1
        if source.function in self.is_refused:
            return False
        if self.unknown_step:
            for message in self.stack._queue(source.queue_url)._messages:
                message.body = message.body.replace(f'"step":"{self.unknown_step}"', '"step":"x"')
        return self._work_off(source)

    def submit(self, orders: int = 1, **otherwise: object) -> None:
        """Send orders, with what is different in them."""
        for _ in range(orders):
            self.orders += 1
            self.stack.submit({**order(f"ord-{self.orders}"), **otherwise})

    def refuse(
        self,
        table: str,
        index: str | None = None,
        *,
        writes: bool,
        asked_by_others: bool = False,
    ) -> None:
        """Let a table refuse all reads or writes from now on. A write of an index is one of its
        table."""
        name = self.stack.stack.resources[table]
        refusing = RefusesCalls(
            AwsFault.THROTTLED,
            table=name,
            index=index,
            writes=writes,
            asked_by_others=asked_by_others,
        )
        self.tables.append(refusing)
        self.stack.aws.strikes = Lasting(self.tables)

    def pass_minutes(self, minutes: int) -> None:
        """Let time pass, and note who notices what."""
        for _ in range(minutes):
            self._pass_a_minute()

    def _pass_a_minute(self) -> None:
        self._counts.clear()
        for each in self.tables:
            each.hits = int(each.asked_by_others)
        with redirect_stdout(io.StringIO()) as written:
            for _ in range(MINUTE // STEP):
                self.stack.clock.now += STEP
                self.stack.run()
            self.stack.supervise()
            self.stack.run()
        self._minutes.append(self._metrics(written.getvalue()))
        self._ends.append(sums_of(self.stack, written.getvalue()))
        self._note()

    def _note(self) -> None:
        sent = [json.loads(json.loads(b)["Message"]) for b in self.stack.bodies(self.alerts)]
        kinds = [" ".join([one["alert"], one.get("fault", "")]).strip() for one in sent]
        for one in (*self._raised(), *kinds):
            self.noticed.setdefault(one, len(self._minutes))

    def begin(self) -> None:
        """Count the minutes from now on; what was noticed before is forgotten."""
        self.noticed.clear()
        self._minutes.clear()
        self._ends.clear()

    # ---- what CloudWatch has of a minute ----------------------------------------------------

    def _metrics(self, written: str) -> Metrics:
        found: Metrics = defaultdict(list)
        for key, values in emitted(json.loads(line) for line in written.splitlines()):
            found[key] += values
        for (name, function), count in self._counts.items():
            found[MetricKey("AWS/Lambda", name, self._named("FunctionName", function))] = [count]
        for each in ("Errors", "Throttles"):  # Lambda sends 0 of each with an invocation
            for (name, function), _ in list(self._counts.items()):
                if name == "Invocations":
                    found.setdefault(
                        MetricKey("AWS/Lambda", each, self._named("FunctionName", function)), [0]
                    )
        if self.claimed:
            found[MetricKey("AWS/Lambda", "ClaimedAccountConcurrency")] = [self.claimed]
        for one in self.tables:
            if one.hits:
                dimensions = {("TableName", one.table)}
                if one.index:
                    dimensions.add(("GlobalSecondaryIndexName", one.index))
                name = f"{'Write' if one.writes else 'Read'}ThrottleEvents"
                found[MetricKey("AWS/DynamoDB", name, frozenset(dimensions))].append(one.hits)
        for logical, url in self.stack.stack.resources.items():
            if logical.endswith("Queue"):
                dimensions_of = frozenset({("QueueName", url.rpartition("/")[2])})
                key = MetricKey("AWS/SQS", "ApproximateNumberOfMessagesVisible", dimensions_of)
                found[key] = [self._visible(url)]
                key = MetricKey("AWS/SQS", "ApproximateAgeOfOldestMessage", dimensions_of)
                found[key] = [self._age(url)]
        return found

    def _named(self, dimension: str, logical: str) -> frozenset[tuple[str, str]]:
        return frozenset({(dimension, self.stack.stack.resources[logical])})

    def _visible(self, url: str) -> int:
        return len(self.stack._queue(url).messages)

    def _age(self, url: str) -> float:
        """Seconds."""
        sent = [
            float(str(one.sent_timestamp))
            for one in self.stack._queue(url)._messages
            if one.approximate_receive_count < HIDES_AFTER
        ]
        return max(0.0, (self.stack.clock() - min(sent)) / 1000) if sent else 0.0

    # ---- alarms -----------------------------------------------------------------------------

    def _raised(self) -> Iterator[str]:
        for name, alarm in self._alarms.items():
            if self._share_is_raised(alarm) if name == SHARE else self._is_raised(alarm):
                yield _of_any_agent(name)

    def _share_is_raised(self, alarm: Document) -> bool:
        last = self._ends[-OF_SHARE:]
        values = {end: sum(one[end] for one in last) or None for end in last[0]}
        return share_of(values) > float(str(alarm["Threshold"]))

    def _is_raised(self, alarm: Document) -> bool:
        """As CloudWatch decides: so many of the last periods breach the threshold."""
        limit = float(str(chosen(self.template, alarm["Threshold"])))
        key = metric_key(self.stack.stack, alarm)
        periods = int(str(alarm["EvaluationPeriods"]))
        needed = int(str(alarm.get("DatapointsToAlarm", periods)))
        last = [minute.get(key) for minute in self._minutes[-periods:]]
        if alarm["TreatMissingData"] == "missing":
            looked_at = self._minutes[-(periods + MORE_PERIODS) :]
            if len(looked_at) == periods + MORE_PERIODS and not any(m.get(key) for m in looked_at):
                return "InsufficientDataActions" in alarm
            known = [values for values in (m.get(key) for m in looked_at) if values][-periods:]
            return len(known) >= needed and all(_breaches(alarm, limit, one) for one in known)
        return sum(_breaches(alarm, limit, values) for values in last) >= needed


def _breaches(alarm: Document, limit: float, values: list[float] | None) -> bool:
    if not values:
        return alarm["TreatMissingData"] == "breaching"
    value = sum(values) if alarm["Statistic"] == "Sum" else max(values)
    return value < limit if alarm["ComparisonOperator"] == "LessThanThreshold" else value > limit


def _of_any_agent(alarm: str) -> str:
    for agent in AGENTS:
        if alarm.startswith(agent):
            return alarm.replace(agent, "<Agent>", 1)
    return alarm


@cache
def template_of(profile: str) -> Document:
    """The template as a stack with this profile has it."""
    return translate({"Engine.Profile": profile})


@contextmanager
def watched_stack(services: Services, clock: Clock, profile: str) -> Iterator[WatchedStack]:
    """Deploy the project, and let a minute pass, so that its supervisor has just looked at it."""
    with deployed_project(services, clock, {"Engine.Profile": profile}) as stack:
        made = WatchedStack(stack, template_of(profile))
        made.pass_minutes(1)
        made.begin()
        yield made
