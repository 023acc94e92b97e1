"""The way back to the versions before the last deployment."""

from dataclasses import replace

from roundsman_console.acts.rollback import AFTERWARDS, find_changes, go_back
from roundsman_console.acts.verb import Form
from roundsman_console.faces.web.command_page import CommandPage, FormCommand, Item, agreed, asking
from roundsman_console.faces.web.session import Session
from roundsman_console.inspector import Inspector


def _show_rollback(inspector: Inspector, given: Form) -> CommandPage:
    return CommandPage(
        "rollback",
        "Go back",
        "Lets each changed function run the version again that it ran before the last deployment, "
        "which takes seconds. Deploy the former code afterwards.",
        inspector.stack.name,
        "stack",
        "/doctor",
        form=given,
        reason="none",
    )


def _rollback(inspector: Inspector, given: Form, session: Session) -> CommandPage:
    stack, page = inspector.stack, _show_rollback(inspector, given)
    changes = find_changes(stack)
    if not changes:
        words = "Every function runs the version from before the last deployment."
        return replace(page, sentence=words)
    version = str([(one.function, one.running, one.former) for one in changes])
    if not agreed(given, session, version):
        items = [
            Item(one.name, f"version {one.running}", f"version {one.former}", "", True)
            for one in changes
        ]
        page = replace(page, items=items)
        return asking(page, given, session, version, "These functions would go back.")
    go_back(stack, changes)
    return replace(page, sentence=f"{stack.name} went back. {AFTERWARDS}", done=True)


ROLLBACK = FormCommand("rollback", _show_rollback, _rollback)
