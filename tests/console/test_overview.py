"""`roundsman stats` and `watch`: counts within bounds, ages by whoever knows them."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import boto3
import pytest
from typer.testing import CliRunner

from roundsman.engine.due import Lane, lane_key
from roundsman.errors import TryAgain
from roundsman.model.events import AgentView
from roundsman.model.queue_lag import ReadMark
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepError
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.result import document_of
from roundsman_console.faces.commands import watch
from roundsman_console.faces.commands.stats import stats_view
from roundsman_console.facts.orders import counts
from roundsman_console.facts.orders.counts import Count, count_tasks
from roundsman_console.facts.overview.queues import CLOUDWATCH, MARKS, Queue, lags_of, with_ages
from roundsman_console.facts.overview.stats import Stats, stats_reading
from roundsman_console.main import app
from tests.console.operators import Operator
from tests.console.schemas import assert_schema
from tests.console.shelves import Shelves, archived, open_task
from tests.console.step_samples import AT
from tests.moto.orders import order
from tests.support.steps import step_record


def shelves() -> Shelves:
    found = Shelves()
    found.put(open_task("open", AT + 5), archived("a"), archived("b", AT - 7))
    for place in range(3):
        done = open_task(f"done-{place}")
        lane = lane_key(Lane.DONE, done.shard)
        found.put(replace(done, state=TaskState.COMPLETED, lane=lane, due_at=AT + place))
    return found


def test_each_state_is_counted_with_the_oldest_of_what_waits() -> None:
    found = count_tasks(shelves().stack())
    assert {state: str(count) for state, count in found.states.items() if count.count} == {
        TaskState.PENDING: "1",
        TaskState.ARCHIVED: "2",
        TaskState.COMPLETED: "3",
    }
    assert found.oldest_archived == AT - 7
    assert found.oldest_due == shelves().tasks["open"].due_at


def test_completed_orders_that_have_left_out_items_are_counted_apart() -> None:
    tasks = shelves()
    assert count_tasks(tasks.stack()).left_out == Count(0)
    error = StepError("OutOfStock", "no")
    skipped = step_record(process_state=ProcessState.SKIPPED, error=error)
    partly = replace(tasks.tasks["done-1"], fan_outs={"pick": 1}, steps={"pick[0]": skipped})
    tasks.put(partly)
    found = count_tasks(tasks.stack())
    assert (found.left_out, found.states[TaskState.COMPLETED]) == (Count(1), Count(3))
    stats = Stats(AT, found, (), (), AT)
    [states, *_] = stats_view(stats, ())
    assert "Completed 3 (1 with items left out)  Undoing 0" in str(states)
    assert document_of(stats_reading(stats))["leftOut"] == {"count": 1, "more": False}


def test_what_is_archived_and_still_owes_something_is_counted_once() -> None:
    tasks = shelves()
    tasks.put(replace(archived("owes"), lane="open#0"))
    assert count_tasks(tasks.stack()).states[TaskState.ARCHIVED] == Count(3)


def test_beyond_the_bounds_it_is_more_than_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counts, "MOST", 1)
    monkeypatch.setattr(counts, "LOADED", 1)
    found = count_tasks(shelves().stack())
    assert str(found.lanes[Lane.ARCHIVED]) == "more than 1"
    assert str(found.lanes[Lane.OPEN]) == "1"
    assert found.states[TaskState.ARCHIVED] == Count(1, more=True)
    monkeypatch.setattr(counts, "MOST", 10)
    monkeypatch.setattr(counts, "LOADED", 2)
    tasks = shelves()
    found = count_tasks(tasks.stack())
    assert found.states[TaskState.COMPLETED] == Count(2, more=True)
    assert found.states[TaskState.PENDING] == Count(1)
    assert len(tasks.looked[0]) == 3


def test_the_age_of_a_queue_is_known_by_its_mark_before_by_cloudwatch() -> None:
    url = "http://localhost/queue"
    queues = [
        Queue("PaymentRequestQueue", url, waiting=3),
        Queue("PaymentUrgentRequestQueue", url, waiting=1),
        Queue("SchedulerQueue", url, waiting=1),
        Queue("RejectedQueue", url, waiting=1),
        Queue("SubmissionQueue", url),
        Queue("PaymentBackupReplyQueue", url, waiting=1),
        Queue("MailReplyQueue", url, waiting=1),
        Queue("InventoryReplyQueue", url),
    ]
    measured = {"PaymentRequestQueue": 1, "SchedulerQueue": 2_000, "SubmissionQueue": 9}
    agents = {
        "payment/normal": AgentView(lag=90_000),
        "payment/urgent": AgentView(lag=0),
    }
    lags = {"payment_backup/replies": 720_000, "inventory/replies": 720_000}

    def ages(lags: dict[str, int]) -> list[tuple[int | None, str | None]]:
        found = with_ages(queues, measured, agents, lags)
        return [(queue.oldest, queue.age_source) for queue in found]

    assert ages(lags) == [
        (90_000, MARKS),
        (None, None),
        (2_000, CLOUDWATCH),
        (None, None),
        (None, None),
        (720_000, MARKS),
        (None, None),
        (None, None),
    ]
    assert ages({"scheduler/commands": 61_000})[2] == (61_000, MARKS)


def test_the_age_of_a_queue_without_a_mark_is_the_newest_that_cloudwatch_has(
    operator: Operator,
) -> None:
    world = operator.world
    world.submit(order("ord-1"))
    queue = world.url("SubmissionQueue").rpartition("/")[2]
    for ago, seconds in ((3, 400.0), (2, 125.0)):
        boto3.client("cloudwatch").put_metric_data(
            Namespace="AWS/SQS",
            MetricData=[
                {
                    "MetricName": "ApproximateAgeOfOldestMessage",
                    "Dimensions": [{"Name": "QueueName", "Value": queue}],
                    "Timestamp": datetime.fromtimestamp(world.clock.now / 1000 - ago * 60, tz=UTC),
                    "Value": seconds,
                }
            ],
        )
    queues = operator.reads("stats")["queues"]
    assert isinstance(queues, list)
    [found] = [one for one in queues if one["queue"] == "SubmissionQueue"]
    assert (found["waiting"], found["oldest"], found["oldestToldBy"]) == (1, 125, CLOUDWATCH)


def test_the_scheduler_is_behind_by_marks_that_are_in_date_and_are_no_wishes() -> None:
    at = 1_800_000_000_000
    marks = {
        "scheduler/commands": ReadMark(at - 720_000, at),
        "payment/replies": ReadMark(at - 62_000, at - 60_000),
        "mail/replies": ReadMark(at - 720_000, at - 60_001),
        "inventory/replies": ReadMark(at - 1_000, at),
        "payment/wanted": ReadMark(at - 720_000, at),
    }
    assert lags_of(marks, at) == {"scheduler/commands": 720_000, "payment/replies": 2_000}


@pytest.mark.exhaustive
def test_stats_and_watch_show_states_queues_agents_and_the_newest_failures(
    operator: Operator,
) -> None:
    world = operator.world
    world.faults({"operation": "POST /messages", "status": 422})
    world.submit(order("ord-1"))
    output = operator.types("watch", "--times", "2", "--every", "7").stdout
    assert operator.patience.slept == [7]  # in which the functions did their work
    first, second = output.split("roundsman  2027-01-15T08:00:00Z, every 7 s")[1:]
    assert "Archived 0" in first
    assert "Archived 1" in second
    assert "ord-1" in second
    looked = operator.reads("watch", "--times", "1")
    assert_schema("watch", looked)
    newest = looked["newestFailures"]
    assert isinstance(newest, list)
    assert [task["orderId"] for task in newest] == ["ord-1"]

    boto3.client("sqs").send_message(
        QueueUrl=world.stack.outputs["RejectedQueueUrl"], MessageBody="{}"
    )
    stats = operator.reads("stats")
    assert_schema("stats", stats)
    states = stats["states"]
    assert isinstance(states, dict)
    assert {name for name, count in states.items() if count["count"]} == {"Archived"}
    assert (stats["recoveryLag"], stats["supervisorSeenAt"]) == (0, None)
    output = operator.types("stats").stdout
    assert "nothing is overdue; no supervisor pass yet" in output
    rejected = next(line for line in output.splitlines() if line.startswith("RejectedQueue"))
    assert rejected.split() == ["RejectedQueue", "1", "0", "0", "?"]
    assert "payment" in output


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """What each further look comes to: a sentence where AWS is short of it, else the numbers."""
    coming: list[str | None] = []
    tasks = shelves()

    def gather(stack: DeployedStack) -> Stats:
        trouble = coming.pop(0)
        if trouble is not None:
            raise TryAgain(trouble)
        return Stats(AT, count_tasks(stack), (), (), AT - 20_000)

    monkeypatch.setattr(watch, "read_stats", gather)
    monkeypatch.setattr(watch, "pause", lambda _: None)
    monkeypatch.setattr(watch, "announced_stack", lambda _: tasks.stack())
    return coming


def test_watch_goes_on_after_a_look_that_was_throttled(looks: list[str | None]) -> None:
    looks += ["throttled", None]
    result = CliRunner().invoke(app, ["watch", "--times", "2", "--json"])
    assert (result.exit_code, result.stderr) == (0, "throttled.\n")
    assert json.loads(result.stdout)["states"]["Archived"]["count"] == 2
    looks += [None, "throttled"]
    result = CliRunner().invoke(app, ["watch", "--times", "2"])
    assert (result.exit_code, result.stderr) == (1, "throttled.\n")


def test_on_a_terminal_one_picture_is_kept_up_to_date(
    looks: list[str | None], capsys: pytest.CaptureFixture[str]
) -> None:
    looks += [None, "throttled"]
    watch._live(shelves().stack(), 7, 2)
    picture = capsys.readouterr().out
    assert "Archived 2" in picture
    assert picture.rstrip().endswith("throttled")
    assert looks == []
