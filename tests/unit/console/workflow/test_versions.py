"""How steps did by the version of their agents, from the logs; and how the logs are asked."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, cast

import pytest
from botocore.exceptions import ClientError

from roundsman import Step, Workflow
from roundsman.definition.plan import Plan, plan_of
from roundsman.errors import CallRefused
from roundsman.model.instants import DAY
from roundsman_console.acts.verb import Asked
from roundsman_console.acts.workflow import verbs
from roundsman_console.acts.workflow.verbs import AgentVersionsVerb
from roundsman_console.aws.log_query import MOST_GROUPS, LogAnswer, ask_logs
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base import clock
from roundsman_console.base.errors import InspectorError, InvalidArgument, NotPossible
from roundsman_console.facts.workflow.versions import QUESTION, StepOfVersion, by_version

if TYPE_CHECKING:
    from mypy_boto3_logs import CloudWatchLogsClient

Row = dict[str, str]


def row(step: str, version: str, outcome: str = "", /, **values: object) -> Row:
    found = {"@log": "123456789012:/aws/lambda/shop/payment", "step": step, "version": version}
    words = {"outcome": outcome} if outcome else {}
    return {**found, **words, **{name: str(one) for name, one in values.items()}}


def test_each_version_has_its_share_of_failures_and_the_times_of_what_succeeded() -> None:
    rows = [
        row("pay", "41", "permanent", attempts=12, half=90, most=95),
        row("pay", "41", "transient", attempts=2, half=10, most=20),
        row("pay", "41", "held", attempts=900, half=1, most=1),
        row("pay", "41", attempts=86, half=1_500.4, most=28_000),
        row("pay", "40", attempts=1_000, half=1_400, most=3_000),
        row("pay", "9", "waiting", attempts=5, half=1, most=1),
        row("reserve", "7", attempts=3, half=100, most=610),
        row("of_another_workflow", "7", attempts=3, half=100, most=610),
    ]
    found = by_version(rows, ["reserve", "pay"])
    assert [(one.step, one.version, one.attempts) for one in found] == [
        ("reserve", "7", 3),
        ("pay", "40", 1_000),
        ("pay", "41", 100),
    ]
    assert found[2] == StepOfVersion(
        step="pay",
        agent="payment",
        version="41",
        attempts=100,
        failed_share=0.14,
        half=1_500,
        nearly_all=28_000,
    )


def test_versions_are_in_the_order_of_their_numbers_and_one_without_a_name_is_not_known() -> None:
    rows = [row("pay", one, attempts=1) for one in ("$LATEST", "10", "9")]
    nameless = {name: one for name, one in row("pay", "", attempts=1).items() if name != "version"}
    found = by_version([*rows, nameless], ["pay"])
    assert {one.version for one in found[:2]} == {"9", "10"}
    assert [one.version for one in found[:2]] == ["9", "10"]
    assert {one.version for one in found[2:]} == {"$LATEST", "not known"}
    failed = by_version([row("pay", "9", "transient", attempts=1, half=5)], ["pay"])
    assert (failed[0].failed_share, failed[0].half) == (1.0, None)
    assert by_version([], ["pay"]) == []


@dataclass
class Logs:
    """CloudWatch Logs, which answers with each of these statuses in turn."""

    statuses: list[str] = field(default_factory=lambda: ["Complete"])
    rows: Sequence[Row] = ()
    asked: list[dict[str, object]] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)

    def start_query(self, **given: object) -> dict[str, str]:
        self.asked.append(given)
        return {"queryId": "q-1"}

    def get_query_results(self, queryId: str) -> dict[str, object]:  # as boto3
        assert queryId == "q-1"
        status = self.statuses[0] if len(self.statuses) == 1 else self.statuses.pop(0)
        rows = [[{"field": name, "value": one} for name, one in row.items()] for row in self.rows]
        return {"status": status, "results": rows, "statistics": {"bytesScanned": 2e9}}

    def stop_query(self, queryId: str) -> None:  # as boto3
        self.stopped.append(queryId)


def client(logs: object) -> "CloudWatchLogsClient":
    return cast("CloudWatchLogsClient", logs)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock on which a wait takes no time, and each look a second."""

    class Time:
        now = 0.0

        def monotonic(self) -> float:
            self.now += 1
            return self.now

        def sleep(self, _seconds: float) -> None:
            pass

    monkeypatch.setattr(clock, "time", Time())


def test_the_logs_are_asked_once_and_their_answer_is_waited_for() -> None:
    logs = Logs(["Scheduled", "Running", "Complete"], [row("pay", "41", attempts=1)])
    found = ask_logs(client(logs), ["/aws/lambda/shop/payment"], QUESTION, 10_000, 20_999, 60)
    assert found == LogAnswer([row("pay", "41", attempts=1)], 2_000_000_000)
    (asked,) = logs.asked
    assert (asked["startTime"], asked["endTime"]) == (10, 20)
    assert asked["logGroupNames"] == ["/aws/lambda/shop/payment"]
    assert not logs.stopped


def test_a_question_without_an_answer_is_ended() -> None:
    logs = Logs(["Running"])
    with pytest.raises(InspectorError, match="did not answer within 5 s"):
        ask_logs(client(logs), ["g"], QUESTION, 0, 1_000, 5)
    assert logs.stopped == ["q-1"]


def test_a_question_that_fails_says_how_it_ended() -> None:
    with pytest.raises(InspectorError, match="ended as Failed"):
        ask_logs(client(Logs(["Failed"])), ["g"], QUESTION, 0, 1_000, 5)


def test_too_many_log_groups_are_refused_before_anything_is_asked() -> None:
    logs = Logs()
    with pytest.raises(InspectorError, match="51 log groups are too many"):
        ask_logs(client(logs), ["g"] * (MOST_GROUPS + 1), QUESTION, 0, 1_000, 5)
    assert not logs.asked


def test_without_the_right_it_is_said_what_was_refused() -> None:
    class Refuses(Logs):
        def start_query(self, **_given: object) -> dict[str, str]:
            raise ClientError(
                {"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "StartQuery"
            )

    with pytest.raises(CallRefused, match="asking the logs"):
        ask_logs(client(Refuses()), ["g"], QUESTION, 0, 1_000, 5)


# --- The verb ------------------------------------------------------------------------------------


def plan() -> Plan:
    soon = timedelta(seconds=30)
    pay = Step(name="pay", agent="payment", complete_within=soon)
    mail = Step(name="send", agent="mail", after=(pay,), complete_within=soon)
    return plan_of(Workflow(name="purchase", steps=(pay, mail), complete_within=soon * 10))


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> tuple[DeployedStack, Logs]:
    monkeypatch.setattr(verbs, "newest_plan_of", lambda _stack, _workflow: plan())
    monkeypatch.setattr(verbs, "now", lambda: 1_800_000_000_000)
    logs, stack = Logs(rows=[row("pay", "41", attempts=4)]), DeployedStack("shop", {}, {})
    stack.__dict__["logs"] = logs
    return stack, logs


def test_it_says_what_it_costs_and_asks_nothing_before_it_is_agreed(
    shop: tuple[DeployedStack, Logs],
) -> None:
    stack, logs = shop
    preview = AgentVersionsVerb.read({"workflow": "purchase", "since": "7d"}).preview(stack)
    assert preview.sentence == (
        "The logs of mail, payment of the last 7d would be scanned. AWS charges some 0.005 USD for "
        "each GB of them."
    )
    assert not logs.asked
    result = preview.go(Asked("", "", 0))
    (asked,) = logs.asked
    assert asked["logGroupNames"] == ["/aws/lambda/shop/mail", "/aws/lambda/shop/payment"]
    assert asked["startTime"] == 1_800_000_000 - 7 * DAY // 1_000
    found = result.document()
    assert (found["scannedBytes"], found["usd"]) == (2_000_000_000, 0.01)
    assert [one["version"] for one in found["versions"]] == ["41"]


def test_a_local_aws_has_no_logs_to_ask() -> None:
    local = DeployedStack("shop", {}, {}, endpoint="http://127.0.0.1:4510")
    with pytest.raises(NotPossible, match="no logs to ask"):
        AgentVersionsVerb.read({"workflow": "purchase"}).preview(local)


@pytest.mark.parametrize("given", [{"workflow": "<b>"}, {"workflow": "w", "since": "2h"}, {}])
def test_what_cannot_be_meant_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument):
        AgentVersionsVerb.read(given)
