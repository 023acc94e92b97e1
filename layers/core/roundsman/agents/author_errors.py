"""The exceptions that an author's function raises: which of several decides, and what they say.

A function that makes several calls side by side, as with asyncio.TaskGroup, raises an
ExceptionGroup. Its leaves are the errors of the calls that failed, and one of them decides how the
attempt ends. A BaseExceptionGroup with an exception that ends the process has no leaves here: it
ends the process as that exception does.

A call of Roundsman itself that is refused in a function, such as a Callback with a wait of two
years, is a defect of the function. Its sentence is of Roundsman and quotes no value, so it is
shown, with the place of the call. The text of any other unexpected exception may quote the order.
"""

import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import PurePath
from traceback import walk_tb
from types import FrameType

from roundsman.agents.guard import OF_FILES
from roundsman.agents.outcomes import wait_of
from roundsman.errors import AccessError, Busy, InvalidInput, PermanentError, TransientError
from roundsman.model.record_limits import LONGEST_MESSAGE

OWN = "roundsman"

CALLS = f"{OWN}.agents.attempt"
"""The module that calls an author's functions, and raises one of the errors of a group itself."""


@dataclass(frozen=True, slots=True)
class Raised:
    """What a call of an author's function has raised."""

    errors: tuple[Exception, ...]
    """The exception, or the leaves of an ExceptionGroup, the one that decides first."""
    places: tuple[str | None, ...] = (None,)
    """For each of them, where the function made the call that Roundsman refused, if it did."""
    side_by_side: bool = False
    """It was an ExceptionGroup: other calls may have succeeded, which are not in it."""

    @property
    def did_nothing(self) -> bool:
        """Whether each error promises that the service has done nothing."""
        return all(isinstance(one, TransientError) and one.no_effect for one in self.errors)

    @property
    def retry_after(self) -> int | None:
        """The longest wait in ms that an error asks for; None if none asks."""
        waits = [wait_of(one.retry_after) for one in self.errors if isinstance(one, TransientError)]
        return max((wait for wait in waits if wait is not None), default=None)

    def told(self, agent: str) -> tuple[str, str]:
        """The type of the error that decides, and a message that names all errors.

        The others are named by their types alone if not all texts fit. They are sorted, so that
        failures of one cause have one text, in whatever order the calls end.
        """
        pairs = zip(self.errors, self.places, strict=True)
        (error_type, message), *others = (_told(one, place, agent) for one, place in pairs)
        if not others:
            return error_type, message
        texts = [f"{name}: {text}" if text else name for name, text in others]
        for listed in (texts, [name for name, _ in others]):
            times = sorted(Counter(listed).items())
            found = ", ".join(text if n == 1 else f"{text} ({n} times)" for text, n in times)
            found = f"{message}; also failed: {found}" if message else f"also failed: {found}"
            if len(found) <= LONGEST_MESSAGE:
                break
        return error_type, found


def raised_by(error: Exception) -> Raised:
    """Describe an exception that has just come out of an author's function.

    Of the leaves of a group, an error for good decides, before an unexpected one, before one that a
    person must repair, before any other failure, before a busy service: what decides claims the
    least about the calls beside it. Of two alike, the first by its type decides, since calls end in
    any order.
    """
    errors = sorted(leaves_of(error), key=lambda leaf: (_weight(leaf), _type(leaf)))
    places = tuple(map(_refused_at, errors))
    return Raised(tuple(errors), places, isinstance(error, ExceptionGroup))


def is_remote(error: Exception) -> bool:
    """Whether a call over the network failed, and not the author's code.

    Libraries for calls raise OSError or a subclass of it. One about a file is a defect.
    """
    return isinstance(error, OSError) and not isinstance(error, OF_FILES)


def _refused_at(error: Exception) -> str | None:
    """The place in the author's code of the call that Roundsman refused: `app.py, line 12`.

    None if the exception was not raised by Roundsman itself.
    """
    caller, innermost = None, ""
    for frame, line in walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__") == CALLS:
            caller = None  # the function begins after it: an exception can be raised a second time
        innermost = _package(frame)
        if innermost != OWN and innermost not in sys.stdlib_module_names:
            caller = f"{PurePath(frame.f_code.co_filename).name}, line {line}"
    return caller if innermost == OWN else None


def _package(frame: FrameType) -> str:
    """The package that the frame's code is of; a dataclass's `__init__` has no file of its own."""
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def leaves_of(error: Exception) -> list[Exception]:
    """The errors in an ExceptionGroup and in the groups in it; any other error is the only one."""
    if not isinstance(error, ExceptionGroup):
        return [error]
    return [leaf for inner in error.exceptions for leaf in leaves_of(inner)]


def _type(error: Exception) -> str:
    return str(error.error_type) if isinstance(error, PermanentError) else type(error).__name__


def _weight(error: Exception) -> int:
    if isinstance(error, PermanentError):
        return 0
    if not isinstance(error, TransientError):
        return 3 if is_remote(error) else 1
    if isinstance(error, AccessError):
        return 2
    return 4 if isinstance(error, Busy) else 3


def _told(error: Exception, refused_at: str | None, agent: str) -> tuple[str, str]:
    """The type of one error, and what may be said of it."""
    name = _type(error)
    if isinstance(error, PermanentError):
        return name, error.message
    if isinstance(error, TransientError):
        return name, str(error)
    if isinstance(error, InvalidInput):  # its problems name fields, and quote no values
        message = f"the stored input does not have the type that the code reads: {error}"
    elif refused_at:
        message = str(error)
    else:
        return name, f"unexpected error; see the log of the {agent} agent"
    return name, f"{refused_at}: {message}" if refused_at else message
