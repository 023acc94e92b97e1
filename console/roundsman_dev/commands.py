"""The commands of `roundsman` that develop an application: where each is, and its line in the help.

The command line finds them by the entry point of the package.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from roundsman_console.base.command_table import ListedCommand
from roundsman_console.commands import DEVELOP

_SUMMARIES: Mapping[str, str] = {
    "demo": "Show a shop in memory whose orders fail, and how to repair it. No AWS and no Docker.",
    "init": "Make an application in a new folder: workflows, agents, template, tests.",
    "add": "Add an agent or a workflow to this application.",
    "check": "Check the definitions against the template: blocks, functions, "
    "schedules, outputs, events.",
    "upgrade": "Replace stacks/ and the version by those of the installed release, after "
    "showing the changes.",
    "local": "A local AWS on this machine, with the stack deployed on it. No account "
    "and no Docker.",
    "services": "Run stand-ins for the services of this application's agents until Ctrl-C.",
    "preflight": "Check the project and the AWS account before a deployment. Changes nothing.",
    "changes": "Show what a deployment would change, in the nested stacks too, and "
    "which rights grow.",
    "prove": "Prove the promises in your account, with a stack of its own that removes itself.",
}
"""The first paragraph of the help of each command."""

_MODULES: Mapping[str, str] = {
    "init": "project.init_command",
    "add": "project.add_command:add_app",
    "upgrade": "project.upgrade_command",
    "local": "local.command:local_app",
}
"""Where a command is that is not `command` in the package of its name."""

DEVELOPING: Final[Sequence[ListedCommand]] = tuple(
    ListedCommand(DEVELOP, name, f"roundsman_dev.{_MODULES.get(name, f'{name}.command')}", summary)
    for name, summary in _SUMMARIES.items()
)
