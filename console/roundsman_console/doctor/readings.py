"""Looking at many things, each by itself: what cannot be seen is said, and fails nothing else."""

import sys
from collections import defaultdict
from collections.abc import Sequence
from types import TracebackType

from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console

from roundsman.errors import RoundsmanError
from roundsman_console.cli_errors import aws_sentence
from roundsman_console.doctor.facts import Unseen
from roundsman_console.sanitize import inert

NOT_MADE = frozenset(
    {
        "InvalidAction",
        "NotImplemented",
        "UnknownOperation",
        "UnknownOperationException",
        "UnsupportedOperation",
    }
)
"""What an emulator answers that does not have the action at all."""

NAMED = 3


class Looking:
    """What could not be looked at so far, and how far the looking has come."""

    def __init__(self, *, quiet: bool) -> None:
        self._missed: list[tuple[str, str, bool]] = []
        self._console = Console(stderr=True, highlight=False)
        self._quiet = quiet or not sys.stderr.isatty()

    def at(self, what: str) -> "Reading":
        """Around one look; `what` is its name. Whatever AWS refuses is noted, and that is all."""
        return Reading(self, what)

    def missed(self, what: str, why: str, *, lacking: bool = False) -> None:
        """This could not be looked at."""
        self._missed.append((what, why, lacking))

    def tell(self, doing: str) -> None:
        """Say on standard error how far it is, where a person looks on."""
        if not self._quiet:
            self._console.print(inert(f"{doing} ..."), style="dim", markup=False)

    @property
    def unseen(self) -> Sequence[Unseen]:
        """What was missed; what was missed for the same reason together."""
        by_reason: dict[tuple[str, bool], list[str]] = defaultdict(list)
        for what, why, lacking in self._missed:
            by_reason[why, lacking].append(what)
        return [Unseen(_listed(each), why, lacking) for (why, lacking), each in by_reason.items()]


class Reading:
    """One look, which may fail by itself."""

    def __init__(self, looking: Looking, what: str) -> None:
        self._looking = looking
        self._what = what

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """What AWS refused is noted and goes no further; any other error does."""
        match error:
            case ClientError():
                code = error.response.get("Error", {}).get("Code", "")
                self._looking.missed(self._what, aws_sentence(error), lacking=code in NOT_MADE)
            case BotoCoreError():
                self._looking.missed(self._what, aws_sentence(error))
            case RoundsmanError():
                self._looking.missed(self._what, f"{error}.")
            case _:
                return False
        return True


def _listed(names: Sequence[str]) -> str:
    whole = ", ".join(names[:NAMED])
    return whole if len(names) <= NAMED else f"{whole} and {len(names) - NAMED} more"
