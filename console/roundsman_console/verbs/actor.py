"""The person who acts, and the reason, as they are typed."""

import getpass

from roundsman_console.cli_errors import USAGE, ConsoleError
from roundsman_console.verbs.limits import LONGEST_NAME, LONGEST_REASON


def read_reason(text: str) -> str:
    """Return the reason without surrounding spaces.

    Raises ConsoleError if it is empty or longer than LONGEST_REASON characters.
    """
    return _checked("--reason", text, LONGEST_REASON)


def read_name(text: str | None) -> str:
    """Return the operator's name: the given name, or the name of the operating system's user.

    Raises ConsoleError if the given name is empty or longer than LONGEST_NAME characters, or if
    the user has no name.
    """
    if text is not None:
        return _checked("The name of the operator", text, LONGEST_NAME)
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError) as error:
        raise ConsoleError(
            "This user has no name on this machine. Give a name with --as.", USAGE
        ) from error


def _checked(what: str, text: str, most: int) -> str:
    stripped = text.strip()
    if not stripped:
        raise ConsoleError(f"{what} is empty.", USAGE)
    if len(stripped) > most:
        raise ConsoleError(f"{what} has {len(stripped)} characters; at most {most}.", USAGE)
    return stripped
