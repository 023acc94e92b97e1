"""The settings of each function, from environment variables that the template sets."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Self

from roundsman.errors import RoundsmanError
from roundsman.model.instants import DAY, SECOND
from roundsman.model.senders import ANY_SENDER, Senders


class SettingMissing(RoundsmanError):
    """An environment variable that the template sets is missing or invalid."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    """What every function has."""

    control_table: str
    rejected_queue_url: str
    tracing_percent: float = 0.0
    """The percentage of orders that are traced; 0 for none."""

    @classmethod
    def from_env(cls, env: Mapping[str, str] = os.environ) -> Self:
        """Read the environment. Raises SettingMissing, which names the variable."""
        make: Callable[..., Self] = cls
        return make(**{one.name: _read(env, one.name) for one in fields(cls)})


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings(_Settings):
    """The settings of submission, the scheduler and the supervisor."""

    orders_table: str
    tasks_table: str
    scheduler_queue_url: str
    reply_queue_prefix: str
    """The prefix of the names of all reply queues."""
    order_retention: int | None
    """ms that an order is kept after its task has ended; None for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionSettings(EngineSettings):
    """The settings of the submission function."""

    due_shards: int
    """The number of shards of the `due` index."""
    most_receives: int
    """Deliveries after which a message is given up whose failure is its own."""
    visibility: int
    """ms that a message that was read is hidden."""
    payload_bucket: str | None = None
    """The name of the PayloadBucket; None if the stack has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidingSettings(EngineSettings):
    """The settings of the functions that decide: the scheduler and the supervisor."""

    history_table: str
    alert_topic_arn: str
    urgent_queues: bool = True
    """Whether agents read their queues of urgent requests; else these go to the normal ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerSettings(DecidingSettings):
    """The settings of the scheduler function."""

    most_receives: int
    """Deliveries after which a message is given up whose failure is its own."""
    visibility: int
    """ms that a message that was read is hidden."""
    senders: Senders = ANY_SENDER
    """The principals whose commands need no alert."""
    payload_bucket: str | None = None
    """The name of the PayloadBucket; None if the stack has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisorSettings(DecidingSettings):
    """The settings of the supervisor function."""

    due_shards: int
    """The number of shards of the `due` index."""
    interval: int
    """ms from the start of one pass to the start of the next."""
    undone_count: int
    """How many orders must be undone for the same cause before an alert; 0 for never."""
    backlog_after: int | None = None
    """How long messages must wait in a queue, in ms, before the supervisor alerts it.

    None if alarms watch the stack, and not the supervisor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings(_Settings):
    """The settings of an agent's function, except the address of its remote service."""

    reply_queue_url: str
    alert_topic_arn: str
    breaker_failures: int
    """Failed calls in a row that open the circuit."""
    breaker_recovery: int
    """ms that the circuit stays open."""
    calls_per_second: float | None
    """The rate limit for all instances together; None for no limit."""
    tenant_calls_per_second: float | None = None
    """The rate limit of the calls for each tenant; None for no limit."""
    payload_bucket: str | None = None
    """The name of the PayloadBucket; None if the stack has none."""


def _read(env: Mapping[str, str], setting: str) -> object:
    variable, read = VARIABLES.get(setting, (setting.upper(), _text))
    return read(env, variable)


def _text(env: Mapping[str, str], name: str) -> str:
    value = env.get(name, "")
    if not value:
        raise SettingMissing(f"the environment variable {name} is not set; the template sets it")
    return value


def _optional_text(env: Mapping[str, str], name: str) -> str | None:
    """A text; None if the variable is empty or not set."""
    return env.get(name) or None


def _senders(env: Mapping[str, str], name: str) -> Senders:
    """The ids of operators, a list with commas, and of the roles; none if empty or not set."""
    operators = frozenset(one.strip() for one in env.get(name, "").split(",") if one.strip())
    parts = ("SUBMISSION", "SUPERVISOR", "CONSOLE")
    return Senders(operators, *(env.get(f"{part}_ROLE_ID") or None for part in parts))


def _number(env: Mapping[str, str], name: str, *, least: int = 1) -> int:
    value = _text(env, name)
    if not value.isdecimal() or int(value) < least:
        above = f" above {least - 1}" if least else ""
        raise SettingMissing(f"the environment variable {name} must be a whole number{above}")
    return int(value)


def _seconds(env: Mapping[str, str], name: str) -> int:
    """A number of seconds in ms."""
    return _number(env, name) * SECOND


def _flag(env: Mapping[str, str], name: str) -> bool:
    """True or false; true if the variable is empty or not set."""
    value = env.get(name) or "true"
    if value not in ("true", "false"):
        raise SettingMissing(f"the environment variable {name} must be true or false")
    return value == "true"


def _optional_seconds(env: Mapping[str, str], name: str) -> int | None:
    """A number of seconds in ms; None if the variable is empty or not set."""
    return _seconds(env, name) if env.get(name) else None


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


VARIABLES: Mapping[str, tuple[str, Callable[[Mapping[str, str], str], object]]] = {
    "backlog_after": ("BACKLOG_ALERT_SECONDS", _optional_seconds),
    "breaker_failures": ("BREAKER_FAILURES", _number),
    "breaker_recovery": ("BREAKER_RECOVERY_SECONDS", _seconds),
    "calls_per_second": ("CALLS_PER_SECOND", _rate),
    "due_shards": ("DUE_SHARDS", _number),
    "interval": ("SUPERVISOR_INTERVAL_SECONDS", _seconds),
    "most_receives": ("MAX_RECEIVE_COUNT", _number),
    "order_retention": ("ORDER_RETENTION_DAYS", _days),
    "payload_bucket": ("PAYLOAD_BUCKET", _optional_text),
    "senders": ("OPERATOR_ROLE_IDS", _senders),
    "tenant_calls_per_second": ("TENANT_CALLS_PER_SECOND", _rate),
    "tracing_percent": ("TRACING_SAMPLE_PERCENT", _percent),
    "undone_count": ("UNDONE_ALERT_COUNT", partial(_number, least=0)),
    "urgent_queues": ("URGENT_QUEUES", _flag),
    "visibility": ("VISIBILITY_SECONDS", _seconds),
}
"""The variable of each setting, and how it is read; of any other, a text in the variable of the
setting's name."""
