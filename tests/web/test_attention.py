"""What needs attention: alerts, a silent supervisor and what the doctor finds. Its counts too."""

from collections.abc import Sequence

import pytest

from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.states import TaskState
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.unread import Unread
from roundsman_console.faces.web.addresses import page_of_command
from roundsman_console.faces.web.pages import overview as overview_page
from roundsman_console.facts.finding.attention import attention, of_doctor, of_supervisor
from roundsman_console.facts.finding.report import Finding, Looked, Report, StandingAlerts, Unseen
from roundsman_console.facts.finding.standing import Alarm, of_alarms
from roundsman_console.facts.finding.table import FindingKind, StandingKind, Trouble
from roundsman_console.facts.orders.counts import Count, TaskCounts
from roundsman_console.facts.overview.stats import Stats
from tests.moto.orders import order
from tests.web.browsers import Browser
from tests.web.wellness import doctor_finds_nothing, make_well

AT = 1_800_000_000_000


def report(findings: Sequence[Finding] = (), unseen: Sequence[Unseen] = ()) -> Report:
    return Report(Looked("shop", AT, {"open": 0, "archived": 0}, ()), findings, unseen)


@pytest.mark.parametrize(
    ("silent_for", "interval", "concerned"),
    [
        (None, "60", True),
        (2 * MINUTE, "60", False),
        (2 * MINUTE + 1, "60", True),
        (2 * MINUTE, "30", False),
        (2 * MINUTE + 1, "", True),
        (10 * MINUTE, "300", False),
        (10 * MINUTE + 1, "300", True),
    ],
)
def test_a_supervisor_that_misses_two_passes_needs_attention(
    silent_for: int | None, interval: str, concerned: bool
) -> None:
    visited_at = None if silent_for is None else AT - silent_for
    stack = DeployedStack("shop", {}, {"SupervisorIntervalSeconds": interval})
    found = of_supervisor(visited_at, AT, stack.supervisor_interval)
    assert bool(found) is concerned
    if found:
        assert (found[0].severity, found[0].since) == ("critical", visited_at)


@pytest.mark.exhaustive
def test_a_stack_whose_supervisor_never_ran_says_so_until_it_runs(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    doctor_finds_nothing(browser.operator.world, monkeypatch)
    page = browser.page("/")
    assert "The supervisor has never run: nothing that is overdue is found" in page
    assert "Nothing needs attention" not in page
    make_well(browser.operator.world, monkeypatch)
    page = browser.page("/")
    assert "Nothing needs attention: no failure group is open, no agent is held" in page
    assert "The supervisor passed just now , and the doctor found nothing critical just now" in page
    browser.operator.world.clock.now += 121 * SECOND
    page = browser.page("/")
    assert "The supervisor does not run" in page
    assert "Nothing needs attention" not in page


def test_critical_findings_of_the_doctor_need_attention_and_others_do_not() -> None:
    found = of_doctor(
        [
            Finding(FindingKind.ALERTS_UNHEARD, "AlertTopic", "no subscription"),
            Finding(FindingKind.TASK_STUCK, "ord-1", "overdue"),
            Finding(FindingKind.TASK_STUCK, "ord-2", "overdue"),
            Finding(FindingKind.TTL_OFF, "Tasks", "TTL is not enabled"),
            Finding(FindingKind.SUPERVISOR_LATE, "shard 0", "never visited"),
        ]
    )
    assert [one.sentence for one in found] == [
        "alerts-unheard: AlertTopic: no subscription",
        "task-stuck: 2 places, first ord-1: overdue",
    ]
    assert {(one.severity, overview_page.page_of(one)) for one in found} == {
        ("critical", "/doctor")
    }


def test_the_overview_asks_the_doctor_and_keeps_what_it_said(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    overview_page.CHECKS.forget(browser.inspector)
    assert "alerts-unheard: AlertTopic: no subscription" in browser.page("/")
    monkeypatch.setattr(browser.inspector, "check", lambda: pytest.fail("it is kept"))
    kept = overview_page.CHECKS.report(browser.inspector).value
    assert kept is not None
    assert kept.findings


def test_a_check_that_could_not_read_everything_is_made_again(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = [
        report(unseen=[Unseen("alarms", "AWS refused it.")]),
        report(unseen=[Unseen("schedules", "there are none", lacking=True)]),
    ]
    monkeypatch.setattr(browser.inspector, "check", lambda: checks.pop(0))
    overview_page.CHECKS.forget(browser.inspector)
    browser.operator.world.supervise()
    page = browser.page("/")
    assert "AWS refused it. Not read: the doctor's check of alarms." in page
    assert "Nothing needs attention" not in page
    assert "More may need attention" in page
    assert "Nothing needs attention" in browser.page("/")
    assert "Nothing needs attention" in browser.page("/"), "the whole check is kept"
    assert not checks


def test_nothing_is_missing_if_everything_was_read() -> None:
    alerts = StandingAlerts(unseen=[Unseen("Alarms", "no")])
    assert attention(alerts, None, report(), MINUTE).unread == (Unread("Alarms", "no"),)
    lacking = report(unseen=[Unseen("alarms", "the stack lists none", lacking=True)])
    assert attention(StandingAlerts(), None, lacking, MINUTE).unread == ()


@pytest.mark.parametrize(
    ("kind", "where", "about", "page"),
    [
        (
            StandingKind.GROUP,
            "f-0a1b2c3d",
            "roundsman ls --group f-0a1b2c3d",
            "/groups/f-0a1b2c3d",
        ),
        (FindingKind.DEAD_LETTERS, "MailRequestQueue", None, "/dead-letters"),
        (FindingKind.REJECTED, "RejectedQueue", None, "/rejected"),
        (StandingKind.BEHIND, "scheduler", None, "/#queues"),
        (StandingKind.HOLD, "mail", "roundsman release mail", "/agents"),
        (StandingKind.CIRCUIT, "mail", None, "/agents"),
        (FindingKind.SUPERVISOR_LATE, "", None, "/doctor"),
    ],
)
def test_each_alert_leads_to_the_page_of_its_next_command(
    kind: Trouble, where: str, about: str | None, page: str
) -> None:
    alerts = StandingAlerts([Finding(kind, where, "x", about, since=AT)])
    [found] = attention(alerts, None, None, MINUTE).findings
    assert (overview_page.page_of(found), found.since) == (page, AT)


@pytest.mark.parametrize(
    ("command", "page"),
    [
        ("roundsman show ord-1", "/orders/ord-1"),
        ("roundsman show -- -x", "/orders/-x"),
        ("roundsman show '~a'", "/orders/~a"),
        ("roundsman dlq ls MailQueue", "/dead-letters"),
        ("roundsman ls --group f-1a2b3c4d", "/groups/f-1a2b3c4d"),
        ("roundsman doctor --fix", None),
        ("aws lambda delete-function-concurrency --function-name ls", None),
    ],
)
def test_a_printed_command_leads_to_its_page_if_there_is_one(
    command: str, page: str | None
) -> None:
    assert page_of_command(command) == page


def test_a_finding_of_the_doctor_leads_to_its_page(browser: Browser) -> None:
    world = browser.operator.world
    world.submit({**order("ord-1"), "lines": []})
    world.run()
    assert '<a href="/rejected">See it here</a>' in browser.html("/doctor")


def test_each_alarm_leads_to_a_page() -> None:
    names = ("ArchivedTasksAlarm", "SupervisorErrorsAlarm", "MailDeadLettersAlarm", "OwnAlarm")
    alerts = StandingAlerts(of_alarms(Alarm(name, "x", AT) for name in names))
    found = attention(alerts, None, None, MINUTE).findings
    pages = [overview_page.page_of(one) for one in found]
    assert pages == ["/orders?state=Archived", "/doctor", "/dead-letters", "/doctor"]


def test_none_among_the_orders_that_were_read_is_no_number(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = {state: Count() for state in TaskState}
    states[TaskState.COMPLETED] = Count(500, more=True)
    states[TaskState.UNDONE] = Count(0, more=True)
    counts = TaskCounts({}, states, left_out=Count(0, more=True))
    stats = Stats(browser.operator.world.clock(), counts, (), (), None)
    monkeypatch.setattr(overview_page, "_stats", lambda *_: stats)
    doctor_finds_nothing(browser.operator.world, monkeypatch)
    page = browser.page("/")
    assert "at least 500 Completed" in page
    assert ">0" not in page
    assert "not counted Undone" in page
    assert "0 Cancelled" in page
