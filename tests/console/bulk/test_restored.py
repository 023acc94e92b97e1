"""A bulk run of restored tables is paused until a person decides: what people asked is lost."""

from collections.abc import Mapping
from typing import cast

import pytest

from roundsman.aws.dynamodb.bulk_runs import DynamoBulkRuns
from roundsman.model.bulk_run import RequestAction, RunRequest
from roundsman.model.instants import iso
from roundsman_console.acts.bulk.restored import RestoredRun, pause_restored
from roundsman_console.acts.bulk.start import bulk_runs_of
from roundsman_console.aws.stack import DeployedStack
from tests.console.bulk_stories import archived
from tests.console.operators import Operator, document
from tests.console.schemas import assert_schema
from tests.console.test_reconciling import purge, reconciles, restore, stop_supervisor, tables

SLOW = ("--go", "--canary", "0", "--rate", "0.02", "--no-wait", "--json")


def begun(operator: Operator) -> str:
    """A run over five orders that has sent some of its commands. Its id."""
    group = archived(operator, 5)
    operator.world.clock.now += 1000
    run_id = str(document(operator.asks("resubmit", "--group", group, *SLOW))["runId"])
    operator.world.pass_time(70)
    return run_id


def asks(operator: Operator, run_id: str, what: str) -> None:
    asked = operator.types("bulk", what, run_id, "--reason", "wrong people", "--as", "eve")
    assert asked.exit_code == 0, asked.output


def run_of(operator: Operator, run_id: str) -> Mapping[str, object]:
    return operator.reads("bulk", "show", run_id)


def paused(printed: Mapping[str, object]) -> list[tuple[object, object]]:
    """The runs of the result, and whether a pause of each was requested."""
    runs = cast("list[Mapping[str, object]]", printed["bulkRuns"])
    return [(one["runId"], one["paused"]) for one in runs]


@pytest.mark.exhaustive
def test_a_run_that_a_person_stopped_since_is_paused_before_it_sends_anything(
    operator: Operator,
) -> None:
    world = operator.world
    run_id = begun(operator)
    at, kept = world.clock.now, tables(world)
    world.clock.now += 1000
    asks(operator, run_id, "stop")
    world.pass_time(60)
    assert run_of(operator, run_id)["state"] == "stopped"
    restore(world, kept)
    purge(world)
    stop_supervisor(world)
    sent = run_of(operator, run_id)["sent"]

    shown = operator.types("reconcile", "--restored-to", iso(at))
    assert f"bulk run {run_id} (resubmit, by " in shown.stdout
    assert "it is paused, because what people asked of it since is lost" in shown.stdout
    assert "To send: roundsman reconcile" in shown.stdout
    assert paused(reconciles(operator, at)) == [(run_id, False)]
    typed = operator.types("reconcile", "--restored-to", iso(at), "--go", "--yes")
    assert typed.exit_code == 0, typed.output
    assert f"roundsman bulk resume {run_id} --reason" in typed.stdout

    world.pass_time(300)
    run = run_of(operator, run_id)
    assert (run["state"], run["sent"]) == ("paused", sent)
    asks(operator, run_id, "resume")
    world.pass_time(400)
    assert run_of(operator, run_id)["state"] == "finished"


@pytest.mark.exhaustive
def test_a_decision_after_the_instant_is_left_alone(operator: Operator) -> None:
    world = operator.world
    run_id = begun(operator)
    at = world.clock.now
    world.clock.now += 301_000
    stop_supervisor(world)
    assert paused(reconciles(operator, at, "--go")) == [(run_id, True)]
    assert paused(reconciles(operator, at, "--go")) == [], "a pause is requested once"
    world.pass_time(60)
    asks(operator, run_id, "resume")
    assert paused(reconciles(operator, at, "--go")) == []
    started = document(operator.asks("resubmit", "ord-4", "ord-5", *SLOW))
    assert paused(reconciles(operator, at)) == [], started["runId"]


@pytest.mark.exhaustive
def test_a_run_that_a_clock_ahead_started_is_paused(operator: Operator) -> None:
    run_id = begun(operator)
    stop_supervisor(operator.world)
    now = operator.world.clock.now
    assert paused(reconciles(operator, now - 300_000)) == [(run_id, False)]
    assert paused(reconciles(operator, now - 900_000)) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("waits", "expected"), [("stop", "stopped"), ("pause", "paused"), ("resume", "paused")]
)
def test_a_request_that_waited_at_the_instant_is_considered(
    operator: Operator, waits: str, expected: str
) -> None:
    world = operator.world
    run_id = begun(operator)
    if waits == "resume":
        asks(operator, run_id, "pause")
        world.pass_time(60)
    asks(operator, run_id, waits)
    stop_supervisor(world)
    at = world.clock.now
    world.clock.now += 60_000
    report = reconciles(operator, at, "--go")
    assert paused(report) == ([(run_id, True)] if waits == "resume" else [])
    world.pass_time(120)
    assert run_of(operator, run_id)["state"] == expected


@pytest.mark.exhaustive
def test_somebody_who_asks_at_the_same_moment_ends_the_sending(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = operator.world
    run_id = begun(operator)
    stop_supervisor(world)
    at = world.clock.now
    world.clock.now += 60_000
    used = "roundsman_console.acts.bulk.restored.bulk_runs_of"

    def is_overtaken(stack: DeployedStack) -> DynamoBulkRuns:
        runs = bulk_runs_of(stack)
        stop = RunRequest(RequestAction.STOP, "eve", "AROAOTHER:eve", "", world.clock.now)
        assert runs.ask(run_id, stop, seen=0)
        return runs

    def pauses(stack: DeployedStack, found: RestoredRun, *, by: str, reason: str) -> None:
        monkeypatch.setattr(used, is_overtaken)
        pause_restored(stack, found, by=by, reason=reason)

    monkeypatch.setattr("roundsman_console.acts.reconcile.reconcile.pause_restored", pauses)
    result = operator.types("reconcile", "--restored-to", iso(at), "--go", "--yes")
    assert result.exit_code == 1
    assert f"Somebody has just asked for a change of {run_id}." in result.stderr
    assert "Run the command again" in result.stderr
    world.pass_time(120)
    assert run_of(operator, run_id)["state"] == "stopped"


@pytest.mark.exhaustive
def test_holds_that_are_in_force_again_are_listed(operator: Operator) -> None:
    world = operator.world
    held = operator.types("hold", "mail", "--for", "1h", "--reason", "wrong people", "--yes")
    assert held.exit_code == 0, held.output
    stop_supervisor(world)
    at = world.clock.now
    world.clock.now += 60_000
    shown = operator.types("reconcile", "--restored-to", iso(at))
    assert "mail is held by " in shown.stdout
    assert "it may have been released since" in shown.stdout
    report = reconciles(operator, at)
    assert_schema("reconcile", report)
    holds = cast("list[Mapping[str, object]]", report["holds"])
    assert [(one["agent"], one["reason"]) for one in holds] == [("mail", "wrong people")]
