"""The person who acts, and the reason, as they are typed; or the person who is signed in.

The console of a team serves many persons in one process. Each request is answered for the one whom
the load balancer has signed in: nobody can act under another name.
"""

import getpass
from contextvars import ContextVar

from roundsman_console.base.errors import USAGE, ConsoleError
from roundsman_console.base.limits import LONGEST_NAME, LONGEST_REASON

_SIGNED_IN: ContextVar[str | None] = ContextVar("signed_in", default=None)


def signed_in() -> str | None:
    """Return the person for whom the console of a team acts; None outside of such a console."""
    return _SIGNED_IN.get()


def act_for(person: str | None) -> None:
    """Let what follows in this context be done for this person, who is signed in."""
    _SIGNED_IN.set(person)


def read_reason(text: str) -> str:
    """Return the reason without surrounding spaces.

    Raises ConsoleError if it is empty or longer than LONGEST_REASON characters.
    """
    return _checked("--reason", text, LONGEST_REASON)


def read_name(text: str | None) -> str:
    """Return the operator's name: of the person who is signed in, or else the given name, or the
    name of the operating system's user.

    Raises ConsoleError if the given name is empty or longer than LONGEST_NAME characters, or if
    the user has no name.
    """
    person = signed_in()
    if person is not None:
        return person
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
