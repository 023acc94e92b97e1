"""The functions' settings, read from their environment; the template sets every one of them."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from roundsman.errors import RoundsmanError
from roundsman.model.instants import SECOND


class SettingMissing(RoundsmanError):
    """A variable that the template should have set is not there, or is not what it should be."""


@dataclass(frozen=True, slots=True)
class SubmissionSettings:
    """What the submission function needs to know."""

    orders_table: str
    tasks_table: str
    control_table: str
    scheduler_queue_url: str
    rejected_queue_url: str
    reply_queue_prefix: str
    due_shards: int

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> "SubmissionSettings":
        """Raises SettingMissing, naming the variable."""
        return cls(
            orders_table=_text(env, "ORDERS_TABLE"),
            tasks_table=_text(env, "TASKS_TABLE"),
            control_table=_text(env, "CONTROL_TABLE"),
            scheduler_queue_url=_text(env, "SCHEDULER_QUEUE_URL"),
            rejected_queue_url=_text(env, "REJECTED_QUEUE_URL"),
            reply_queue_prefix=_text(env, "REPLY_QUEUE_PREFIX"),
            due_shards=_number(env, "DUE_SHARDS"),
        )


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """What the scheduler function needs to know. Queue URLs are by agent, then priority."""

    orders_table: str
    tasks_table: str
    control_table: str
    history_table: str
    scheduler_queue_url: str
    rejected_queue_url: str
    alert_topic_arn: str
    reply_queue_prefix: str
    request_queue_urls: Mapping[str, Mapping[str, str]]

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> "SchedulerSettings":
        """Raises SettingMissing, naming the variable."""
        return cls(
            orders_table=_text(env, "ORDERS_TABLE"),
            tasks_table=_text(env, "TASKS_TABLE"),
            control_table=_text(env, "CONTROL_TABLE"),
            history_table=_text(env, "HISTORY_TABLE"),
            scheduler_queue_url=_text(env, "SCHEDULER_QUEUE_URL"),
            rejected_queue_url=_text(env, "REJECTED_QUEUE_URL"),
            alert_topic_arn=_text(env, "ALERT_TOPIC_ARN"),
            reply_queue_prefix=_text(env, "REPLY_QUEUE_PREFIX"),
            request_queue_urls=_queues(env, "REQUEST_QUEUE_URLS"),
        )


@dataclass(frozen=True, slots=True)
class SupervisorSettings:
    """What the supervisor function needs to know. The interval is in ms.

    `undone_count` orders undone alike are alerted; 0: they never are.
    """

    orders_table: str
    tasks_table: str
    control_table: str
    history_table: str
    scheduler_queue_url: str
    alert_topic_arn: str
    reply_queue_prefix: str
    due_shards: int
    interval: int
    undone_count: int

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> "SupervisorSettings":
        """Raises SettingMissing, naming the variable."""
        return cls(
            orders_table=_text(env, "ORDERS_TABLE"),
            tasks_table=_text(env, "TASKS_TABLE"),
            control_table=_text(env, "CONTROL_TABLE"),
            history_table=_text(env, "HISTORY_TABLE"),
            scheduler_queue_url=_text(env, "SCHEDULER_QUEUE_URL"),
            alert_topic_arn=_text(env, "ALERT_TOPIC_ARN"),
            reply_queue_prefix=_text(env, "REPLY_QUEUE_PREFIX"),
            due_shards=_number(env, "DUE_SHARDS"),
            interval=_number(env, "SUPERVISOR_INTERVAL_SECONDS") * SECOND,
            undone_count=_number(env, "UNDONE_ALERT_COUNT", least=0),
        )


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """What an agent's function needs to know, besides the address of its remote service.

    Its circuit opens after `breaker_failures` failed calls in a row, for `breaker_recovery` ms.
    `calls_per_second` is for all instances together; None where there is no limit.
    """

    control_table: str
    reply_queue_url: str
    rejected_queue_url: str
    alert_topic_arn: str
    breaker_failures: int
    breaker_recovery: int
    calls_per_second: float | None

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> "AgentSettings":
        """Raises SettingMissing, naming the variable."""
        return cls(
            control_table=_text(env, "CONTROL_TABLE"),
            reply_queue_url=_text(env, "REPLY_QUEUE_URL"),
            rejected_queue_url=_text(env, "REJECTED_QUEUE_URL"),
            alert_topic_arn=_text(env, "ALERT_TOPIC_ARN"),
            breaker_failures=_number(env, "BREAKER_FAILURES"),
            breaker_recovery=_number(env, "BREAKER_RECOVERY_SECONDS") * SECOND,
            calls_per_second=_rate(env, "CALLS_PER_SECOND"),
        )


def _text(env: Mapping[str, str], name: str) -> str:
    value = env.get(name, "")
    if not value:
        raise SettingMissing(f"the environment variable {name} is not set; the template sets it")
    return value


def _number(env: Mapping[str, str], name: str, *, least: int = 1) -> int:
    value = _text(env, name)
    if not value.isdecimal() or int(value) < least:
        above = f" above {least - 1}" if least else ""
        raise SettingMissing(f"the environment variable {name} must be a whole number{above}")
    return int(value)


def _rate(env: Mapping[str, str], name: str) -> float | None:
    """A number above 0; 0, or nothing at all, is no limit."""
    value = env.get(name, "") or "0"
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,3})?", value):
        raise SettingMissing(f"the environment variable {name} must be a number such as 10 or 0.5")
    return float(value) or None


def _queues(env: Mapping[str, str], name: str) -> dict[str, dict[str, str]]:
    try:
        value = json.loads(_text(env, name))
        return {
            str(agent): {str(priority): str(url) for priority, url in urls.items()}
            for agent, urls in value.items()
        }
    except (ValueError, AttributeError) as error:
        raise SettingMissing(
            f'the environment variable {name} must be JSON: {{"<agent>": {{"normal": "<url>"}}}}'
        ) from error
