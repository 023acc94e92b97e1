"""What a deployment would change, as tables."""

import shlex
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from roundsman_console.base.counted import counted
from roundsman_console.faces.cli.inert_text import plain
from roundsman_dev.changes.compare import Action, ResourceChange
from roundsman_dev.changes.review import Review
from roundsman_dev.changes.rights import DENY, Right

_STYLES = {
    Action.ADD: "green",
    Action.NEW_VERSION: "cyan",
    Action.CHANGE: "yellow",
    Action.UNPROTECT: "bold red",
    Action.LEAVE: "red",
    Action.REMOVE: "red",
    Action.MAY_REPLACE: "bold red",
    Action.REPLACE: "bold red",
}


def print_review(review: Review, console: Console) -> None:
    """Print what changes, what only passes a change on, which rights grow, and the next command."""
    if not (review.changes or review.passed_on or review.change_set):
        console.print(plain(f"Nothing changes in {review.stack}."))
        return
    if review.changes:
        console.print(_changes(review.changes))
    else:
        console.print(plain(f"No resource of {review.stack} is written otherwise."))
    if review.rights:
        console.print(plain("Rights that grow:", "bold"))
        console.print(_rights(review.rights))
    if review.passed_on:
        console.print(plain("Written as before, and may change by what they name:", "bold"))
        console.print(_changes(review.passed_on))
    if review.refused:
        console.print(
            plain(
                "AWS did not look into the nested stacks. What is listed was found by comparing "
                f"their templates. AWS's reason: {review.refused}"
            )
        )
    for table in review.many_indexes:
        sentence = (
            f"More than one index of {table} is made or removed, which CloudFormation refuses: "
            "change SearchFields by 1 in each deployment."
        )
        console.print(plain(f"Warning: {sentence}", "yellow"))
    for sentence in review.engine_first:
        console.print(plain(f"Warning: {sentence}", "yellow"))
    console.print(plain(_counts(review)))


def _counts(review: Review) -> str:
    numbers = dict.fromkeys(Action, 0)
    for one in review.changes:
        numbers[one.action] += 1
    counts = ", ".join(f"{number} {action}" for action, number in numbers.items() if number)
    rights = f"{counted(len(review.rights), 'right')} grow" + (
        "s" if len(review.rights) == 1 else ""
    )
    return f"{review.stack}: {counts or '0 changed'}, {len(review.passed_on)} passed on, {rights}."


def stop_sentence(review: Review) -> str:
    """Return why the deployment stops, and the options that would let it go on."""
    stopped = review.stopped
    named = ", ".join(f"{one.name} ({one.action})" for one in stopped)
    options = " ".join(f"--allow {shlex.quote(one.name)}" for one in stopped)
    if all(one.action is Action.UNPROTECT for one in stopped):
        return (
            f"This would let tables be deleted by a single call: {named}. Set DeletionProtection "
            f"to true, as the stack has it. To go on, add: {options}"
        )
    lost = f"This would lose rows, payloads or messages: {named}."
    return f"{lost} Back them up first. To go on, add: {options}"


def _changes(changes: Sequence[ResourceChange]) -> Table:
    table = Table("action", "resource", "type", "properties", box=None, pad_edge=False)
    for one in changes:
        table.add_row(
            plain(str(one.action), _STYLES[one.action]),
            plain(one.name),
            plain(one.kind.removeprefix("AWS::")),
            plain(", ".join(one.properties)),
        )
    return table


def _rights(rights: Sequence[Right]) -> Table:
    table = Table("who", "may", "on", "if", box=None, pad_edge=False)
    for one in rights:
        action = f"{one.action} (no longer refused)" if one.effect == DENY else one.action
        who = f"{one.holder}, {one.principal}" if one.principal else one.holder
        table.add_row(*(plain(text) for text in (who, action, one.resource, one.condition)))
    return table
