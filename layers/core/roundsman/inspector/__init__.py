"""What an operator calls: list tasks, explain them, and repair them.

    inspector = Inspector.of_stack("shop")
    for task in inspector.tasks(Selection(state=TaskState.ARCHIVED)).tasks:
        print(task.task_id, inspector.why(task.task_id).sentence)
        inspector.resubmit(task.task_id, by="amy", reason="the carrier is back")

The package `read` finds the records, `views` explains them to people (text) and scripts (JSON),
`operate` sends commands, `bulk` sends one command to many orders, `dead_letters` reads and returns
messages, and `doctor` checks a stack. It is not part of the layer that the Lambda functions use.
"""

from typing import TYPE_CHECKING

from roundsman.lazy_imports import names_from

if TYPE_CHECKING:
    from roundsman.inspector.errors import (
        InspectorError,
        Interrupted,
        InvalidArgument,
        NotFound,
        Unconfirmed,
        sentence_of,
    )
    from roundsman.inspector.inspector import Inspector
    from roundsman.inspector.operate.commands import CommandOutcome, CommandResult
    from roundsman.inspector.operate.corrections import InputChange, InputCorrection
    from roundsman.inspector.read.agents import AgentNow
    from roundsman.inspector.read.groups import GroupNow
    from roundsman.inspector.read.queues import Queue
    from roundsman.inspector.read.selection import Page, Selection
    from roundsman.inspector.read.stack import DeployedStack
    from roundsman.inspector.views.diagnosis import Diagnosis
    from roundsman.inspector.views.stats import Stats
    from roundsman.inspector.views.task_events import Happening
    from roundsman.model.plan import Plan
    from roundsman.model.states import ProcessState, TaskState
    from roundsman.model.task import Task

_HOMES = {
    "AgentNow": "roundsman.inspector.read.agents",
    "CommandOutcome": "roundsman.inspector.operate.commands",
    "CommandResult": "roundsman.inspector.operate.commands",
    "DeployedStack": "roundsman.inspector.read.stack",
    "Diagnosis": "roundsman.inspector.views.diagnosis",
    "GroupNow": "roundsman.inspector.read.groups",
    "Happening": "roundsman.inspector.views.task_events",
    "InputChange": "roundsman.inspector.operate.corrections",
    "InputCorrection": "roundsman.inspector.operate.corrections",
    "Inspector": "roundsman.inspector.inspector",
    "InspectorError": "roundsman.inspector.errors",
    "Interrupted": "roundsman.inspector.errors",
    "InvalidArgument": "roundsman.inspector.errors",
    "NotFound": "roundsman.inspector.errors",
    "Page": "roundsman.inspector.read.selection",
    "Plan": "roundsman.model.plan",
    "ProcessState": "roundsman.model.states",
    "Queue": "roundsman.inspector.read.queues",
    "Selection": "roundsman.inspector.read.selection",
    "Stats": "roundsman.inspector.views.stats",
    "Task": "roundsman.model.task",
    "TaskState": "roundsman.model.states",
    "Unconfirmed": "roundsman.inspector.errors",
    "sentence_of": "roundsman.inspector.errors",
}

__all__ = [
    "AgentNow",
    "CommandOutcome",
    "CommandResult",
    "DeployedStack",
    "Diagnosis",
    "GroupNow",
    "Happening",
    "InputChange",
    "InputCorrection",
    "Inspector",
    "InspectorError",
    "Interrupted",
    "InvalidArgument",
    "NotFound",
    "Page",
    "Plan",
    "ProcessState",
    "Queue",
    "Selection",
    "Stats",
    "Task",
    "TaskState",
    "Unconfirmed",
    "sentence_of",
]

__getattr__ = names_from(__name__, _HOMES)
