"""The option --stack, and strict parsing of arguments: durations, results, bodies, reasons, names.

An invalid argument raises ConsoleError with one sentence for the user.
"""

import getpass
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from roundsman.errors import PermanentError
from roundsman.model.corrections import Correction, changes_of, path_text, typed_change
from roundsman.model.instants import EPOCH
from roundsman.model.json import Json, parse_json
from roundsman_console.cli_errors import USAGE, ConsoleError
from roundsman_console.hints import remember_stack
from roundsman_console.inspector.operate.limits import (
    LONGEST_EXTENSION,
    LONGEST_NAME,
    LONGEST_REASON,
)
from roundsman_console.inspector.read.masks import MASK

StackOption = Annotated[
    str | None,
    typer.Option(
        "--stack",
        envvar="ROUNDSMAN_STACK",
        show_envvar=False,
        callback=remember_stack,
        help="The stack's name; ROUNDSMAN_STACK, or the one in samconfig.toml, by default.",
    ),
]


_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION = re.compile(r"(?:(\d{1,8})d)?(?:(\d{1,8})h)?(?:(\d{1,8})m)?(?:(\d{1,8})s)?", re.ASCII)


def read_duration(text: str, *, least: int = 1, most: int = LONGEST_EXTENSION) -> int:
    """Return a duration such as `90s`, `10m`, `1h30m` or `2d` in seconds.

    Raises ConsoleError if it is not from `least` to `most` seconds.
    """
    found = _DURATION.fullmatch(text.strip())
    if not found or not any(found.groups()):
        raise ConsoleError(
            f"{text!r} is not a duration. Write it with units: 90s, 10m, 1h30m or 2d.", USAGE
        )
    counts = zip(found.groups(default="0"), _UNITS.values(), strict=True)
    seconds = sum(int(count) * unit for count, unit in counts)
    if not least <= seconds <= most:
        raise ConsoleError(
            f"{text} is too {'short' if seconds < least else 'long'}: "
            f"at least {least}s, at most {most // 86_400}d at once.",
            USAGE,
        )
    return seconds


def read_instant(text: str) -> int:
    """Return an instant such as `2027-01-15T08:00:00Z` in epoch ms.

    Raises ConsoleError if it is not ISO 8601 with a time zone.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise ConsoleError(
            f"{text!r} is not an instant with a time zone. Write it so: 2027-01-15T08:00:00Z.",
            USAGE,
        )
    return (moment - EPOCH) // timedelta(milliseconds=1)


def read_result(text: str | None) -> Json:
    """Parse a step's result: JSON, or `@` and the name of a file that contains JSON.

    Returns None if `text` is None. Raises ConsoleError if the file cannot be read or the text is
    not JSON.
    """
    if text is None:
        return None
    source = "--result"
    if text.startswith("@"):
        source = text[1:]
        text = _content(source)
    try:
        return parse_json(text)
    except ValueError as error:
        hint = "" if source != "--result" else " A text value needs JSON quotes: '\"ch_1\"'."
        raise ConsoleError(f"{source} is not JSON: {error}.{hint}", USAGE) from error


def read_failure(failed: str | None, message: str) -> PermanentError | None:
    """Return the failure that the options --failed and --message say; None without --failed.

    Raises ConsoleError if the type is not one word, and for a message without a type.
    """
    if failed is None:
        if message:
            raise ConsoleError("--message requires --failed.", USAGE)
        return None
    if not failed.strip():
        raise ConsoleError("--failed is empty.", USAGE)
    error = PermanentError(failed.strip(), message)
    if error.untyped:
        raise ConsoleError(
            "--failed takes the type of the error, such as CardDeclined; write the sentence in "
            "--message.",
            USAGE,
        )
    return error


def read_input(file: str | None) -> Mapping[str, Json] | None:
    """Return the JSON object in a file; `-` is the standard input. None if `file` is None.

    Raises ConsoleError if the file cannot be read or is not a JSON object.
    """
    if file is None:
        return None
    try:
        found = parse_json(_content(file, stdin=True))
    except ValueError as error:
        raise ConsoleError(f"{file} is not JSON: {error}.", USAGE) from error
    if not isinstance(found, Mapping):
        raise ConsoleError(f"{file} is not a JSON object.", USAGE)
    return found


def read_changes(sets: Sequence[str], removes: Sequence[str]) -> Correction:
    """Return the changes of `path=value` and of paths to remove.

    A value that is not JSON is a text. Raises ConsoleError for an invalid path or a missing value.
    """
    try:
        changes = (*map(typed_change, sets), *changes_of({}, removes))
    except ValueError as error:
        raise ConsoleError(f"{error}.", USAGE) from error
    for change in changes:
        if change.value == MASK:
            raise ConsoleError(
                f"The value of {path_text(change.path)} was left out of the printed command. "
                "Type it again.",
                USAGE,
            )
    return changes


def check_resubmit(
    *,
    steps: Sequence[str],
    corrected: bool,
    used: bool,
    not_done: Sequence[str],
    fresh_key: bool,
    newest_plan: bool,
) -> None:
    """Raise ConsoleError if the options of a resubmit contradict each other."""
    if used and not corrected:
        raise ConsoleError("--used requires --input, --set or --remove.", USAGE)
    if not_done and not (corrected or fresh_key):
        raise ConsoleError("--not-done requires a correction or --fresh-key.", USAGE)
    if newest_plan and steps:
        raise ConsoleError(
            "--step cannot be combined with --plan: every failed step is tried again.", USAGE
        )


def read_body(text: str | None) -> str | None:
    """Return the text, or the content of what it names: `@` and a file, or `@-` for stdin.

    Returns None if `text` is None. Raises ConsoleError if the file cannot be read or is not UTF-8.
    """
    return _content(text[1:], stdin=True) if text and text.startswith("@") else text


def _content(file: str, *, stdin: bool = False) -> str:
    """Return the content of a file; with `stdin`, `-` is the standard input."""
    from_stdin = stdin and file == "-"
    name = "Standard input" if from_stdin else file
    try:
        raw = sys.stdin.buffer.read() if from_stdin else Path(file).read_bytes()
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConsoleError(f"{name} is not UTF-8 text.", USAGE) from error
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        raise ConsoleError(f"{name} cannot be read: {said}.", USAGE) from error


def read_reason(text: str) -> str:
    """Return the reason without surrounding spaces.

    Raises ConsoleError if it is empty or longer than LONGEST_REASON characters.
    """
    return _said("--reason", text, LONGEST_REASON)


def read_name(text: str | None) -> str:
    """Return the operator's name: the given name, or the name of the operating system's user.

    Raises ConsoleError if the given name is empty or longer than LONGEST_NAME characters, or if
    the user has no name.
    """
    if text is not None:
        return _said("The name of the operator", text, LONGEST_NAME)
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError) as error:
        raise ConsoleError(
            "This user has no name on this machine. Give a name with --as.", USAGE
        ) from error


def _said(what: str, text: str, most: int) -> str:
    said = text.strip()
    if not said:
        raise ConsoleError(f"{what} is empty.", USAGE)
    if len(said) > most:
        raise ConsoleError(f"{what} has {len(said)} characters; at most {most}.", USAGE)
    return said
