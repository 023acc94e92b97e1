"""Formats a shift for people: each part as a table, or the sentence that nothing was in it."""

from roundsman_console.base.hints import hint
from roundsman_console.faces.cli.terminal import results, say
from roundsman_console.faces.cli.text.result import table_of
from roundsman_console.facts.shift.report import Shift, sections, time_words


def show_shift(shift: Shift) -> None:
    """Print what happened, what is open, and what is not known."""
    say(time_words(shift))
    for part in sections(shift):
        say("", part.title)
        if part.rows:
            results().print(table_of(part.rows))
        else:
            say(part.nothing)
    say("")
    for sentence in shift.left_out:
        say(hint(sentence))
