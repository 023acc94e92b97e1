import json
import logging
from datetime import datetime, timedelta
from typing import Never

import pytest

from roundsman.aws.observability import (
    count,
    log_keys,
    log_measured,
    logger,
    measure,
    observed,
    step_keys,
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
    assert inside["message"] == "inside"
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


def test_a_line_about_a_success_has_its_message_and_no_more(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_X_AMZN_TRACE_ID", "Root=1-67890abc-def;Sampled=0")  # as Lambda does
    with log_keys(task_id="ord-1"):
        logger().info("claimed", extra={"step": "charge_card", "agent": None})
    assert (
        capsys.readouterr().out == '{"message":"claimed","task_id":"ord-1","step":"charge_card"}\n'
    )


@pytest.mark.parametrize("level", ["warning", "error"])
def test_a_line_of_what_goes_wrong_says_how_bad_it_is_and_where(
    level: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a timestamp, without which Lambda takes it for INFO."""
    getattr(logger(), level)("not handled")
    [line] = lines(capsys)
    assert datetime.fromisoformat(str(line.pop("timestamp"))).utcoffset() == timedelta(0)
    assert line == {"level": level.upper(), "message": "not handled", "service": "payment"}


@pytest.mark.parametrize(
    ("chosen", "let_through", "written"),
    [
        ("DEBUG", "DEBUG", ["DEBUG", None, "ERROR"]),
        ("INFO", "INFO", [None, "ERROR"]),
        ("WARNING", "INFO", ["ERROR"]),
        ("ERROR", "INFO", ["ERROR"]),
    ],
)
@pytest.mark.filterwarnings("error")
def test_functions_write_from_the_level_that_was_chosen_whatever_lambda_lets_through(
    chosen: str,
    let_through: str,
    written: list[str | None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", f"writes-{chosen}")  # a logger of its own
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", chosen)
    monkeypatch.setenv("AWS_LAMBDA_LOG_LEVEL", let_through)
    logger().debug("one")
    logger().info("two")
    logger().error("three")
    assert [line.get("level") for line in lines(capsys)] == written


def test_metrics_are_sent_whatever_level_was_chosen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "writes-nothing")
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "ERROR")
    observed(lambda: count("StepAttempts"))()
    [sent] = lines(capsys)
    assert sent["StepAttempts"] == [1]
    assert "level" not in sent, "Lambda takes it for INFO, and lets that through"


def test_libraries_do_not_speak_where_lambda_would_let_them() -> None:
    """At DEBUG botocore logs each request as a whole, with what was ordered."""
    root = logging.getLogger()
    before = root.level
    try:
        root.setLevel(logging.DEBUG)  # as Lambda does before it imports the function
        observed(lambda: None)
        assert not logging.getLogger("botocore.endpoint").isEnabledFor(logging.INFO)
        assert logging.getLogger("botocore.endpoint").isEnabledFor(logging.WARNING)
    finally:
        root.setLevel(before)


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
                {"Name": "StepAttempts"},
                {"Name": "LatenessMs"},
            ],
        }
    ]
    handler("Other")
    assert "StepAttempts" not in lines(capsys)[0]


def test_what_alarms_watch_over_all_functions_is_sent_without_a_dimension_too(
    capsys: pytest.CaptureFixture[str],
) -> None:
    @observed
    def handler() -> None:
        count("HandlerErrors")
        count("StepAttempts")
        count("TasksArchived", 0)

    handler()
    [sent] = lines(capsys)
    of_the_function, of_all = sent["_aws"]["CloudWatchMetrics"]  # type: ignore[index]
    assert of_the_function["Dimensions"] == [["service"]]
    assert of_all == {
        "Namespace": "Roundsman",
        "Dimensions": [[]],
        "Metrics": [{"Name": "HandlerErrors"}],
    }
    assert sent["HandlerErrors"] == [1]
    observed(lambda: count("StepAttempts"))()
    [quiet] = lines(capsys)
    assert len(quiet["_aws"]["CloudWatchMetrics"]) == 1  # type: ignore[index]


def test_metrics_name_the_stack_by_their_namespace(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for stack in ("shop", "stage"):
        monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", f"Roundsman/{stack}")
        observed(lambda: count("HandlerErrors"))()
        [sent] = lines(capsys)
        groups = sent["_aws"]["CloudWatchMetrics"]  # type: ignore[index]
        assert [group["Namespace"] for group in groups] == [f"Roundsman/{stack}"] * 2


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


def test_a_measured_line_names_the_service_which_its_metric_needs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with log_keys(task_id="ord-1"):
        log_measured("attempted", {"took_ms": 12})
        log_measured("decided", {"ms": 30}, with_service=False)
    log_measured("silent", {"took_ms": 5}, level=logging.WARNING)
    *written, last = capsys.readouterr().out.splitlines()
    assert written == [
        '{"message":"attempted","service":"payment","task_id":"ord-1","took_ms":12}',
        '{"message":"decided","task_id":"ord-1","ms":30}',
    ]
    assert last.startswith('{"level":"WARNING","message":"silent","service":"payment","took_ms":5,')


def test_a_measured_line_is_written_whatever_level_was_chosen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "measures-only")
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "ERROR")
    log_measured("attempted", {"took_ms": 12})
    logger().info("attempted")
    [line] = lines(capsys)
    assert line == {"message": "attempted", "service": "measures-only", "took_ms": 12}


def test_the_items_of_a_fan_out_have_the_name_of_their_step() -> None:
    assert step_keys("pick") == {"step": "pick"}
    assert step_keys("pick[3]") == {"step": "pick", "item": 3}
    assert step_keys("book_leg[leg-3]") == {"step": "book_leg", "item": "leg-3"}


def test_a_line_never_gets_so_full_that_it_is_sent_in_another_form(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """CloudWatch takes a hundred values; an alarm over a metric with two units is unpredictable."""

    @observed
    def handler() -> None:
        for n in range(250):
            count("TasksArchived")
            measure("LatenessMs", n)

    handler()
    sent = lines(capsys)
    groups = [line["_aws"]["CloudWatchMetrics"][0] for line in sent]  # type: ignore[index]
    assert not [metric for group in groups for metric in group["Metrics"] if "Unit" in metric]
    values = {
        name: [value for line in sent for value in line.get(name, [])]  # type: ignore[attr-defined]
        for name in ("TasksArchived", "LatenessMs")
    }
    whole = list(range(250))
    assert values == {"TasksArchived": [1] * 250, "LatenessMs": whole}
    assert max(len(found) for line in sent for found in line.values() if type(found) is list) < 100
