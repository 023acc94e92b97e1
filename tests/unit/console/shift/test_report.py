"""What a shift says of what was read: each rule that decides an entry, its order and its words."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from roundsman.model.bulk_run import BulkRecord, OrderResult, RunProgress
from roundsman.model.events import HistoryRow
from roundsman.model.failure import NO_STEP, Group
from roundsman.model.instants import MINUTE
from roundsman.model.states import TaskState
from roundsman.model.task import Task
from roundsman_console.facts.finding.report import Finding
from roundsman_console.facts.finding.standing import AlarmChange
from roundsman_console.facts.finding.table import DOCTOR, FindingKind
from roundsman_console.facts.group.over import CauseInHistory, FailuresInHistories
from roundsman_console.facts.shift.report import (
    UNKNOWN,
    FailedGroup,
    Shift,
    alert_changes,
    alerts_not_kept,
    failed_groups,
    given_commands,
    open_problems,
    sections,
    shift_run,
)
from tests.console.shelves import archived
from tests.console.step_samples import AT
from tests.unit.console.shift.test_reading import GROUP, SINCE, bulk, group

TOLD = CauseInHistory("ord-1", "story", "charge", "payment", "no money", AT)


def of(
    row: Group | None = None,
    *,
    failed: Sequence[Task] = (),
    runs: Sequence[BulkRecord] = (),
    told: FailuresInHistories | None = None,
    count: int | None = None,
    rows: Sequence[HistoryRow] = (),
) -> FailedGroup:
    """The only group of a shift; `rows` are the history of ord-9, which took a command."""
    stored = [row] if row else []
    known = {GROUP.id: told} if told else {}
    counts = {GROUP.id: count} if count is not None else {}
    histories = {"ord-9": rows}
    [found] = failed_groups(stored, failed, runs, known, SINCE, counts=counts, histories=histories)
    return found


def failure(reason: str, step: str | None = "charge", kind: str = "failed") -> HistoryRow:
    return HistoryRow(1, AT, kind, step, 1, reason)


def command(at: int, by: str | None = "amy", command_id: str | None = "c-1") -> HistoryRow:
    return HistoryRow(at, at, "resubmit", None, None, "resubmit by amy: it works", by, command_id)


# ---- which groups, and in which order ------------------------------------------------------------


@pytest.mark.parametrize("at", ["since", "last_at", "closed_at"])
def test_a_group_is_in_the_shift_if_one_of_its_instants_is(at: str) -> None:
    old = replace(GROUP, since=SINCE - 1, last_at=SINCE - 1)
    assert failed_groups([old], [], [], {}, SINCE) == []
    late = {
        "since": replace(old, since=SINCE),
        "last_at": replace(old, last_at=SINCE),
        "closed_at": replace(old, closed_at=SINCE),
    }[at]
    assert [one.group for one in failed_groups([late], [], [], {}, SINCE)] == [GROUP.id]


def test_groups_of_one_instant_are_in_the_order_of_their_ids() -> None:
    rows = [replace(group(place), last_at=AT) for place in (2, 1, 3)]
    found = failed_groups(rows, [], [], {}, SINCE)
    assert [one.group for one in found] == [group(place).id for place in (1, 2, 3)]


def test_an_order_or_a_bulk_run_without_a_group_is_of_none() -> None:
    alone, run = replace(archived("ord-1"), failure=None), bulk(1)
    by_state = replace(run, run=replace(run.run, selection="--state Archived"))
    assert failed_groups([], [alone], [by_state], {}, SINCE) == []


# ---- when, how many, and whether it is over ------------------------------------------------------


def test_the_first_and_the_last_failure_are_looked_for_in_all_that_is_known() -> None:
    member = replace(archived("ord-1", AT - 5 * MINUTE), failure=GROUP.id)
    row = replace(GROUP, since=AT, last_at=0)
    assert (of(row).first_at, of(row).last_at) == (AT, AT), "0 is no instant"
    assert of(row, failed=[member]).first_at == AT - 5 * MINUTE
    told = FailuresInHistories([replace(TOLD, at=AT + MINUTE)])
    assert of(row, runs=[bulk(1)], told=told).last_at == AT + MINUTE
    alike = replace(failure("the bank said no: CardDeclined"), at=AT + 2 * MINUTE)
    row = replace(row, error_type="", message="the bank said no")
    assert of(row, rows=[alike]).last_at == AT + 2 * MINUTE
    running = replace(member, ended_at=None, ending=None)
    assert of(row, failed=[running]).first_at == AT


def test_the_number_of_orders_is_the_largest_that_is_known() -> None:
    row = replace(GROUP, count=0, alerted_count=0)
    assert of(row).orders is None
    assert of(replace(row, count=7)).orders == 7
    assert of(replace(row, alerted_count=8)).orders == 8
    member = replace(archived("ord-1"), failure=GROUP.id)
    assert of(row, failed=[member]).orders == 1
    run = bulk(1)
    assert of(row, runs=[replace(run, run=replace(run.run, selected=5))]).orders == 5
    told = FailuresInHistories(planned=frozenset({"ord-1", "ord-2", "ord-3"}))
    assert of(row, failed=[member], runs=[run], told=told).orders == 3
    alike = failure("CardDeclined: the bank said no")
    assert of(row, failed=[member], runs=[run], told=told, rows=[alike]).orders == 4


def test_a_group_with_few_orders_that_the_supervisor_found_clear_is_calm() -> None:
    assert of(replace(GROUP, clear_since=AT, count=2)).standing == "calm"
    assert of(GROUP, count=2).standing == "open"
    assert of(GROUP, count=0).standing == "calm"
    assert of(failed=[archived("ord-1")]).standing == "open"
    undone = replace(archived("ord-1"), state=TaskState.UNDONE)
    assert of(failed=[undone]).standing == "over", "as the list of groups has it"


# ---- what it was ---------------------------------------------------------------------------------


def test_a_cause_has_the_words_that_are_known() -> None:
    assert of(replace(GROUP, message="")).cause == "CardDeclined"
    assert of(replace(GROUP, error_type="")).cause == "the bank said no"
    assert of(replace(GROUP, error_type="", message="")).cause == UNKNOWN


def test_what_is_not_known_of_a_group_without_a_row_is_said() -> None:
    lost = replace(archived("ord-1"), ending=None, steps={})
    named = archived("ord-2")
    found = of(failed=[lost])
    assert (found.workflow, found.step, found.cause) == ("story", NO_STEP, UNKNOWN)
    assert of(failed=[lost, named]).step == "charge", "another order tells it"
    told = FailuresInHistories([replace(TOLD, step="")])
    found = of(runs=[bulk(1)], told=told)
    assert (found.group, found.workflow, found.step) == (GROUP.id, "story", NO_STEP)


@pytest.mark.parametrize(
    ("row", "counts"),
    [
        (failure("charge: CardDeclined: the bank said no"), True),
        (failure("charge: the bank said no"), False),
        (failure("CardDeclined: the bank said no", kind="resubmit"), False),
        (failure("CardDeclined: the bank said no", step="pick"), False),
        (failure("CardDeclined: the bank said no", step="charge[2]"), True),
        (failure("CardDeclined: the bank said no", step=None), False),
        (failure("CardDeclined: the bank said no; retried at 2027-01-15T08:00:00Z"), False),
    ],
)
def test_an_order_had_failed_so_if_its_history_has_the_step_and_the_cause(
    row: HistoryRow, counts: bool
) -> None:
    found = of(replace(GROUP, count=0, alerted_count=0), rows=[row])
    assert found.orders == (1 if counts else None)


def test_a_cause_is_found_in_a_history_that_cut_it_and_that_has_other_numbers() -> None:
    none = replace(GROUP, count=0, alerted_count=0, error_type="")
    long = replace(none, message="the bank says " + "no " * 60)
    assert of(long, rows=[failure(long.message[:110])]).orders == 1
    numbered = replace(none, message="request 1 was refused")
    assert of(numbered, rows=[failure("request 1 was refused")]).orders == 1
    assert of(numbered, rows=[failure("request 27 was refused")]).orders == 1


def test_nothing_is_alike_a_cause_that_is_not_known() -> None:
    row = replace(GROUP, count=0, alerted_count=0, error_type="", message="")
    assert of(row, rows=[failure("the cause is not known")]).orders is None


def test_a_failure_of_an_order_as_a_whole_is_alike_one_without_a_step() -> None:
    row = replace(GROUP, count=0, alerted_count=0, step=NO_STEP)
    assert of(row, rows=[failure("CardDeclined: the bank said no", step=None)]).orders == 1


# ---- alerts --------------------------------------------------------------------------------------


def test_the_change_of_an_alarm_says_whether_it_began_or_is_over() -> None:
    alarms = [
        AlarmChange("Backlog", SINCE, raised=False, description=""),
        AlarmChange("Mail", SINCE + 1, raised=True, description="mail fails"),
        AlarmChange("Early", SINCE - 1, raised=True, description="mail fails"),
    ]
    found = alert_changes([], alarms[::-1], SINCE)
    assert [(one.about, one.change, one.sentence) for one in found] == [
        ("Backlog", "cleared", UNKNOWN),
        ("Mail", "raised", "mail fails"),
    ]


def test_a_group_without_an_alert_has_no_change() -> None:
    assert alert_changes([GROUP], [], SINCE) == []
    closed = replace(GROUP, closed_at=AT)
    assert [one.change for one in alert_changes([closed], [], SINCE)] == ["cleared"]


def test_the_groups_without_their_alerts_are_named_as_far_as_a_sentence_can() -> None:
    def said(many: int) -> str:
        groups = [replace(of(group(place), count=0), standing="over") for place in range(many)]
        [sentence] = alerts_not_kept(groups, [])
        return sentence

    assert said(1) == "The alerts of f-00000000 are not kept: the group is over."
    assert said(2).endswith("f-00000000, f-00000001 are not kept: these groups are over.")
    assert "f-00000004 are not kept" in said(5)
    assert "f-00000004 and 1 more are not kept" in said(6)


def test_a_group_that_is_open_or_stored_keeps_its_alerts() -> None:
    opened = of(failed=[archived("ord-1")])
    over = replace(of(GROUP), standing="over")
    assert alerts_not_kept([opened, over], [GROUP]) == []


# ---- commands, bulk runs, what is open -----------------------------------------------------------


def test_a_command_of_a_person_is_in_the_shift_from_its_first_instant() -> None:
    rows = [
        command(SINCE - 1),
        command(SINCE, command_id="b-1a2b3c4d"),
        command(SINCE, command_id="b-1a2b3c4d-by-hand"),
        command(SINCE, by=None),
        command(SINCE, command_id=None),
    ]
    [found] = given_commands({"ord-1": rows}, SINCE)
    assert (found.at, found.reason) == (SINCE, "it works"), "who sent it has its own field"


def test_commands_are_in_the_order_of_time_whatever_their_order() -> None:
    found = given_commands({"ord-1": [command(AT + 1)], "ord-2": [command(AT)]}, SINCE)
    assert [one.order for one in found] == ["ord-2", "ord-1"]


def test_the_results_of_a_bulk_run_are_those_that_are_not_0() -> None:
    run = bulk(1)
    assert shift_run(replace(run, progress=RunProgress())).progress.words() == "2 not reached"
    progress = RunProgress(reached=2, sent=2, ended=((OrderResult.FAILED, 2),))
    found = shift_run(replace(run, progress=progress)).progress
    assert (found.done, found.words()) == (0, "2 failed again")
    waits = RunProgress(reached=2, sent=2)
    assert shift_run(replace(run, progress=waits)).progress.words() == "none yet"


def test_a_problem_without_a_command_of_its_own_leads_to_the_doctor() -> None:
    silent = Finding(FindingKind.SUPERVISOR_LATE, "", "The supervisor does not run")
    other = Finding(FindingKind.TASK_STUCK, "ord-1", "it waits")
    assert [one.next for one in open_problems([silent, other])] == [DOCTOR, other.command]
    assert other.command != DOCTOR


def test_what_is_open_is_the_first_part() -> None:
    nothing = Shift(
        stack="shop",
        since=SINCE,
        until=AT,
        open_now=[],
        groups=[],
        alerts=[],
        holds=[],
        commands=[],
        bulk_runs=[],
        notes=[],
        deployments=[],
        left_out=[],
        unread=[],
    )
    assert [one.title for one in sections(nothing)] == [
        "Needs attention now",
        "Failures",
        "Alerts",
        "Holds and releases",
        "Commands on single orders",
        "Bulk runs",
        "Notes",
        "Deployments",
    ]
