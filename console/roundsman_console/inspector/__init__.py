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
from roundsman_console.acts.changes import InputChange
from roundsman_console.acts.order.corrections import InputCorrection
from roundsman_console.acts.order.sent import CommandResult
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.errors import (
    InspectorError,
    Interrupted,
    InvalidArgument,
    NotFound,
    Unconfirmed,
    sentence_of,
)
from roundsman_console.base.result import CommandOutcome
from roundsman_console.facts.agent.reading import AgentNow
from roundsman_console.facts.group.reading import GroupNow
from roundsman_console.facts.order.timeline import Happening
from roundsman_console.facts.order.why import Diagnosis
from roundsman_console.facts.orders.listing import Page
from roundsman_console.facts.orders.selection import Selection
from roundsman_console.facts.overview.queues import Queue
from roundsman_console.facts.overview.stats import Stats
from roundsman_console.inspector.inspector import Inspector

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
