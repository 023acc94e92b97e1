"""What an operator calls: list tasks, explain them, and repair them.

    inspector = Inspector.of_stack("shop")
    for task in inspector.tasks(Selection(state=TaskState.ARCHIVED)).tasks:
        print(task.task_id, inspector.why(task.task_id).sentence)
        inspector.resubmit(task.task_id, by="amy", reason="the carrier is back")

The packages beside this one do it, one for each noun. It is not part of the layer that the Lambda
functions use.
"""

from typing import TYPE_CHECKING

from roundsman.lazy_imports import names_from

if TYPE_CHECKING:
    from roundsman.definition.plan import Plan
    from roundsman.model.states import ProcessState, TaskState
    from roundsman.model.task import Task
    from roundsman_console.agent.reading import AgentNow
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
    from roundsman_console.order.commands import CommandOutcome, CommandResult
    from roundsman_console.order.corrections import InputChange, InputCorrection
    from roundsman_console.order.timeline import Happening
    from roundsman_console.order.why import Diagnosis
    from roundsman_console.orders.listing import Page
    from roundsman_console.orders.selection import Selection
    from roundsman_console.stack.queues import Queue
    from roundsman_console.stack.stack import DeployedStack
    from roundsman_console.stack.stats import Stats

_HOMES = {
    "AgentNow": "roundsman_console.agent.reading",
    "CommandOutcome": "roundsman_console.order.commands",
    "CommandResult": "roundsman_console.order.commands",
    "DeployedStack": "roundsman_console.stack.stack",
    "Diagnosis": "roundsman_console.order.why",
    "GroupNow": "roundsman_console.group.reading",
    "Happening": "roundsman_console.order.timeline",
    "InputChange": "roundsman_console.order.corrections",
    "InputCorrection": "roundsman_console.order.corrections",
    "Inspector": "roundsman_console.inspector.inspector",
    "InspectorError": "roundsman_console.errors",
    "Interrupted": "roundsman_console.errors",
    "InvalidArgument": "roundsman_console.errors",
    "NotFound": "roundsman_console.errors",
    "Page": "roundsman_console.orders.listing",
    "Plan": "roundsman.definition.plan",
    "ProcessState": "roundsman.model.states",
    "Queue": "roundsman_console.stack.queues",
    "Selection": "roundsman_console.orders.selection",
    "Stats": "roundsman_console.stack.stats",
    "Task": "roundsman.model.task",
    "TaskState": "roundsman.model.states",
    "Unconfirmed": "roundsman_console.errors",
    "sentence_of": "roundsman_console.errors",
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
