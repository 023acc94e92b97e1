"""Settings: what the template sets is read, and what it forgot is named."""

from typing import Protocol

import pytest

from roundsman.aws.settings import (
    AgentSettings,
    SchedulerSettings,
    SettingMissing,
    SubmissionSettings,
    SupervisorSettings,
)
from roundsman.model.senders import ANY_SENDER, Senders

URL = "https://sqs.eu-west-1.amazonaws.com/123456789012/stack"

SUBMISSION = {
    "ORDERS_TABLE": "orders",
    "TASKS_TABLE": "tasks",
    "CONTROL_TABLE": "control",
    "SCHEDULER_QUEUE_URL": f"{URL}-s",
    "REJECTED_QUEUE_URL": f"{URL}-r",
    "REPLY_QUEUE_PREFIX": "stack-reply-",
    "DUE_SHARDS": "16",
    "ORDER_RETENTION_DAYS": "0",
    "MAX_RECEIVE_COUNT": "5",
    "VISIBILITY_SECONDS": "60",
}
SCHEDULER = {
    "ORDERS_TABLE": "orders",
    "TASKS_TABLE": "tasks",
    "CONTROL_TABLE": "control",
    "HISTORY_TABLE": "history",
    "SCHEDULER_QUEUE_URL": f"{URL}-s",
    "REJECTED_QUEUE_URL": f"{URL}-r",
    "ALERT_TOPIC_ARN": "arn:aws:sns:eu-west-1:123456789012:alerts",
    "REPLY_QUEUE_PREFIX": "stack-reply-",
    "ORDER_RETENTION_DAYS": "30",
    "MAX_RECEIVE_COUNT": "7",
    "VISIBILITY_SECONDS": "90",
}
SUPERVISOR = {
    "ORDERS_TABLE": "orders",
    "TASKS_TABLE": "tasks",
    "CONTROL_TABLE": "control",
    "HISTORY_TABLE": "history",
    "SCHEDULER_QUEUE_URL": f"{URL}-s",
    "REJECTED_QUEUE_URL": f"{URL}-r",
    "ALERT_TOPIC_ARN": "arn:aws:sns:eu-west-1:123456789012:alerts",
    "REPLY_QUEUE_PREFIX": "stack-reply-",
    "DUE_SHARDS": "16",
    "SUPERVISOR_INTERVAL_SECONDS": "20",
    "UNDONE_ALERT_COUNT": "0",
    "ORDER_RETENTION_DAYS": "1",
}
AGENT = {
    "CONTROL_TABLE": "control",
    "REPLY_QUEUE_URL": f"{URL}-a",
    "REJECTED_QUEUE_URL": f"{URL}-r",
    "ALERT_TOPIC_ARN": "arn:aws:sns:eu-west-1:123456789012:alerts",
    "BREAKER_FAILURES": "5",
    "BREAKER_RECOVERY_SECONDS": "30",
}


class FromEnv(Protocol):
    def from_env(self, env: dict[str, str]) -> object: ...


FUNCTIONS: dict[str, tuple[FromEnv, dict[str, str]]] = {
    "submission": (SubmissionSettings, SUBMISSION),
    "scheduler": (SchedulerSettings, SCHEDULER),
    "supervisor": (SupervisorSettings, SUPERVISOR),
    "agent": (AgentSettings, AGENT),
}

MISSING = [(function, name) for function, (_, env) in FUNCTIONS.items() for name in env]


def test_the_senders_of_commands_are_read_from_the_environment() -> None:
    assert SchedulerSettings.from_env(SCHEDULER).senders == ANY_SENDER
    ids = {
        "OPERATOR_ROLE_IDS": "AROAOPS,AIDABEN",
        "SUBMISSION_ROLE_ID": "AROASUBMISSION",
        "SUPERVISOR_ROLE_ID": "AROASUPERVISOR",
        "CONSOLE_ROLE_ID": "AROACONSOLE",
    }
    assert SchedulerSettings.from_env(SCHEDULER | ids).senders == Senders(
        frozenset({"AROAOPS", "AIDABEN"}), "AROASUBMISSION", "AROASUPERVISOR", "AROACONSOLE"
    )
    empty = dict.fromkeys(ids, "")
    assert SchedulerSettings.from_env(SCHEDULER | empty).senders == ANY_SENDER


def test_each_variable_becomes_the_setting_of_its_name() -> None:
    assert SubmissionSettings.from_env(SUBMISSION) == SubmissionSettings(
        orders_table="orders",
        tasks_table="tasks",
        control_table="control",
        scheduler_queue_url=f"{URL}-s",
        rejected_queue_url=f"{URL}-r",
        reply_queue_prefix="stack-reply-",
        due_shards=16,
        order_retention=None,
        most_receives=5,
        visibility=60_000,
    )
    assert SchedulerSettings.from_env(SCHEDULER) == SchedulerSettings(
        orders_table="orders",
        tasks_table="tasks",
        control_table="control",
        history_table="history",
        scheduler_queue_url=f"{URL}-s",
        rejected_queue_url=f"{URL}-r",
        alert_topic_arn="arn:aws:sns:eu-west-1:123456789012:alerts",
        reply_queue_prefix="stack-reply-",
        order_retention=30 * 86_400_000,
        most_receives=7,
        visibility=90_000,
    )
    assert SupervisorSettings.from_env(SUPERVISOR) == SupervisorSettings(
        orders_table="orders",
        tasks_table="tasks",
        control_table="control",
        history_table="history",
        scheduler_queue_url=f"{URL}-s",
        rejected_queue_url=f"{URL}-r",
        alert_topic_arn="arn:aws:sns:eu-west-1:123456789012:alerts",
        reply_queue_prefix="stack-reply-",
        due_shards=16,
        interval=20_000,
        undone_count=0,
        order_retention=86_400_000,
    )
    assert AgentSettings.from_env(AGENT) == AgentSettings(
        control_table="control",
        reply_queue_url=f"{URL}-a",
        rejected_queue_url=f"{URL}-r",
        alert_topic_arn="arn:aws:sns:eu-west-1:123456789012:alerts",
        breaker_failures=5,
        breaker_recovery=30_000,
        calls_per_second=None,
    )


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(
    ("value", "percent"), [(None, 0.0), ("", 0.0), ("0", 0.0), ("0.001", 0.001), ("100", 100.0)]
)
def test_the_percentage_of_traced_orders_is_0_unless_the_template_says_more(
    function: str, value: str | None, percent: float
) -> None:
    settings, env = FUNCTIONS[function]
    found = settings.from_env(env if value is None else {**env, "TRACING_SAMPLE_PERCENT": value})
    assert getattr(found, "tracing_percent") == percent  # noqa: B009  # all four have it


@pytest.mark.parametrize("value", ["100.001", "101", "-1", "all", "1e2"])
def test_a_percentage_that_is_none_is_refused_by_its_name(value: str) -> None:
    for settings, env in FUNCTIONS.values():
        with pytest.raises(SettingMissing, match="TRACING_SAMPLE_PERCENT must be a number"):
            settings.from_env({**env, "TRACING_SAMPLE_PERCENT": value})


@pytest.mark.parametrize(("function", "name"), MISSING)
@pytest.mark.parametrize("empty", [False, True])
def test_a_variable_that_is_missing_or_empty_is_named(
    function: str, name: str, empty: bool
) -> None:
    settings, env = FUNCTIONS[function]
    left = {**env, name: ""} if empty else {key: env[key] for key in env if key != name}
    with pytest.raises(SettingMissing, match=rf"{name} is not set"):
        settings.from_env(left)


@pytest.mark.parametrize("value", ["-1", "1.5", "a day"])
def test_a_retention_is_a_whole_number_of_days(value: str) -> None:
    with pytest.raises(SettingMissing, match=r"ORDER_RETENTION_DAYS must be a whole number$"):
        SchedulerSettings.from_env({**SCHEDULER, "ORDER_RETENTION_DAYS": value})


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "many", " 16", "1e3", "²"])
def test_a_number_that_is_none_is_refused_by_its_name(value: str) -> None:
    with pytest.raises(SettingMissing, match="DUE_SHARDS must be a whole number above 0"):
        SubmissionSettings.from_env({**SUBMISSION, "DUE_SHARDS": value})


@pytest.mark.parametrize(
    ("value", "rate"), [("0", None), ("", None), ("0.0", None), ("10", 10.0), ("0.5", 0.5)]
)
def test_a_rate_may_be_a_decimal_number_and_0_is_no_limit(value: str, rate: float | None) -> None:
    found = AgentSettings.from_env({**AGENT, "CALLS_PER_SECOND": value})
    assert found.calls_per_second == rate


@pytest.mark.parametrize("value", ["-1", "many", "1e3", "nan", " 1", "1.", ".5", "1/s"])
def test_a_rate_that_is_no_number_is_refused(value: str) -> None:
    with pytest.raises(SettingMissing, match="CALLS_PER_SECOND must be a number"):
        AgentSettings.from_env({**AGENT, "CALLS_PER_SECOND": value})
