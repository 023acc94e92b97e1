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
    from roundsman.definition.plan import Plan
    from roundsman.model.states import ProcessState, TaskState
    from roundsman.model.task import Task
    from roundsman_console.inspector.errors import (
        InspectorError,
        Interrupted,
        InvalidArgument,
        NotFound,
        Unconfirmed,
        sentence_of,
    )
    from roundsman_console.inspector.inspector import Inspector
    from roundsman_console.inspector.operate.commands import CommandOutcome, CommandResult
    from roundsman_console.inspector.operate.corrections import InputChange, InputCorrection
    from roundsman_console.inspector.read.agents import AgentNow
    from roundsman_console.inspector.read.groups import GroupNow
    from roundsman_console.inspector.read.queues import Queue
    from roundsman_console.inspector.read.selection import Page, Selection
    from roundsman_console.inspector.read.stack import DeployedStack
    from roundsman_console.inspector.views.diagnosis import Diagnosis
    from roundsman_console.inspector.views.stats import Stats
    from roundsman_console.inspector.views.task_events import Happening

_HOMES = {
    "AgentNow": "roundsman_console.inspector.read.agents",
    "CommandOutcome": "roundsman_console.inspector.operate.commands",
    "CommandResult": "roundsman_console.inspector.operate.commands",
    "DeployedStack": "roundsman_console.inspector.read.stack",
    "Diagnosis": "roundsman_console.inspector.views.diagnosis",
    "GroupNow": "roundsman_console.inspector.read.groups",
    "Happening": "roundsman_console.inspector.views.task_events",
    "InputChange": "roundsman_console.inspector.operate.corrections",
    "InputCorrection": "roundsman_console.inspector.operate.corrections",
    "Inspector": "roundsman_console.inspector.inspector",
    "InspectorError": "roundsman_console.inspector.errors",
    "Interrupted": "roundsman_console.inspector.errors",
    "InvalidArgument": "roundsman_console.inspector.errors",
    "NotFound": "roundsman_console.inspector.errors",
    "Page": "roundsman_console.inspector.read.selection",
    "Plan": "roundsman.definition.plan",
    "ProcessState": "roundsman.model.states",
    "Queue": "roundsman_console.inspector.read.queues",
    "Selection": "roundsman_console.inspector.read.selection",
    "Stats": "roundsman_console.inspector.views.stats",
    "Task": "roundsman.model.task",
    "TaskState": "roundsman.model.states",
    "Unconfirmed": "roundsman_console.inspector.errors",
    "sentence_of": "roundsman_console.inspector.errors",
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
