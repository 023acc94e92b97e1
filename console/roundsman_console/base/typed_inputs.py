"""Strict reading of what a person types: durations, instants, results, inputs, changes, failures.

Each function raises InvalidArgument, with a sentence that says what to change, for a text that it
does not accept.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from roundsman.errors import PermanentError
from roundsman.model import instants
from roundsman.model.checks import NAME
from roundsman.model.corrections import Correction, changes_of, path_text, typed_change
from roundsman.model.json import Json, parse_json
from roundsman.model.masked_values import MASK
from roundsman_console.base.errors import InvalidArgument
from roundsman_console.base.limits import LONGEST_EXTENSION

_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION = re.compile(r"(?:(\d{1,8})d)?(?:(\d{1,8})h)?(?:(\d{1,8})m)?(?:(\d{1,8})s)?", re.ASCII)


def read_duration(text: str, *, least: int = 1, most: int = LONGEST_EXTENSION) -> int:
    """Return a duration such as `90s`, `10m`, `1h30m` or `2d` in seconds.

    Raises InvalidArgument if it is not from `least` to `most` seconds.
    """
    found = _DURATION.fullmatch(text.strip())
    if not found or not any(found.groups()):
        raise InvalidArgument(
            f"{text!r} is not a duration. Write it with units: 90s, 10m, 1h30m or 2d."
        )
    counts = zip(found.groups(default="0"), _UNITS.values(), strict=True)
    seconds = sum(int(count) * unit for count, unit in counts)
    if not least <= seconds <= most:
        raise InvalidArgument(
            f"{text} is too {'short' if seconds < least else 'long'}: "
            f"at least {least}s, at most {most // 86_400}d at once.",
        )
    return seconds


def read_workflow(text: str) -> str:
    """Return the name of a workflow. Raises InvalidArgument if no workflow can have it."""
    if not NAME.fullmatch(text):
        raise InvalidArgument(
            f"{text[:50]!r} is not the name of a workflow: a-z, 0-9 and _, at most 40 of them."
        )
    return text


def read_stop_at(text: str) -> float:
    """Return `20%` as 0.2. Raises InvalidArgument if it is not a percentage from 0% to 100%."""
    percentage = text.strip()
    try:
        share = float(percentage.removesuffix("%")) / 100
    except ValueError:
        share = -1.0
    if not percentage.endswith("%") or not 0 <= share <= 1:
        raise InvalidArgument(f"--stop-at must be a share from 0% to 100%, not {text!r}.")
    return share


def read_instant(text: str) -> int:
    """Return an instant such as `2027-01-15T08:00:00Z` in epoch ms.

    Raises InvalidArgument if it is not ISO 8601 with a time zone.
    """
    try:
        instant = instants.read_instant(text.strip())
        instants.iso(instant)
    except (ValueError, OverflowError) as error:  # the latter: it is after the year 9999 in UTC
        raise InvalidArgument(
            f"{text!r} is not an instant with a time zone. Write it so: 2027-01-15T08:00:00Z.",
        ) from error
    return instant


def read_past(text: str, at: int, *, most: int) -> int:
    """Return a past instant in epoch ms: one in ISO 8601, or how long before `at` it is, as `8h`.

    `at` is now. Raises InvalidArgument if it is neither, if it is not past, or more than `most`
    seconds ago.
    """
    if "T" not in text.upper() and "-" not in text:
        return at - read_duration(text, most=most) * instants.SECOND
    found = read_instant(text)
    if found >= at:
        raise InvalidArgument(f"{text} is not past: it is {instants.second(at)} now.")
    if at - found > most * instants.SECOND:
        raise InvalidArgument(f"{text} is too long ago: at most {most // 86_400}d.")
    return found


def read_steps(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the names of steps in texts such as `a,b`, each once.

    Raises InvalidArgument if a text has an empty name: it must not stand for no choice of steps.
    """
    names = [name.strip() for text in texts for name in text.split(",")]
    if not all(names):
        raise InvalidArgument("A name of a step is empty. Write them so: reserve,charge.")
    return tuple(dict.fromkeys(names))


def read_result(text: str | None, option: str = "--result") -> Json:
    """Parse the value of `option`: JSON, or `@` and the name of a file that contains JSON.

    Returns None if `text` is None. Raises InvalidArgument if the file cannot be read or the text is
    not JSON.
    """
    if text is None:
        return None
    source = option
    if text.startswith("@"):
        source = text[1:]
        text = read_file(source)
    try:
        return parse_json(text)
    except ValueError as error:
        hint = "" if source != option else " A text value needs JSON quotes: '\"ch_1\"'."
        raise InvalidArgument(f"{source} is not JSON: {error}.{hint}") from error


def read_failure(failed: str | None, message: str) -> PermanentError | None:
    """Return the failure that the options --failed and --message say; None without --failed.

    Raises InvalidArgument if the type is not one word, and for a message without a type.
    """
    if failed is None:
        if message:
            raise InvalidArgument("--message requires --failed.")
        return None
    if not failed.strip():
        raise InvalidArgument("--failed is empty.")
    error = PermanentError(failed.strip(), message)
    if error.untyped:
        raise InvalidArgument(
            "--failed takes the type of the error, such as CardDeclined; write the sentence in "
            "--message.",
        )
    return error


def read_json(text: str) -> Json:
    """Parse the JSON of a field of a form, where `@` names no file.

    It would be a file of the console's machine. Raises InvalidArgument if the text is not JSON.
    """
    if text.startswith("@"):
        raise InvalidArgument("The console in the browser reads no files: give the JSON.")
    return read_result(text)


def read_object(text: str) -> Mapping[str, Json]:
    """Parse a whole corrected input. Raises InvalidArgument if it is not a JSON object."""
    found = read_json(text)
    if not isinstance(found, Mapping):
        raise InvalidArgument("The corrected input is not a JSON object.")
    return found


def read_input(file: str) -> Mapping[str, Json]:
    """Return the JSON object in a file; `-` is the standard input.

    Raises InvalidArgument if the file cannot be read or is not a JSON object.
    """
    try:
        found = parse_json(read_file(file, stdin=True))
    except ValueError as error:
        raise InvalidArgument(f"{file} is not JSON: {error}.") from error
    if not isinstance(found, Mapping):
        raise InvalidArgument(f"{file} is not a JSON object.")
    return found


def read_sets(texts: Sequence[str]) -> Correction:
    """Return the changes of `path=value`. A value that is not JSON is a text.

    Raises InvalidArgument for an invalid path, or a value that is missing or was left out.
    """
    try:
        changes = tuple(map(typed_change, texts))
    except ValueError as error:
        raise InvalidArgument(f"{error}.") from error
    for change in changes:
        if change.value == MASK:
            raise InvalidArgument(
                f"The value of {path_text(change.path)} was left out of the printed command. "
                "Type it again."
            )
    return changes


def read_removes(texts: Sequence[str]) -> Correction:
    """Return the changes that remove these paths. Raises InvalidArgument for an invalid one."""
    try:
        return changes_of({}, texts)
    except ValueError as error:
        raise InvalidArgument(f"{error}.") from error


def read_body(text: str | None) -> str | None:
    """Return the text, or the content of what it names: `@` and a file, or `@-` for stdin.

    Returns None if `text` is None. Raises InvalidArgument if the file cannot be read or is not
    UTF-8.
    """
    return read_file(text[1:], stdin=True) if text and text.startswith("@") else text


def read_file(file: str, *, stdin: bool = False) -> str:
    """Return the content of a file; with `stdin`, `-` is the standard input.

    Raises InvalidArgument if the file cannot be read or is not UTF-8.
    """
    from_stdin = stdin and file == "-"
    name = "Standard input" if from_stdin else file
    try:
        raw = sys.stdin.buffer.read() if from_stdin else Path(file).read_bytes()
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"{name} is not UTF-8 text.") from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InvalidArgument(f"{name} cannot be read: {why}.") from error
