"""The supervisor's function: a tick whose calls were refused has failed, for the alarm to see."""

import json
from types import SimpleNamespace

import pytest

from roundsman.aws.handlers import supervisor
from roundsman.aws.settings import SupervisorSettings
from roundsman.errors import CallRefused
from roundsman.model.instants import MINUTE
from roundsman.testing.faults import (
    Fault,
    Faults,
    FaultyBoard,
    FaultyGroups,
    FaultyLeases,
    FaultyOutbox,
    FaultyPlans,
    FaultyStore,
)
from tests.support.machine_world import plan, step
from tests.support.shell_world import SHARDS, Shells

SETTINGS = SupervisorSettings(
    orders_table="orders",
    tasks_table="tasks",
    control_table="control",
    history_table="history",
    scheduler_queue_url="https://sqs/commands",
    alert_topic_arn="arn:topic",
    reply_queue_prefix="reply-",
    due_shards=SHARDS,
    interval=MINUTE,
    undone_count=0,
)


def tick(faults: Faults, monkeypatch: pytest.MonkeyPatch) -> Shells:
    """One tick over a task that is overdue."""
    shells = Shells(plan(step("first")))
    shells.submit()
    shells.outbox.sent.clear()
    shells.wait(31)
    parts = SimpleNamespace(
        store=FaultyStore(shells.store, faults, shells.look),
        plans=FaultyPlans(shells.plans, faults),
        board=FaultyBoard(shells.board, faults),
        groups=FaultyGroups(shells.groups, faults),
        outbox=FaultyOutbox(shells.outbox, faults),
        leases=FaultyLeases(shells.leases, faults),
    )
    monkeypatch.setattr(supervisor, "supervisor_parts", lambda _: parts)
    monkeypatch.setattr(supervisor, "now", shells.clock)
    supervisor.tick_handler(SETTINGS)(MINUTE)
    return shells


def test_a_tick_that_was_refused_nothing_ends_well(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tick(Faults(), monkeypatch).starts() == ["ord-1"]


@pytest.mark.parametrize("call", ["read_board", "plan", "load", "due", "send_start"])
def test_a_tick_whose_calls_were_refused_fails_after_it_has_told_what_it_did(
    call: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(CallRefused, match=f"{call}: AccessDenied"):
        tick(Faults().on(call, Fault.REFUSED), monkeypatch)
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    said = [line.get("message") for line in lines]
    assert said.count("AWS refused a call") == 1
    assert "a record could not be handled" not in said
    assert said[-1] == "pass done"
