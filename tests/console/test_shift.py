"""`roundsman shift`: what happened since a time, by whom, and what is open now."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

import pytest

from roundsman.engine.due import Lane, lane_key
from roundsman.model.bulk_run import BulkRecord, OrderResult, Run, RunProgress, Terms
from roundsman.model.events import CommandSource, HistoryRow, Resubmit
from roundsman.model.failure import NO_STEP, Group
from roundsman.model.instants import MINUTE, iso, second
from roundsman.model.states import TaskState
from roundsman.model.task import Task
from roundsman_console.aws.stack import find_stack
from roundsman_console.base.errors import InvalidArgument
from roundsman_console.facts.finding.report import Looking
from roundsman_console.facts.finding.standing import AlarmChange
from roundsman_console.facts.group.over import CauseInHistory, FailuresInHistories
from roundsman_console.facts.shift import reading
from roundsman_console.facts.shift.report import (
    UNKNOWN,
    FailedGroup,
    RunResults,
    alert_changes,
    alerts_not_kept,
    failed_groups,
    given_commands,
    shift_run,
)
from tests.console.bulk_stories import archived as archived_orders
from tests.console.many_orders import ManyOrders
from tests.console.operators import Operator, holds_of, in_retry
from tests.console.schemas import assert_schema
from tests.console.shelves import archived, open_task
from tests.console.step_samples import AT
from tests.moto.orders import order
from tests.web.test_requests_to_aws import requests_counted

GROUP = Group(
    id="f-1a2b3c4d",
    workflow="order_fulfilment",
    step="charge_card",
    how="archived",
    error_type="Declined",
    message="the acquirer said no",
    opened_by="ord-1",
    opened_at=AT,
    since=AT,
    alerted_at=AT + MINUTE,
    alerted_count=200,
    count=190,
    last_at=AT + 5 * MINUTE,
)
OTHER = "f-00000000"


def run_over(group: str, selected: int = 60, started_at: int = AT) -> BulkRecord:
    run = Run(
        id="b-1a2b3c4d",
        event=Resubmit(CommandSource("b-1a2b3c4d", "amy", "the rule is right")),
        by="amy",
        starter="AROA:amy",
        reason="the rule is right",
        selection=f"--group {group}",
        started_at=started_at,
        selected=selected,
        terms=Terms(),
    )
    ended = ((OrderResult.COMPLETED, 40), (OrderResult.FAILED, 5))
    return BulkRecord(run, RunProgress(reached=50, sent=50, ended=ended))


def groups_since(
    since: int,
    *rows: Group,
    failed: Sequence[Task] = (),
    runs: Sequence[BulkRecord] = (),
    told: Sequence[CauseInHistory] = (),
    counts: dict[str, int] | None = None,
    histories: dict[str, list[HistoryRow]] | None = None,
) -> list[FailedGroup]:
    planned = frozenset(f"ord-{number}" for number in range(60)) if runs else frozenset()
    known = {OTHER: FailuresInHistories(told, planned)} if told else {}
    return failed_groups(rows, failed, runs, known, since, counts=counts, histories=histories)


def failure_row(step: str, reason: str, at: int = AT) -> HistoryRow:
    return HistoryRow(1, at, "failed", step, 1, reason)


# ---- what happened, of what is stored ---------------------------------------------------------


def test_a_stored_group_says_when_it_failed_how_many_and_whether_it_is_over() -> None:
    [found] = groups_since(AT, GROUP)
    assert (found.first_at, found.last_at, found.orders) == (AT, AT + 5 * MINUTE, 200)
    assert (found.standing, found.cause) == ("open", "Declined: the acquirer said no")
    [calm] = groups_since(AT, replace(GROUP, clear_since=AT, count=0))
    assert calm.standing == "calm"
    [over] = groups_since(AT, replace(GROUP, closed_at=AT + 9 * MINUTE))
    assert over.standing == "over"


def test_a_group_is_in_the_shift_if_it_failed_or_ended_in_it() -> None:
    later = AT + 6 * MINUTE
    assert groups_since(later, GROUP) == []
    assert groups_since(later, replace(GROUP, last_at=later)) != []
    assert groups_since(later, replace(GROUP, closed_at=later)) != []


def test_orders_without_a_stored_group_are_counted_as_far_as_they_were_read() -> None:
    tasks = [archived(f"ord-{place}", AT + place) for place in range(3)]
    [found] = groups_since(AT, failed=tasks)
    assert (found.group, found.orders) == (tasks[0].failure, 3)
    assert (found.first_at, found.last_at) == (AT, AT + 2)
    assert (found.workflow, found.step) == (tasks[0].workflow, "charge")
    assert found.cause == "CardDeclined: POST answered 402"


def test_a_group_that_is_over_is_known_by_its_bulk_run_and_says_what_is_not_known() -> None:
    cause = CauseInHistory("ord-1", "order_fulfilment", "charge_card", "payment", "no money", AT)
    last = replace(cause, order="ord-59", at=AT + 9 * MINUTE)
    [found] = groups_since(AT, runs=[run_over(OTHER)], told=[cause, last])
    assert (found.standing, found.orders, found.cause) == ("over", 60, "no money")
    assert (found.first_at, found.last_at) == (AT, AT + 9 * MINUTE)
    [unknown] = groups_since(AT, runs=[run_over(OTHER)])
    assert (unknown.workflow, unknown.step, unknown.cause) == (UNKNOWN, UNKNOWN, UNKNOWN)
    whole = replace(cause, step="")
    assert groups_since(AT, runs=[run_over(OTHER)], told=[whole])[0].step == NO_STEP


def test_an_order_that_was_let_go_on_alone_still_counts_and_so_does_its_time() -> None:
    """An order is tried first, and the others follow: the row of the group knows the others."""
    tried = failure_row(
        "charge_card", "charge_card: failed for good: Declined: the acquirer said no"
    )
    row = replace(GROUP, count=2, alerted_count=2, since=AT + MINUTE, last_at=AT + MINUTE)
    members = [archived(f"ord-{place}", AT + place) for place in range(2)]
    left = {"ord-0": [tried], "ord-7": [replace(tried, at=AT + 7 * MINUTE)]}
    others = [
        replace(tried, step="send_mail"),
        replace(tried, reason="charge_card: failed for good: NoMoney"),
        replace(
            tried,
            reason="charge_card: attempt 1 of 3 failed: Declined: the acquirer said no; "
            "retried at 2027-01-15T08:00:00Z",
        ),
    ]
    histories = {**left, **{f"ord-{place}": [one] for place, one in enumerate(others, 20)}}
    tasks = [replace(one, failure=GROUP.id) for one in members]
    [found] = groups_since(AT, row, failed=tasks, histories=histories)
    assert found.orders == 3
    assert (found.first_at, found.last_at) == (AT, AT + 7 * MINUTE)


def test_a_group_without_an_order_now_is_calm_whenever_the_supervisor_counted_last() -> None:
    assert groups_since(AT, GROUP, counts={GROUP.id: 0})[0].standing == "calm"
    assert groups_since(AT, replace(GROUP, count=0), counts={GROUP.id: 3})[0].standing == "open"


def test_what_is_open_comes_before_what_is_over_and_the_latest_first() -> None:
    over = replace(GROUP, id="f-00000001", closed_at=AT + MINUTE, last_at=AT + 99 * MINUTE)
    early = replace(GROUP, id="f-00000002", last_at=AT + MINUTE)
    found = groups_since(AT, over, early, GROUP)
    assert [one.group for one in found] == [GROUP.id, early.id, over.id]


def test_alerts_are_those_of_groups_and_alarms_in_the_order_of_time() -> None:
    alarms = [
        AlarmChange("MailErrorsAlarm", AT + 3 * MINUTE, raised=True, description="mail fails"),
        AlarmChange("BacklogAlarm", AT - 1, raised=False, description="too old"),
    ]
    closed = replace(GROUP, closed_at=AT + 8 * MINUTE)
    found = alert_changes([closed, replace(GROUP, alerted_at=None)], alarms, AT)
    assert [(one.change, one.about) for one in found] == [
        ("raised", GROUP.id),
        ("raised", "MailErrorsAlarm"),
        ("cleared", GROUP.id),
    ]
    assert found[0].sentence.startswith("orders of order_fulfilment: Declined")


def test_an_alert_has_no_number_since_the_stored_one_is_lowered_as_orders_leave() -> None:
    [before] = alert_changes([GROUP], [], AT)
    assert alert_changes([replace(GROUP, alerted_count=2)], [], AT) == [before]


def test_of_a_group_that_is_over_the_alert_is_said_to_be_not_kept() -> None:
    over = groups_since(AT, runs=[run_over(OTHER)])
    assert alerts_not_kept(over, []) == [f"The alerts of {OTHER} are not kept: the group is over."]
    closed = replace(GROUP, closed_at=AT)
    assert alerts_not_kept(groups_since(AT, closed), [closed]) == []


def test_a_command_is_listed_with_its_sender_but_not_that_of_a_bulk_run() -> None:
    def row(at: int, by: str | None, command: str | None, kind: str = "resubmit") -> HistoryRow:
        return HistoryRow(at, at, kind, None, None, "why", by, command, "AROA:amy")

    rows = [
        row(AT - 1, "amy", "c-0"),
        row(AT + 2, "amy", "c-1"),
        row(AT + 1, "bob", "c-2", "refused"),
        row(AT + 3, "amy", "b-1a2b3c4d"),
        row(AT + 4, None, None, "failed"),
    ]
    found = given_commands({"ord-1": rows}, AT)
    assert [(one.by, one.command, one.sender) for one in found] == [
        ("bob", "refused", "AROA:amy"),
        ("amy", "resubmit", "AROA:amy"),
    ]


def test_a_bulk_run_says_what_it_has_done() -> None:
    found = shift_run(run_over(OTHER))
    assert found.selected == 60
    assert found.progress == RunResults(done=40, failed_again=5, refused=0, not_reached=10)
    assert found.progress.words() == "40 done, 5 failed again, 10 not reached"
    assert (found.group, found.by, found.command) == (OTHER, "amy", "resubmit")


# ---- when it begins ---------------------------------------------------------------------------


def test_a_shift_begins_at_an_instant_or_so_long_ago() -> None:
    assert reading.read_begin("8h", AT) == AT - 480 * MINUTE
    assert reading.read_begin(second(AT - 60_000), AT) == (AT - 60_000) // 1_000 * 1_000


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("yesterday", "is not an instant with a time zone"),
        ("8", "is not a duration"),
        ("8d", "too long: at least 1s, at most 7d"),
        (second(AT + MINUTE), "is not past"),
        (second(AT - 8 * 1_440 * MINUTE), "too long ago: at most 7d"),
    ],
)
def test_a_time_that_cannot_be_meant_gets_a_sentence(text: str, says: str) -> None:
    with pytest.raises(InvalidArgument, match=says):
        reading.read_begin(text, AT)


# ---- how much is read -------------------------------------------------------------------------


def done(task_id: str, ended_at: int) -> Task:
    born = open_task(task_id, ended_at - MINUTE)
    lane = lane_key(Lane.DONE, born.shard)
    return replace(born, state=TaskState.COMPLETED, lane=lane, due_at=ended_at, ended_at=ended_at)


@pytest.mark.parametrize("many", [2_000, 5_000])
def test_the_number_of_requests_does_not_grow_with_the_orders(many: int) -> None:
    place = count()
    orders = ManyOrders.of(
        [
            *(done(f"ord-{next(place)}", AT + one) for one in range(many)),
            *(archived(f"ord-{next(place)}", AT + one) for one in range(many // 2)),
            *(open_task(f"ord-{next(place)}", AT + one) for one in range(many // 2)),
        ]
    )
    looking = Looking()
    found = reading.read_orders(orders.stack(2), AT, AT + many, looking)
    assert not looking.parts
    assert {one.whole for one in (found.failed, found.ended, found.opened)} == {False}
    assert len(found.tasks) == reading.MOST_FAILED + reading.MOST_ENDED + reading.MOST_OPEN
    assert orders.requests["BatchGetItem"] == 18
    assert orders.requests["Query"] <= 60
    newest = min(task.ended_at or 0 for task in found.ended.tasks)
    assert newest == AT + many - reading.MOST_ENDED


def test_what_was_not_looked_at_is_said_and_the_lists_end(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    archived_orders(operator, 3)
    for name in ("MOST_FAILED", "MOST_HISTORIES", "MOST_ROWS"):
        monkeypatch.setattr(reading, name, 1)
    for name in ("ord-1", "ord-2"):
        operator.asks("resolve", name, "reserve_stock", "--did")
    found = operator.reads("shift", "--since", "1h")
    said = " ".join(str(one) for one in found["leftOut"])  # type: ignore[attr-defined]
    assert "Of the orders that need a person, the 1 that failed last were read." in said


@pytest.mark.parametrize(
    ("groups", "orders_read", "says"),
    [
        (20, 5 * 4, "Of 20 failure groups with a bulk run, 5 were read, those with the newest"),
        (1, 2 * 4, "Of more than two bulk runs over one failure group, the orders of the first"),
        (20 // 3, 5 * 2 * 4, "Of 6 failure groups with a bulk run, 5 were read"),
    ],
)
def test_the_number_of_requests_does_not_grow_with_the_bulk_runs(
    operator: Operator, groups: int, orders_read: int, says: str
) -> None:
    group = archived_orders(operator, 10)
    start = ("resubmit", "--group", group, "--as", "bob", "--reason", "x", "--go", "--yes")
    operator.types(*start, "--no-wait")
    stack = find_stack(None)
    [listed] = stack.bulk_runs.listed()
    record = stack.bulk_runs.load(listed.run_id, listed.starter)
    assert record is not None
    runs = [
        replace(record, run=replace(record.run, selection=f"--group f-{place % groups:08x}"))
        for place in range(reading.MOST_RUNS)
    ]
    left_out: list[str] = []
    with requests_counted() as asked:
        told = reading._told(stack, runs, Looking(), left_out)
    assert sum(len(one.read) for one in told.values()) == orders_read
    assert asked.total() <= orders_read * 4 + 4, asked
    assert says in left_out[0]


# ---- the command ------------------------------------------------------------------------------


def test_a_shift_lists_what_a_night_was(operator: Operator) -> None:
    world = operator.world
    group = archived_orders(operator, 2)
    world.pass_time(60)
    operator.asks("hold", "payment", "--for", "10m")
    operator.asks("resubmit", "ord-1")
    world.run()
    operator.types(
        *("resubmit", "--group", group, "--as", "bob", "--reason", "the rest"),
        *("--go", "--yes", "--no-wait"),
    )
    world.pass_time(120)
    found = operator.reads("shift", "--since", "1h")
    assert_schema("shift", found)
    assert found["unread"] == []
    [failures] = rows(found, "groups")
    assert (failures["group"], failures["standing"]) != (None, "unknown")
    assert failures["group"] == group
    [command] = rows(found, "commands")
    assert (command["order"], command["command"], command["by"]) == ("ord-1", "resubmit", "ops")
    [hold] = rows(found, "holds")
    assert (hold["about"], hold["by"]) == ("payment", "ops")
    [run] = rows(found, "bulkRuns")
    assert (run["group"], run["by"], run["selected"]) == (group, "bob", 1)
    assert "payment is held by ops" in str(rows(found, "openNow"))
    printed = operator.types("shift", "--since", "1h")
    assert printed.exit_code == 0, printed.output
    assert "\n\nNeeds attention now\n" in printed.stdout
    for words in (
        "Needs attention now",
        "Failures",
        group,
        "Commands on single orders",
        "ops",
        "bob",
    ):
        assert words in printed.stdout
    assert "The stack keeps no list of what happened, so" in printed.stdout


def rows(found: dict[str, object], name: str) -> list[dict[str, object]]:
    listed = found[name]
    assert isinstance(listed, list)
    return listed


def test_a_shift_in_which_nothing_happened_says_so_for_each_part(operator: Operator) -> None:
    operator.world.submit(order("ord-1"))
    operator.world.run()
    printed = operator.types("shift")
    assert printed.exit_code == 0, printed.output
    for words in ("No order is known to have failed.", "No command was found.", "No bulk run"):
        assert words in printed.stdout


def test_a_release_is_listed_without_a_name_and_not_as_a_hold(operator: Operator) -> None:
    operator.asks("hold", "payment", "--for", "10m")
    operator.asks("release", "payment")
    [hold] = rows(operator.reads("shift"), "holds")
    assert (hold["kind"], hold["by"]) == ("release", None)
    assert holds_of(operator.world).holds() == []


def test_a_command_on_an_open_order_is_found_and_a_masked_value_is_not_shown(
    operator: Operator,
) -> None:
    in_retry(operator)
    token = str(order("ord-1")["paymentToken"])
    by = ("--as", "amy", "--reason", f"the token {token} is right", "--yes")
    assert operator.types("run", "ord-1", *by).exit_code == 0
    [command] = rows(operator.reads("shift"), "commands")
    assert (command["order"], command["by"]) == ("ord-1", "amy")
    assert token not in str(command["reason"])


def test_a_part_that_cannot_be_read_is_said_and_the_rest_is_shown(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    operator.asks("hold", "payment", "--for", "10m")

    def fails(*_: object) -> None:
        raise InvalidArgument("no right to read it")

    monkeypatch.setattr(reading, "alarm_changes", fails)
    printed = operator.types("shift", "--json")
    assert printed.exit_code == 1
    assert "Not everything could be read. Alarms: no right to read it" in printed.output
    assert '"kind": "hold"' in printed.stdout


def test_a_wrong_time_ends_with_a_sentence_before_anything_is_read(operator: Operator) -> None:
    refused = operator.types("shift", "--since", "soon")
    assert refused.exit_code == 2
    assert "'soon' is not a duration" in refused.output
    assert iso(0) not in refused.output
