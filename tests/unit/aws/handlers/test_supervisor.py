"""The supervisor's function: a tick whose calls were refused has failed, for the alarm to see."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from roundsman.aws.dynamodb.bulk_list import ListedWork
from roundsman.aws.handlers import supervisor
from roundsman.aws.settings import SupervisorSettings
from roundsman.aws.tracing import OFF
from roundsman.errors import CallRefused
from roundsman.model.bulk_run import PlannedOrder, Run, Terms
from roundsman.model.events import CommandSource, Resubmit
from roundsman.model.instants import MINUTE
from roundsman.supervisor.bulk_runs import BulkPorts, BulkRuns
from roundsman.supervisor.wakes import WakePorts, WakeReport
from roundsman_testing.faults import (
    Fault,
    Faults,
    FaultyBoard,
    FaultyBulkRuns,
    FaultyGroups,
    FaultyHolds,
    FaultyLeases,
    FaultyOrderLimits,
    FaultyOutbox,
    FaultyPlans,
    FaultyStore,
)
from roundsman_testing.memory import (
    MemoryBulkRuns,
    MemoryHolds,
    MemoryOrderLimits,
    MemoryWakes,
)
from tests.support.machine_world import plan, step
from tests.support.shell_world import SHARDS, Shells

ROOT = Path(__file__).parents[4]
SETTINGS = SupervisorSettings(
    orders_table="orders",
    tasks_table="tasks",
    control_table="control",
    history_table="history",
    scheduler_queue_url="https://sqs/commands",
    rejected_queue_url="https://sqs/rejected",
    alert_topic_arn="arn:topic",
    reply_queue_prefix="reply-",
    due_shards=SHARDS,
    interval=MINUTE,
    undone_count=0,
    order_retention=None,
)


def tick(
    faults: Faults, monkeypatch: pytest.MonkeyPatch, runs: MemoryBulkRuns | None = None
) -> Shells:
    """One tick over a task that is overdue."""
    shells = Shells(plan(step("first")))
    shells.submit()
    shells.outbox.sent.clear()
    shells.wait(31)
    parts = SimpleNamespace(
        tracer=OFF,
        dynamodb=None,
        store=FaultyStore(shells.store, faults, shells.look),
        plans=FaultyPlans(shells.plans, faults),
        board=FaultyBoard(shells.board, faults),
        groups=FaultyGroups(shells.groups, faults),
        outbox=FaultyOutbox(shells.outbox, faults),
        leases=FaultyLeases(shells.leases, faults),
        limits=FaultyOrderLimits(MemoryOrderLimits(tables=shells.store.tables), faults),
    )
    bulk = BulkPorts(
        runs=FaultyBulkRuns(runs or MemoryBulkRuns(shells.clock), faults),
        tasks=parts.store,
        orders=parts.store,
        plans=parts.plans,
        holds=MemoryHolds(shells.clock),
        outbox=parts.outbox,
        clock=shells.clock,
    )
    ports = WakePorts(
        holds=FaultyHolds(MemoryHolds(shells.clock), faults),
        wakes=MemoryWakes(),
        tasks=parts.store,
        leases=parts.leases,
        outbox=parts.outbox,
        clock=shells.clock,
    )
    monkeypatch.setattr(supervisor, "_wake_ports", lambda *_: ports)
    monkeypatch.setattr(supervisor, "parts_of", lambda _: parts)
    monkeypatch.setattr(supervisor, "listed_work", lambda *_: ListedWork(open_runs=True))
    monkeypatch.setattr(
        supervisor,
        "_bulk_runs",
        lambda *_: BulkRuns(bulk, instance="u1", on_trouble=supervisor._log_bulk_trouble),
    )
    monkeypatch.setattr(supervisor, "now", shells.clock)
    supervisor.tick_handler(SETTINGS)(MINUTE)
    return shells


def test_a_tick_that_was_refused_nothing_ends_well(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tick(Faults(), monkeypatch).starts() == ["ord-1"]


@pytest.mark.parametrize("call", ["read_board", "plan", "load", "due", "send_start"])
def test_a_tick_whose_calls_were_refused_fails_after_it_has_logged_what_it_did(
    call: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CallRefused, match=f"{call}: AccessDenied"):
        tick(Faults().on(call, Fault.REFUSED), monkeypatch)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    messages = [line.get("message") for line in lines]
    assert messages.count("AWS refused a call") == 1
    assert "a record could not be handled" not in messages
    assert messages[-1] == "pass done"


def test_a_tick_that_may_not_read_the_holds_makes_its_pass_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CallRefused, match="read_holds: AccessDenied"):
        tick(Faults().on("read_holds", Fault.REFUSED), monkeypatch)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    messages = [line.get("message") for line in lines]
    assert {"pass done", "orders were not woken now"} <= set(messages)


def test_what_a_visit_woke_is_logged_and_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counted: list[tuple[str, int]] = []
    monkeypatch.setattr(supervisor, "count", lambda name, value: counted.append((name, value)))
    supervisor._report_wakes(WakeReport(woken=[("payment", 7), ("*", 2)], tried=["stock"]))
    assert counted == [("OrdersWoken", 7), ("OrdersWoken", 2)]
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["message"] for line in lines] == ["woken", "woken", "circuit tried"]


def test_a_tick_that_may_not_read_the_list_of_bulk_runs_makes_its_pass_and_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CallRefused, match="read_bulk_list: AccessDenied"):
        tick(Faults().on("read_bulk_list", Fault.REFUSED), monkeypatch)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    messages = [line.get("message") for line in lines]
    assert "pass done" in messages
    assert "a bulk run could not be carried on" in messages


def test_a_tick_with_an_open_run_visits_it_until_the_next_tick(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    began = 1_800_000_000_000
    runs = MemoryBulkRuns(lambda: began)
    event = Resubmit(CommandSource("b-1", "amy"))
    runs.begin(
        Run("b-1", event, "amy", "AROA:amy", "", "", began, 1, Terms()), [PlannedOrder("ord-9")]
    )
    slept: list[int] = []
    monkeypatch.setattr(supervisor, "sleep", slept.append)
    tick(Faults(), monkeypatch, runs)
    assert runs.open_runs() == [], "the order is gone, so the run ends at once"
    assert slept == []
    record = runs.load("b-1", "AROA:amy")
    assert record is not None
    assert [note.reason for note in runs.notes(record)] == [
        "its task has ended, and its retention too"
    ]
    assert '"reason":"finished"' in capsys.readouterr().out


@pytest.mark.exhaustive
def test_an_instance_without_a_bulk_run_does_not_import_what_carries_one_out() -> None:
    code = "import functions.supervisor.app, sys; print('roundsman.model.bulk_run' in sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT
    )
    assert ended.stdout == "False\n"
