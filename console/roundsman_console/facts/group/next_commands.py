"""The commands to run next for a failure group."""

from roundsman.command_line import REASON, command_line
from roundsman.model.failure import AWAITS_RESULT, RETRIED, UNDONE, open_step
from roundsman_console.facts.group.reading import GroupNow
from roundsman_console.facts.order.next_command import result_command


def commands_of(group: GroupNow) -> list[str]:
    """Return the commands to run next: list, show, hold the agent, and resubmit after the fix."""
    found = [command_line("ls", options=("--group", group.id))]
    found += [command_line("show", task.task_id) for task in group.samples[:1]]
    if group.agent is not None and group.agent.hold("operator") is None:
        found.append(command_line("hold", group.agent.name, options=("--for", "30m", *REASON)))
    if group.count.count and group.how == RETRIED:
        found.append(command_line("run", options=("--group", group.id, *REASON)))
    elif group.count.count and group.how == AWAITS_RESULT:
        found += [result_command(task, open_step(task) or group.step) for task in group.samples[:1]]
    elif group.count.count:
        again = ("--again",) if group.how == UNDONE else ()
        found.append(command_line("resubmit", options=("--group", group.id, *again, *REASON)))
    return found
