"""The priority of a task."""

from enum import StrEnum


class Priority(StrEnum):
    """The priority of a task. An agent has one request queue for each priority."""

    NORMAL = "normal"
    URGENT = "urgent"
