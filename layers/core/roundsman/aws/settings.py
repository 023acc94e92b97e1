"""The settings of each function, from environment variables that the template sets."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

from roundsman.errors import RoundsmanError
from roundsman.model.instants import DAY, SECOND
from roundsman.model.senders import ANY_SENDER, Senders


class SettingMissing(RoundsmanError):
    """An environment variable that the template sets is missing or invalid."""


@dataclass(frozen=True, slots=True)
class SubmissionSettings:
    """The settings of the submission function."""

    orders_table: str
    tasks_table: str
    control_table: str
    scheduler_queue_url: str
    rejected_queue_url: str
    reply_queue_prefix: str
    """The prefix of the names of all reply queues."""
    due_shards: int
    """The number of shards of the `due` index."""
    order_retention: int | None
    """ms that an order is kept after its task has ended; None for ever."""
    most_receives: int
    """Deliveries after which a message is given up whose failure is its own."""
    visibility: int
    """ms that a message that was read is hidden."""
    tracing_percent: float = 0.0
    """The percentage of orders that are traced; 0 for none."""

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> "SubmissionSettings":
        """Read the environment. Raises SettingMissing, which names the variable."""
        return cls(
            tracing_percent=_percent(env, "TRACING_SAMPLE_PERCENT"),
            orders_table=_text(env, "ORDERS_TABLE"),
            tasks_table=_text(env, "TASKS_TABLE"),
            control_table=_text(env, "CONTROL_TABLE"),
            scheduler_queue_url=_text(env, "SCHEDULER_QUEUE_URL"),
            rejected_queue_url=_text(env, "REJECTED_QUEUE_URL"),
            reply_queue_prefix=_text(env, "REPLY_QUEUE_PREFIX"),
            due_shards=_number(env, "DUE_SHARDS"),
            order_retention=_days(env, "ORDER_RETENTION_DAYS"),
            most_receives=_number(env, "MAX_RECEIVE_COUNT"),
            visibility=_number(env, "VISIBILITY_SECONDS") * SECOND,
        )


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """The settings of the scheduler function."""

    orders_table: str
    tasks_table: str
    control_table: str
    history_table: str
    scheduler_queue_url: str
    rejected_queue_url: str
    alert_topic_arn: str
    reply_queue_prefix: str
    """The prefix of the names of all reply queues."""
    order_retention: int | None
    """ms that an order is kept after its task has ended; None for ever."""
    most_receives: int
    """Deliveries after which a message is given up whose failure is its own."""
    visibility: int
    """ms that a message that was read is hidden."""
    senders: Senders = ANY_SENDER
    """The principals whose commands need no alert."""
    urgent_queues: bool = True
    """Whether agents read their queues of urgent requests; else these go to the normal ones."""
    tracing_percent: float = 0.0
    """The percentage of orders that are traced; 0 for none."""

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> "SchedulerSettings":
        """Read the environment. Raises SettingMissing, which names the variable."""
        return cls(
            tracing_percent=_percent(env, "TRACING_SAMPLE_PERCENT"),
            orders_table=_text(env, "ORDERS_TABLE"),
            tasks_table=_text(env, "TASKS_TABLE"),
            control_table=_text(env, "CONTROL_TABLE"),
            history_table=_text(env, "HISTORY_TABLE"),
            scheduler_queue_url=_text(env, "SCHEDULER_QUEUE_URL"),
            rejected_queue_url=_text(env, "REJECTED_QUEUE_URL"),
            alert_topic_arn=_text(env, "ALERT_TOPIC_ARN"),
            reply_queue_prefix=_text(env, "REPLY_QUEUE_PREFIX"),
            order_retention=_days(env, "ORDER_RETENTION_DAYS"),
            most_receives=_number(env, "MAX_RECEIVE_COUNT"),
            visibility=_number(env, "VISIBILITY_SECONDS") * SECOND,
            senders=Senders(
                _ids(env, "OPERATOR_ROLE_IDS"),
                env.get("SUBMISSION_ROLE_ID") or None,
                env.get("SUPERVISOR_ROLE_ID") or None,
                env.get("CONSOLE_ROLE_ID") or None,
            ),
            urgent_queues=_flag(env, "URGENT_QUEUES", otherwise=True),
        )


@dataclass(frozen=True, slots=True)
class SupervisorSettings:
    """The settings of the supervisor function."""

    orders_table: str
    tasks_table: str
    control_table: str
    history_table: str
    scheduler_queue_url: str
    rejected_queue_url: str
    alert_topic_arn: str
    reply_queue_prefix: str
    """The prefix of the names of all reply queues."""
    due_shards: int
    """The number of shards of the `due` index."""
    interval: int
    """ms from the start of one pass to the start of the next."""
    undone_count: int
    """How many orders must be undone for the same cause before an alert; 0 for never."""
    order_retention: int | None
    """ms that an order is kept after its task has ended; None for ever."""
    tracing_percent: float = 0.0
    """The percentage of orders that are traced; 0 for none."""
    urgent_queues: bool = True
    """Whether agents read their queues of urgent requests."""
    backlog_after: int | None = None
    """How long messages must wait in a queue, in ms, before the supervisor alerts it.

    None if alarms watch the stack, and not the supervisor."""

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> "SupervisorSettings":
        """Read the environment. Raises SettingMissing, which names the variable."""
        return cls(
            tracing_percent=_percent(env, "TRACING_SAMPLE_PERCENT"),
            orders_table=_text(env, "ORDERS_TABLE"),
            tasks_table=_text(env, "TASKS_TABLE"),
            control_table=_text(env, "CONTROL_TABLE"),
            history_table=_text(env, "HISTORY_TABLE"),
            scheduler_queue_url=_text(env, "SCHEDULER_QUEUE_URL"),
            rejected_queue_url=_text(env, "REJECTED_QUEUE_URL"),
            alert_topic_arn=_text(env, "ALERT_TOPIC_ARN"),
            reply_queue_prefix=_text(env, "REPLY_QUEUE_PREFIX"),
            due_shards=_number(env, "DUE_SHARDS"),
            interval=_number(env, "SUPERVISOR_INTERVAL_SECONDS") * SECOND,
            undone_count=_number(env, "UNDONE_ALERT_COUNT", least=0),
            urgent_queues=_flag(env, "URGENT_QUEUES", otherwise=True),
            backlog_after=_optional_seconds(env, "BACKLOG_ALERT_SECONDS"),
            order_retention=_days(env, "ORDER_RETENTION_DAYS"),
        )


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """The settings of an agent's function, except the address of its remote service."""

    control_table: str
    reply_queue_url: str
    rejected_queue_url: str
    alert_topic_arn: str
    breaker_failures: int
    """Failed calls in a row that open the circuit."""
    breaker_recovery: int
    """ms that the circuit stays open."""
    calls_per_second: float | None
    """The rate limit for all instances together; None for no limit."""
    tracing_percent: float = 0.0
    """The percentage of orders that are traced; 0 for none."""

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> "AgentSettings":
        """Read the environment. Raises SettingMissing, which names the variable."""
        return cls(
            tracing_percent=_percent(env, "TRACING_SAMPLE_PERCENT"),
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


def _ids(env: Mapping[str, str], name: str) -> frozenset[str]:
    """The ids in a list with commas; none if the variable is empty or not set."""
    return frozenset(one.strip() for one in env.get(name, "").split(",") if one.strip())


def _number(env: Mapping[str, str], name: str, *, least: int = 1) -> int:
    value = _text(env, name)
    if not value.isdecimal() or int(value) < least:
        above = f" above {least - 1}" if least else ""
        raise SettingMissing(f"the environment variable {name} must be a whole number{above}")
    return int(value)


def _flag(env: Mapping[str, str], name: str, *, otherwise: bool) -> bool:
    """True or false; `otherwise` if the variable is empty or not set."""
    value = env.get(name) or str(otherwise).lower()
    if value not in ("true", "false"):
        raise SettingMissing(f"the environment variable {name} must be true or false")
    return value == "true"


def _optional_seconds(env: Mapping[str, str], name: str) -> int | None:
    """A number of seconds in ms; None if the variable is empty or not set."""
    return _number(env, name) * SECOND if env.get(name) else None


def _days(env: Mapping[str, str], name: str) -> int | None:
    """A number of days in ms; None (for ever) if the variable is 0."""
    return _number(env, name, least=0) * DAY or None


def _rate(env: Mapping[str, str], name: str) -> float | None:
    """A number above 0; None (no limit) if the variable is 0, empty or not set."""
    value = env.get(name, "") or "0"
    if not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,3})?", value):
        raise SettingMissing(f"the environment variable {name} must be a number such as 10 or 0.5")
    return float(value) or None


def _percent(env: Mapping[str, str], name: str) -> float:
    """A number from 0 to 100; 0 if the variable is empty or not set."""
    found = _rate(env, name) or 0.0
    if found > 100:
        raise SettingMissing(f"the environment variable {name} must be a number from 0 to 100")
    return found
