"""The commands of `roundsman` that develop an application: where each is, and its line in the help.

The command line finds them by the entry point of the package.
"""

from collections.abc import Sequence
from typing import Final

from roundsman_console.commands import DEVELOP, ListedCommand

DEVELOPING: Final[Sequence[ListedCommand]] = (
    ListedCommand(
        DEVELOP,
        "demo",
        "roundsman_dev.demo.command",
        "Show a shop in memory whose orders fail, and how to repair it. No AWS and no Docker.",
    ),
    ListedCommand(
        DEVELOP,
        "init",
        "roundsman_dev.project.init_command",
        "Make an application in a new folder: workflows, agents, template, tests.",
    ),
    ListedCommand(
        DEVELOP,
        "add",
        "roundsman_dev.project.add_command:add_app",
        "Add an agent or a workflow to this application.",
    ),
    ListedCommand(
        DEVELOP,
        "check",
        "roundsman_dev.check.command",
        "Check the definitions against the template: blocks, functions, schedules, "
        "outputs, events.",
    ),
    ListedCommand(
        DEVELOP,
        "upgrade",
        "roundsman_dev.project.upgrade_command",
        "Replace stacks/ and the version by those of the installed release, "
        "after showing the changes.",
    ),
    ListedCommand(
        DEVELOP,
        "local",
        "roundsman_dev.local.command:local_app",
        "A local AWS on this machine, with the stack deployed on it. No account and no Docker.",
    ),
    ListedCommand(
        DEVELOP,
        "services",
        "roundsman_dev.services.command",
        "Run stand-ins for the services of this application's agents until Ctrl-C.",
    ),
    ListedCommand(
        DEVELOP,
        "preflight",
        "roundsman_dev.preflight.command",
        "Check the project and the AWS account before a deployment. Changes nothing.",
    ),
    ListedCommand(
        DEVELOP,
        "changes",
        "roundsman_dev.changes.command",
        "Show what a deployment would change, in the nested stacks too, and which rights grow.",
    ),
    ListedCommand(
        DEVELOP,
        "prove",
        "roundsman_dev.prove.command",
        "Prove the promises in your account, with a stack of its own that removes itself.",
    ),
)
