"""`roundsman workflows health`: how the steps of a workflow did, and since when they do worse."""

from collections.abc import Mapping, Sequence

import pytest

from roundsman_console.aws.metrics import HOUR, StepKey, StepSeries, StepTimes
from roundsman_console.aws.stack import DeployedStack, find_stack
from roundsman_console.base.errors import InvalidArgument, NotFound
from roundsman_console.facts.workflow import reading
from roundsman_console.facts.workflow.reading import newest_plan_of, steps_of
from tests.console.operators import Operator
from tests.console.schemas import assert_schema
from tests.moto.orders import order

WORKFLOW = "order_fulfilment"
Read = tuple[dict[StepKey, StepSeries], frozenset[int]]


class Logs:
    """CloudWatch Logs, in which one version of the agent of payments has failed."""

    def start_query(self, **_asked: object) -> dict[str, str]:
        return {"queryId": "q-1"}

    def get_query_results(self, **_asked: object) -> dict[str, object]:
        row = {"@log": "1:/aws/lambda/shop/payment", "step": "charge_card", "version": "41"}
        answer = {**row, "outcome": "permanent", "attempts": "7"}
        cells = [{"field": name, "value": one} for name, one in answer.items()]
        return {"status": "Complete", "results": [cells], "statistics": {"bytesScanned": 3e9}}


def test_the_logs_say_how_a_step_did_by_the_version_of_its_agent(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = ("workflows", "agent-versions", WORKFLOW)
    refused = operator.types(*ask)
    assert refused.exit_code == 2
    assert "AWS charges some 0.005 USD for each GB of them. Ask them?" in refused.stderr
    monkeypatch.setattr(DeployedStack, "logs", Logs())
    result = operator.types(*ask, "--yes")
    assert result.exit_code == 0, result.output
    assert "charge_card  payment  41" in result.stdout
    assert "100.0 %" in result.stdout
    assert "Cost: 0.02 USD" in result.stdout or "0.01 USD" in result.stdout
    found = operator.reads(*ask, "--yes")
    assert_schema("workflows-agent-versions", found)
    assert found["usd"] == 0.015


@pytest.fixture
def worse(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> Operator:
    """In the last two hours, one half of the charges fails; moto has no percentiles."""
    operator.world.submit(order("ord-1"))
    operator.world.run()

    def series(
        _stack: DeployedStack, steps: Sequence[StepKey], start: int, end: int, every: int
    ) -> Read:
        parts = [*range(start, end, every)]
        good = StepSeries(dict.fromkeys(parts, 100.0))
        bad = StepSeries(good.succeeded, dict.fromkeys(parts[-2:], 100.0))
        return {step: bad if step[1] == "charge_card" else good for step in steps}, frozenset(parts)

    def times(
        _stack: DeployedStack, steps: Sequence[StepKey], _start: int, _end: int
    ) -> Mapping[StepKey, StepTimes]:
        return {step: StepTimes(2_400, 200, 1_500, 28_000) for step in steps[1:2]}

    monkeypatch.setattr(reading, "read_step_series", series)
    monkeypatch.setattr(reading, "read_step_times", times)
    return operator


def test_the_worst_step_is_first_and_the_sentence_says_since_when(worse: Operator) -> None:
    result = worse.types("workflows", "health", WORKFLOW)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0].startswith(
        "charge_card: 50.0 % of the attempts have failed since 2027-01-15T07:00"
    )
    assert "usually 0.0 %" in lines[0]
    (row,) = [line.split() for line in lines if line.startswith("charge_card  ")]
    assert row[:4] == ["charge_card", "2,600", "7.7", "%"]
    assert "28 s" in " ".join(row)
    assert "metric StepFailures" in result.stdout
    assert "Usual is the median of the hours in the 14 days before" in result.stdout


def test_json_has_the_hours_of_each_step(worse: Operator) -> None:
    found = worse.reads("workflows", "health", WORKFLOW, "--since", "7d")
    assert_schema("workflows-health", found)
    steps = found["steps"]
    assert isinstance(steps, list)
    assert steps[0]["step"] == "charge_card"
    assert steps[0]["worse"]["until"] is None
    assert steps[0]["failedByPart"][-3:] == [0, 100, 100]
    assert len(steps[0]["attemptsByPart"]) == 7 * 24
    assert found["every"] == HOUR / 1_000


def test_a_workflow_that_is_not_known_is_said(operator: Operator) -> None:
    result = operator.types("workflows", "health", "gift")
    assert result.exit_code == 3
    assert "keeps no order of the workflow gift, so its steps are not known" in result.stderr
    for wrong in ("<script>\x1b[31m", "x" * 41):
        with pytest.raises(InvalidArgument, match="not the name of a workflow"):
            newest_plan_of(find_stack(None), wrong)
    assert "is no period" in operator.types("workflows", "health", "w", "--since", "2h").stderr


def test_the_steps_are_those_of_the_newest_order_and_of_the_application_without_one(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = find_stack(None)
    monkeypatch.setattr(reading, "application_workflows", lambda: None)
    with pytest.raises(NotFound, match="In the folder of the application they are"):
        newest_plan_of(stack, WORKFLOW)
    monkeypatch.undo()
    own = newest_plan_of(stack, WORKFLOW)
    operator.world.submit(order("ord-1"))
    operator.world.run()
    assert newest_plan_of(stack, WORKFLOW).hash == own.hash
    assert [step for _, step in steps_of(own)] == [
        "reserve_stock",
        "charge_card",
        "create_shipment",
        "send_confirmation",
    ]


def test_what_nothing_is_known_of_is_said_in_one_sentence(operator: Operator) -> None:
    operator.world.submit(order("ord-1"))
    operator.world.run()
    result = operator.types("workflows", "health", WORKFLOW)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == (
        "CloudWatch has no figure of this stack in this period."
    )
    assert "unknown" in result.stdout
    assert " 0 " not in result.stdout
