import json
from typing import Never

import pytest

from roundsman.aws.observability import (
    count,
    count_by_workflow,
    log_keys,
    logger,
    measure,
    observed,
    where,
)


@pytest.fixture(autouse=True)
def service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "payment")


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_keys_are_on_every_line_inside_and_on_none_after(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with log_keys(task_id="ord-1", step="charge_card", attempt=2):
        logger().info("inside")
    logger().info("after")
    inside, after = lines(capsys)
    assert (inside["task_id"], inside["step"], inside["attempt"]) == ("ord-1", "charge_card", 2)
    assert (inside["service"], inside["message"]) == ("payment", "inside")
    assert not {"task_id", "step", "attempt"} & after.keys()


def test_keys_are_gone_also_when_the_work_inside_raised(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyError), log_keys(task_id="ord-1"):
        raise KeyError
    logger().info("after")
    assert "task_id" not in lines(capsys)[0]


def test_a_key_that_is_set_inside_another_is_again_what_it_was_outside(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with log_keys(task_id="ord-1", step="reserve_stock"):
        with log_keys(step="charge_card", attempt=1):
            pass
        logger().info("outside")
    [outside] = lines(capsys)
    assert (outside["task_id"], outside["step"]) == ("ord-1", "reserve_stock")
    assert "attempt" not in outside


def test_metrics_are_sent_once_when_the_handler_ends(capsys: pytest.CaptureFixture[str]) -> None:
    @observed
    def handler(name: str) -> str:
        count(name)
        count(name, 2)
        measure("LatenessMs", 412)
        return "done"

    assert handler("StepAttempts") == "done"
    [sent] = lines(capsys)
    assert (sent["StepAttempts"], sent["LatenessMs"], sent["service"]) == ([1, 2], [412], "payment")
    assert sent["_aws"]["CloudWatchMetrics"] == [  # type: ignore[index]  # parsed JSON
        {
            "Namespace": "Roundsman",
            "Dimensions": [["service"]],
            "Metrics": [
                {"Name": "StepAttempts", "Unit": "Count"},
                {"Name": "LatenessMs", "Unit": "Milliseconds"},
            ],
        }
    ]
    handler("Other")
    assert "StepAttempts" not in lines(capsys)[0]


def test_metrics_are_sent_also_when_the_handler_raises(capsys: pytest.CaptureFixture[str]) -> None:
    @observed
    def handler() -> Never:
        count("StepAttempts")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        handler()
    assert lines(capsys)[0]["StepAttempts"] == [1]


def test_a_handler_without_metrics_sends_none(capsys: pytest.CaptureFixture[str]) -> None:
    observed(lambda: None)()
    assert not lines(capsys)


def test_an_exception_is_logged_by_type_and_place_without_its_text() -> None:
    try:
        try:
            int("tok_visa")
        except ValueError as cause:
            raise KeyError("tok_visa") from cause
    except KeyError as error:
        found = where(error)
    assert found["error_type"] == "KeyError from ValueError"
    assert "test_observability.py" in found["error_at"][0]
    assert "tok_visa" not in json.dumps(found)


def test_a_number_of_one_workflow_is_sent_by_itself_and_the_others_keep_their_dimension(
    capsys: pytest.CaptureFixture[str],
) -> None:
    @observed
    def handler() -> None:
        count("TasksCompleted")
        count_by_workflow("TaskDecisions", "gift", 6)
        count_by_workflow("TaskDecisions", "order_fulfilment", 7)

    handler()
    gift, other, rest = lines(capsys)
    assert (gift["workflow"], gift["TaskDecisions"], gift["service"]) == ("gift", [6], "payment")
    assert (other["workflow"], other["TaskDecisions"]) == ("order_fulfilment", [7])
    assert "workflow" not in rest
