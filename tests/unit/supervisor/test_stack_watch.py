"""The supervisor's watch over the stack: what is wrong is alerted once, and has one all-clear."""

from dataclasses import dataclass, field, replace

import pytest

from roundsman.aws.dynamodb.stack_faults import DynamoStackFaults
from roundsman.errors import CallRefused, TryAgain
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.stack_faults import QueueLook
from roundsman.supervisor.stack_watch import (
    ENGINE_QUEUES,
    PassFacts,
    StackWatch,
    WatchConfig,
    WatchReport,
)
from roundsman.wire.alert import Alert
from roundsman_testing.dynamodb.tables import MemoryDynamoDB
from roundsman_testing.memory import TABLES, tables_in_memory

QUIET = PassFacts(lag=0, behind=0, worked=False)
BACKLOG_AFTER = 20 * MINUTE
CONFIG = WatchConfig(backlog_after=BACKLOG_AFTER, interval=MINUTE, urgent_queues=True)
OF_PAYMENT = ("PaymentReplyQueue", "PaymentRequestQueue", "PaymentUrgentRequestQueue")


@dataclass
class Queues:
    """StackQueues with the numbers that a test gives; a queue without one is empty."""

    found: dict[str, QueueLook] = field(default_factory=dict)
    agents: tuple[str, ...] = OF_PAYMENT
    looks: list[str] = field(default_factory=list)
    problems: dict[str, Exception] = field(default_factory=dict)

    def of_agents(self) -> tuple[str, ...]:
        self._fail("list")
        return self.agents

    def look(self, name: str) -> QueueLook:
        self.looks.append(name)
        self._fail(name)
        return self.found.get(name, QueueLook(name, 0, 0))

    def _fail(self, name: str) -> None:
        if name in self.problems:
            raise self.problems[name]

    def has(self, name: str, visible: int = 0, hidden: int = 0, dead: int = 0) -> None:
        self.found[name] = QueueLook(name, visible, hidden, dead)


@dataclass
class Outbox:
    """It keeps the alerts, and may refuse them."""

    published: list[Alert] = field(default_factory=list)
    problem: Exception | None = None

    def publish(self, alert: Alert) -> None:
        if self.problem is not None:
            raise self.problem
        self.published.append(alert)


class Watched:
    """A stack under watch, and its time."""

    def __init__(self, config: WatchConfig = CONFIG) -> None:
        self.now = 1_800_000_000_000
        self.queues, self.outbox = Queues(), Outbox()
        self.tables: MemoryDynamoDB = tables_in_memory()
        self.config = config
        self.watch = self.another()

    def another(self) -> StackWatch:
        """The watch of another instance of the supervisor."""
        return StackWatch(
            queues=self.queues,
            faults=DynamoStackFaults(self.tables.client, control_table=TABLES.control),
            publish=self.outbox.publish,
            clock=lambda: self.now,
            config=self.config,
        )

    def look(self, facts: PassFacts = QUIET) -> WatchReport:
        """The look of a pass, a minute after the last one."""
        self.now += MINUTE
        self.queues.looks.clear()
        report = self.watch.look(facts, lambda: True)
        assert report is not None
        return report

    def looks(self, minutes: int, facts: PassFacts = QUIET) -> None:
        for _ in range(minutes):
            self.look(facts)

    @property
    def alerts(self) -> list[tuple[str, str]]:
        """(what the alert is about, its news) of each alert."""
        return [
            (f"{each.attributes['fault']}/{each.attributes['about']}", each.attributes["news"])
            for each in self.outbox.published
        ]


@pytest.fixture
def stack() -> Watched:
    return Watched()


def test_a_stack_in_which_nothing_is_wrong_writes_nothing_and_alerts_nobody(
    stack: Watched,
) -> None:
    stack.looks(60)
    assert stack.alerts == []
    key = {"ControlId": {"S": "faults"}}
    assert "Item" not in stack.tables.client.get_item(TableName=TABLES.control, Key=key)


@pytest.mark.parametrize("queue", ["SubmissionQueue", "SchedulerQueue"])
def test_dead_letters_of_the_engine_are_alerted_at_the_next_pass(
    stack: Watched, queue: str
) -> None:
    stack.look()
    stack.queues.has(queue, dead=3)
    stack.look()
    assert stack.alerts == [(f"dead_letters/{queue}", "first")]
    assert stack.outbox.published[0].sms == f"3 messages of {queue} failed every delivery"
    assert f"roundsman dlq ls {queue}" in stack.outbox.published[0].text


def test_a_rejected_message_is_alerted_at_the_next_pass(stack: Watched) -> None:
    stack.look()
    stack.queues.has("RejectedQueue", visible=1)
    stack.look()
    assert stack.alerts == [("rejected/RejectedQueue", "first")]


@pytest.mark.parametrize("queue", OF_PAYMENT)
def test_dead_letters_of_an_agent_are_alerted_within_five_minutes(
    stack: Watched, queue: str
) -> None:
    stack.looks(2)
    stack.queues.has(queue, dead=1)
    stack.looks(5)
    assert stack.alerts == [(f"dead_letters/{queue}", "first")]


def test_the_queues_of_agents_are_looked_at_every_five_minutes_while_nothing_is_to_do(
    stack: Watched,
) -> None:
    counts = []
    for _ in range(11):
        stack.look()
        counts.append(len(stack.queues.looks))
    whole = len(ENGINE_QUEUES) + len(OF_PAYMENT)
    assert counts == [whole, 3, 3, 3, 3, whole, 3, 3, 3, 3, whole]


@pytest.mark.parametrize("where", ["SubmissionQueue", "SchedulerQueue", "a pass", "an agent"])
def test_the_queues_of_agents_are_looked_at_by_each_pass_while_work_is_open(
    stack: Watched, where: str
) -> None:
    if where == "an agent":
        stack.queues.has("PaymentRequestQueue", hidden=1)
    elif where != "a pass":
        stack.queues.has(where, hidden=1)
    stack.look()
    stack.look(replace(QUIET, worked=where == "a pass"))
    assert len(stack.queues.looks) == len(ENGINE_QUEUES) + len(OF_PAYMENT)


def test_a_fault_is_alerted_once_and_its_end_ten_minutes_after_it_was_seen_last(
    stack: Watched,
) -> None:
    stack.queues.has("SchedulerQueue", dead=1)
    stack.looks(30)
    stack.queues.has("SchedulerQueue")
    stack.looks(10)
    assert stack.alerts == [("dead_letters/SchedulerQueue", "first")]
    stack.look()
    assert stack.alerts[1:] == [("dead_letters/SchedulerQueue", "clear")]
    assert stack.outbox.published[1].attributes["severity"] == "info"
    stack.looks(30)
    assert len(stack.alerts) == 2


def test_a_fault_that_is_seen_again_before_its_all_clear_is_the_same_fault(
    stack: Watched,
) -> None:
    for dead in (1, 0, 1, 0, 1):
        stack.queues.has("SchedulerQueue", dead=dead)
        stack.looks(5)
    assert stack.alerts == [("dead_letters/SchedulerQueue", "first")]


def test_a_fault_is_alerted_once_by_all_instances(stack: Watched) -> None:
    stack.queues.has("SchedulerQueue", dead=1)
    stack.look()
    stack.watch = stack.another()
    stack.looks(3)
    assert len(stack.alerts) == 1


@pytest.mark.parametrize(
    "queue", ["SubmissionQueue", "SchedulerQueue", "PaymentRequestQueue", "PaymentReplyQueue"]
)
def test_messages_that_wait_at_each_look_are_alerted_after_the_time_of_the_alarm(
    stack: Watched, queue: str
) -> None:
    stack.queues.has(queue, visible=4)
    stack.looks(20)
    assert stack.alerts == []
    stack.look()
    assert stack.alerts == [(f"backlog/{queue}", "first")]


def test_a_queue_that_was_seen_empty_in_between_has_no_backlog(stack: Watched) -> None:
    for _ in range(3):
        stack.queues.has("SchedulerQueue", visible=4)
        stack.looks(15)
        stack.queues.has("SchedulerQueue")
        stack.look()
    assert stack.alerts == []


def test_a_submission_that_fails_at_each_message_is_a_backlog_although_all_are_hidden(
    stack: Watched,
) -> None:
    stack.queues.has("SubmissionQueue", hidden=1)
    stack.looks(21)
    assert stack.alerts == [("backlog/SubmissionQueue", "first")]


def test_a_call_of_an_agent_that_takes_long_is_no_backlog(stack: Watched) -> None:
    stack.queues.has("PaymentRequestQueue", hidden=1)
    stack.looks(60)
    assert stack.alerts == []


def test_an_urgent_queue_that_nobody_reads_is_not_counted_and_keeps_its_fault(
    stack: Watched,
) -> None:
    """Nothing is sent to it; what was wrong with it is wrong until somebody has looked."""
    stack.queues.has("PaymentUrgentRequestQueue", visible=1, dead=1)
    stack.looks(2)
    stack.config = replace(CONFIG, urgent_queues=False)
    stack.watch = stack.another()
    for _ in range(30):
        stack.look()
        assert "PaymentUrgentRequestQueue" not in stack.queues.looks
    assert stack.alerts == [("dead_letters/PaymentUrgentRequestQueue", "first")]


def test_orders_that_wait_for_the_scheduler_are_alerted_at_once(stack: Watched) -> None:
    stack.look(replace(QUIET, behind=5 * MINUTE))
    assert stack.alerts == []
    stack.look(replace(QUIET, behind=5 * MINUTE + 1))
    assert stack.alerts == [("behind/scheduler", "first")]
    stack.looks(11)
    assert stack.alerts[1:] == [("behind/scheduler", "clear")]


def test_a_supervisor_that_is_late_for_three_passes_is_alerted(stack: Watched) -> None:
    late = replace(QUIET, lag=10 * MINUTE + 1)
    stack.look(late)
    stack.look(late)
    assert stack.alerts == []
    stack.look(late)
    assert stack.alerts == [("late/supervisor", "first")]


def test_a_longer_interval_has_a_longer_patience() -> None:
    config = replace(CONFIG, interval=10 * MINUTE)
    assert (config.late_after, config.behind_after) == (50 * MINUTE, 30 * MINUTE)


@pytest.mark.parametrize("problem", [TryAgain("busy"), CallRefused("no", "AccessDenied")])
def test_an_alert_that_could_not_be_published_is_published_by_a_later_pass(
    stack: Watched, problem: Exception
) -> None:
    stack.queues.has("SchedulerQueue", dead=1)
    stack.outbox.problem = problem
    report = stack.look()
    assert report.problems == [str(problem)]
    assert (report.refused is None) == isinstance(problem, TryAgain)
    stack.outbox.problem = None
    stack.look()
    assert stack.alerts == [("dead_letters/SchedulerQueue", "first")]


def test_an_all_clear_that_could_not_be_published_is_published_by_a_later_pass(
    stack: Watched,
) -> None:
    stack.queues.has("SchedulerQueue", dead=1)
    stack.look()
    stack.queues.has("SchedulerQueue")
    stack.looks(10)
    stack.outbox.problem = TryAgain("busy")
    stack.look()
    stack.outbox.problem = None
    stack.look()
    assert [news for _, news in stack.alerts] == ["first", "clear"]


def test_a_queue_that_could_not_be_counted_keeps_its_fault_and_hides_no_other(
    stack: Watched,
) -> None:
    stack.queues.has("SubmissionQueue", dead=1)
    stack.look()
    stack.queues.problems["SubmissionQueue"] = TryAgain("busy")
    stack.queues.has("SchedulerQueue", dead=1)
    stack.looks(30)
    assert stack.alerts == [
        ("dead_letters/SubmissionQueue", "first"),
        ("dead_letters/SchedulerQueue", "first"),
    ]


def test_a_right_that_is_missing_is_reported_so_that_the_invocation_fails(stack: Watched) -> None:
    stack.queues.problems["list"] = CallRefused("listing: AccessDenied", "AccessDenied")
    assert stack.look().refused == "listing: AccessDenied"


def test_the_fault_of_a_queue_that_does_not_exist_any_more_ends(stack: Watched) -> None:
    stack.queues.has("PaymentRequestQueue", dead=1)
    stack.look()
    stack.queues.agents = OF_PAYMENT[:1]
    stack.looks(20)
    assert stack.alerts[1:] == [("dead_letters/PaymentRequestQueue", "clear")]


def test_a_look_ends_with_the_time_of_the_invocation(stack: Watched) -> None:
    times = iter([True, True, False])
    report = stack.watch.look(QUIET, lambda: next(times, False))
    assert report is not None
    assert stack.queues.looks == list(ENGINE_QUEUES[:2])
    assert report.problems


def test_several_passes_a_minute_make_one_look(stack: Watched) -> None:
    stack.look()
    stack.now += 20 * SECOND
    assert stack.watch.look(QUIET, lambda: True) is None


def test_a_hundred_faults_are_stored_and_no_more(stack: Watched) -> None:
    stack.queues.agents = tuple(f"A{number:03d}RequestQueue" for number in range(150))
    for name in stack.queues.agents:
        stack.queues.has(name, dead=1)
    stack.look()
    assert len(stack.alerts) == 100
