"""The commands of `roundsman` that are printed: each works as it is pasted into a shell.

Names and ids come from outside. An id may begin with `-`, so that it looks like an option, or with
`~`, which a shell replaces by a folder.
"""

import shlex
from collections.abc import Sequence

PLACEHOLDER = "..."
"""A value that the person writes before running the command. It is printed in quotes."""

REASON = ("--reason", PLACEHOLDER)
"""The option of a command that has to be given a reason."""

GIVES_RESULT = ("--did", "--result", PLACEHOLDER, *REASON)
"""The options of a `resolve` that gives a missing result."""


def command_line(command: str, *arguments: str, options: Sequence[str] = ()) -> str:
    """Return the command with its arguments and options, quoted for a shell.

    `command` is as it is typed after `roundsman`, such as `bulk show`. `options` are whole words:
    names of options, and values that follow them. The options stand last, or before `--` if an
    argument begins with `-`.
    """
    dashed = any(argument.startswith("-") for argument in arguments)
    words = [*options, "--", *arguments] if dashed else [*arguments, *options]
    return " ".join(["roundsman", command, *map(_quoted, words)])


def _quoted(word: str) -> str:
    return f"'{word}'" if word == PLACEHOLDER else shlex.quote(word)
