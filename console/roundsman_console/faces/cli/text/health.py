"""Formats the health of steps for people: a sentence, a table, and where the numbers come from."""

from rich.table import Table

from roundsman.model.instants import format_duration
from roundsman_console.base.hints import hint
from roundsman_console.faces.cli.inert_text import plain
from roundsman_console.faces.cli.terminal import results, say
from roundsman_console.facts.workflow.health import (
    SHARE,
    Health,
    StepHealth,
    sources_words,
    usual_words,
)


def show_health(health: Health) -> None:
    """Print which steps are worse, and all steps as a table; only the sentence without figures."""
    say(health.sentence)
    if health.missing is not None:
        return
    say("")
    results().print(_table(health))
    say("", hint(usual_words(health)), hint(sources_words(health)))


def _table(health: Health) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("Step", overflow="fold")
    for heading in ("Attempts", "Failed", "Usually", "Half within", "99 % within", "Usually"):
        table.add_column(heading, justify="right", no_wrap=True)
    for step in health.steps:
        bad = step.worse is not None and step.worse.until is None
        table.add_row(
            plain(step.step, "red" if bad else ""),
            plain(_count(step)),
            plain(_share(step.failed_share)),
            plain(_share(step.usual_share)),
            plain(_time(step.half)),
            plain(_time(step.nearly_all)),
            plain(_time(step.usual_nearly_all)),
        )
    return table


def _count(step: StepHealth) -> str:
    return "unknown" if step.attempts is None else f"{step.attempts:,}"


def _share(share: float | None) -> str:
    return "" if share is None else SHARE.to_words(share)


def _time(time: int | None) -> str:
    return "" if time is None else format_duration(time)
