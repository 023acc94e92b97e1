"""The command that ends an operator's hold."""

from roundsman.command_line import command_line
from roundsman.model.holds import EVERY_WORKFLOW, Hold


def release_command(hold: Hold) -> str:
    """Return the command that ends an operator's hold."""
    if hold.agent:
        return command_line("release", hold.agent)
    if hold.workflow == EVERY_WORKFLOW:
        return command_line("release", options=("--all",))
    return command_line("release", options=("--workflow", hold.workflow))
