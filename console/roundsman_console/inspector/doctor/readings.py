"""Makes many independent reads of AWS: one that fails is noted and does not stop the others."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from types import TracebackType

from botocore.exceptions import BotoCoreError, ClientError

from roundsman.errors import RoundsmanError
from roundsman_console.inspector.doctor.facts import Unseen
from roundsman_console.inspector.errors import InspectorError, aws_sentence

NOT_MADE = frozenset(
    {
        "InvalidAction",
        "NotImplemented",
        "UnknownOperation",
        "UnknownOperationException",
        "UnsupportedOperation",
    }
)
"""The error codes of an emulator that does not implement an action."""

NAMED = 3  # names that are listed for one reason; the rest are counted


class Looking:
    """Notes which reads failed. `progress` is called with what is being read."""

    def __init__(self, progress: Callable[[str], None] = lambda _: None) -> None:
        self._missed: list[tuple[str, str, bool]] = []
        self.tell = progress

    def at(self, what: str) -> "Reading":
        """Return a context manager for one read, which notes an AWS error under the name `what`."""
        return Reading(self, what)

    def missed(self, what: str, why: str, *, lacking: bool = False) -> None:
        """Note that `what` could not be read. `lacking` is as in `Unseen`."""
        self._missed.append((what, why, lacking))

    @property
    def unseen(self) -> Sequence[Unseen]:
        """The parts that could not be read, one entry per reason."""
        by_reason: dict[tuple[str, bool], list[str]] = defaultdict(list)
        for what, why, lacking in self._missed:
            by_reason[why, lacking].append(what)
        return [Unseen(_listed(each), why, lacking) for (why, lacking), each in by_reason.items()]


class Reading:
    """A context manager for one read, which may fail without effect on others."""

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
        """Note and suppress an error of AWS or of Roundsman; let any other error pass."""
        match error:
            case ClientError():
                code = error.response.get("Error", {}).get("Code", "")
                self._looking.missed(self._what, aws_sentence(error), lacking=code in NOT_MADE)
            case BotoCoreError():
                self._looking.missed(self._what, aws_sentence(error))
            case InspectorError():
                self._looking.missed(self._what, str(error))
            case RoundsmanError():
                self._looking.missed(self._what, f"{error}.")
            case _:
                return False
        return True


def _listed(names: Sequence[str]) -> str:
    whole = ", ".join(names[:NAMED])
    return whole if len(names) <= NAMED else f"{whole} and {len(names) - NAMED} more"
