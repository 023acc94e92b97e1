"""`roundsman upgrade`: replaces the vendored stacks of the application in this folder."""

from pathlib import Path
from typing import Annotated

import typer

from roundsman_console.base.project_folder import find_project
from roundsman_console.base.release import (
    NO_WHEEL,
    installed_wheel,
    is_on_no_index,
    release,
)
from roundsman_console.faces.cli.confirm import confirm
from roundsman_console.faces.cli.errors import sentences
from roundsman_dev.project.upgrade import apply_upgrade, plan_upgrade


def upgrade_command(
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Replace stacks/ and the version by those of the installed release, after showing the changes.

    Install the new release first: pip install --upgrade roundsman.

    Example: roundsman upgrade --yes
    """
    with sentences():
        project = find_project(Path.cwd())
        upgrade = plan_upgrade(project, release(), installed_wheel())
        if not upgrade.changes:
            print(f"This application has release {upgrade.after} already.")
            return
        print(upgrade.difference)
        if upgrade.before == upgrade.after:
            print(f"The release stays {upgrade.after}; files of it differ from the installed one.")
        else:
            print(
                f"From release {upgrade.before} to {upgrade.after}; releases from "
                f"{upgrade.direct_from} on may be skipped."
            )
        confirm("Write these changes?", yes=yes, nothing="Nothing was written.")
        apply_upgrade(project, upgrade)
    for path, content in sorted(upgrade.changes.items()):
        print(f"{'removed' if content is None else 'wrote'} {path}")
    if is_on_no_index():
        print(NO_WHEEL)
    print("Next: make test, then deploy.")
