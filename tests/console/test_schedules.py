"""`roundsman schedules`: next runs, pause and resume, run now, and a backfill of the past."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

import boto3
import pytest

from roundsman.definition.recurrence import Recurrence
from roundsman.model.instants import MINUTE, second
from roundsman.model.states import TaskState
from roundsman_console.aws.resources import SCHEDULE, StackResource
from roundsman_console.facts.schedule import reading
from tests.console.operators import Operator
from tests.console.schemas import assert_schema
from tests.moto.orders import order

EXPRESSION, ZONE = "cron(0 9 * * ? *)", "Europe/Brussels"
NAMES = ["roundsman-Weekly-1", "roundsman-Supervisor"]


def event(**processing: str) -> str:
    run = {"run": "<aws.scheduler.scheduled-time>"}
    return json.dumps({**order("weekly"), "processing": {**run, **processing}})


@pytest.fixture
def made(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> Iterator[Operator]:
    """A stack with a recurring order whose runs are skipped while the last one is open."""
    with made_schedules(operator, event(overlap="skip"), monkeypatch):
        yield operator


@contextmanager
def made_schedules(operator: Operator, text: str, patched: pytest.MonkeyPatch) -> Iterator[None]:
    """The schedules that a stack would have: moto makes none of a template."""
    found = [StackResource(name, SCHEDULE, name) for name in NAMES]
    patched.setattr(reading, "stack_resources", lambda *_: iter(found))
    queue = operator.world.stack.outputs["SubmissionQueueUrl"].rpartition("/")[2]
    for name, target in zip(NAMES, (queue, "SupervisorFunction"), strict=True):
        boto3.client("scheduler").create_schedule(
            Name=name,
            ScheduleExpression=EXPRESSION,
            ScheduleExpressionTimezone=ZONE,
            FlexibleTimeWindow={"Mode": "OFF"},
            Target={
                "Arn": f"arn:aws:sqs:us-east-1:123456789012:{target}",
                "RoleArn": "arn:aws:iam::123456789012:role/schedules",
                "Input": text,
            },
        )
    yield
    for name in NAMES:
        boto3.client("scheduler").delete_schedule(Name=name)


def listed(operator: Operator) -> dict[str, Any]:
    found: Any = operator.reads("schedules", "ls")
    assert_schema("schedules-ls", found)
    [one] = found["schedules"]
    return dict(one)


def runs_after(at: int, most: int) -> list[int]:
    return [*islice(Recurrence(EXPRESSION, ZONE).runs(at), most)]


def comes(operator: Operator, at: int) -> str:
    """EventBridge sends the run of this instant; returns the id of its order."""
    text = event(overlap="skip").replace("<aws.scheduler.scheduled-time>", second(at))
    operator.world.submit(json.loads(text))
    operator.world.run()
    return f"weekly-{second(at).replace('-', '').replace(':', '')}"


def stored(operator: Operator, order_id: str) -> bool:
    table, key = operator.world.stack.outputs["OrdersTableName"], {"OrderID": {"S": order_id}}
    return "Item" in operator.world.dynamodb.get_item(TableName=table, Key=key)


def test_a_list_has_the_next_runs_by_the_clock_of_the_time_zone(made: Operator) -> None:
    one = listed(made)
    expected = runs_after(made.world.clock(), 3)
    assert (one["schedule"], one["overlap"], one["paused"]) == ("weekly", "skip", None)
    assert [str(run)[:19] + "Z" for run in one["nextRuns"]] == [second(at) for at in expected]
    lines = made.types("schedules", "ls").stdout
    assert "a run is skipped while the one before is open" in lines
    assert second(expected[0]) in lines


def test_the_runs_of_a_paused_schedule_are_skipped_and_listed_with_who_paused_it(
    made: Operator,
) -> None:
    done = made.types("schedules", "pause", "weekly", "--reason", "audit", "--as", "amy")
    assert "Done: the runs of weekly are skipped." in done.stdout
    paused = str(listed(made)["paused"])
    assert "weekly is paused by amy since" in paused
    assert paused.endswith(": audit")
    [at] = runs_after(made.world.clock(), 1)
    missed = comes(made, at)
    assert not stored(made, missed)
    [skipped] = listed(made)["skipped"]
    assert (skipped["order"], skipped["reason"]) == (missed, paused)
    assert f"Skipped: 1 runs; {missed}: {paused}" in " ".join(
        made.types("schedules", "ls").stdout.split()
    )
    assert_schema("schedules-resume", made.reads("schedules", "resume", "weekly"))
    assert made.types("schedules", "resume", "weekly").exit_code == 1
    assert listed(made)["paused"] is None
    assert stored(made, comes(made, at + 24 * 60 * MINUTE))


def test_every_schedule_of_a_workflow_is_paused_at_once(made: Operator) -> None:
    name = "order_fulfilment"
    done = made.reads("schedules", "pause", "--workflow", name, "--reason", "audit")
    assert_schema("schedules-pause", done)
    found: Any = made.reads("schedules", "ls")
    [sentence] = found["workflowsPaused"]
    assert f"every schedule of {name} is paused" in sentence
    assert not stored(made, comes(made, runs_after(made.world.clock(), 1)[0]))


@pytest.mark.parametrize("words", [(), ("weekly", "--workflow", "order_fulfilment")])
def test_exactly_one_target_is_paused(made: Operator, words: tuple[str, ...]) -> None:
    result = made.types("schedules", "pause", *words, "--reason", "audit")
    assert result.exit_code == 2
    assert "Give either SCHEDULE or --workflow NAME." in result.output


def test_an_unknown_schedule_is_named_with_those_that_there_are(made: Operator) -> None:
    result = made.types("schedules", "pause", "monthly", "--reason", "audit")
    assert result.exit_code != 0
    assert "has no schedule 'monthly'; it has weekly." in " ".join(result.output.split())


def test_run_now_sends_an_order_of_the_present_also_while_it_is_paused(made: Operator) -> None:
    made.types("schedules", "pause", "weekly", "--reason", "audit")
    sent: Any = made.reads("schedules", "run", "weekly", "--yes")
    assert_schema("schedules-run", sent)
    made.world.run()
    [order_id] = sent["orders"]
    assert made.world.task(order_id).state is TaskState.COMPLETED


def test_a_backfill_makes_the_orders_that_the_runs_would_have_had_and_nothing_twice(
    made: Operator,
) -> None:
    now = made.world.clock()
    begin = now - 2 * 24 * 60 * MINUTE
    missed = [at for at in runs_after(begin - 1, 4) if at <= now]
    span = ("schedules", "backfill", "weekly", "--from", second(begin))
    shown: Any = made.reads(*span)
    assert len(missed) == 3
    assert_schema("schedules-backfill", shown)
    assert not shown["sent"]
    orders = [str(one) for one in shown["orders"]]
    assert orders == [f"weekly-{second(at).replace('-', '').replace(':', '')}" for at in missed]
    assert not any(stored(made, one) for one in orders)
    done = made.reads(*span, "--go", "--yes")
    assert done["orders"] == orders
    made.world.run()
    [waits] = [one for one in orders[1:] if made.world.task(one).state is TaskState.SCHEDULED][-1:]
    assert "waits for that of an earlier run to end" in made.types("why", waits).stdout
    assert "waits for the order of" in made.types("ls").stdout
    for _ in range(6):
        made.world.run()
        made.world.supervise()
        made.world.pass_time(61)
    assert [made.world.task(one).state for one in orders] == [TaskState.COMPLETED] * 3
    assert made.reads(*span)["orders"] == []
    assert stored(made, comes(made, missed[0])), "as EventBridge would deliver it again"


def test_a_span_that_is_not_past_or_has_too_many_runs_is_refused(made: Operator) -> None:
    now = made.world.clock()
    words = ("schedules", "backfill", "weekly", "--from")
    ahead = made.types(*words, second(now - MINUTE), "--until", second(now + 10 * MINUTE))
    assert "A backfill is of the past: --until is in the future." in ahead.output
    many = made.types(*words, second(now - 101 * 24 * 60 * MINUTE))
    assert "The span has more than 100 runs" in " ".join(many.output.split())
