"""What an operator calls: list tasks, explain them, and repair them.

    inspector = Inspector.of_stack("shop")
    for task in inspector.tasks(Selection(state=TaskState.ARCHIVED)).tasks:
        print(task.task_id, inspector.why(task.task_id).sentence)
        inspector.resubmit(task.task_id, by="amy", reason="the carrier is back")

The packages beside this one do it, one for each noun. It is not part of the layer that the Lambda
functions use.
"""

from roundsman.definition.plan import Plan
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Task
from roundsman_console.agent.reading import AgentNow
from roundsman_console.command.commands import CommandOutcome, CommandResult
from roundsman_console.command.corrections import InputChange, InputCorrection
from roundsman_console.errors import (
    InspectorError,
    Interrupted,
    InvalidArgument,
    NotFound,
    Unconfirmed,
    sentence_of,
)
from roundsman_console.group.reading import GroupNow
from roundsman_console.inspector.inspector import Inspector
from roundsman_console.order.timeline import Happening
from roundsman_console.order.why import Diagnosis
from roundsman_console.orders.listing import Page
from roundsman_console.orders.selection import Selection
from roundsman_console.stack.queues import Queue
from roundsman_console.stack.stack import DeployedStack
from roundsman_console.stack.stats import Stats

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
