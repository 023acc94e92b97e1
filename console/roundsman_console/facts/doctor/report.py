"""The result of the doctor's checks: what was found, what could not be read, what was repaired."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from botocore.exceptions import BotoCoreError, ClientError

from roundsman.errors import RoundsmanError
from roundsman.model.instants import iso
from roundsman_console.base.errors import cause_of, sentence_of
from roundsman_console.base.unread import Unread
from roundsman_console.facts.doctor.catalog import CATALOG, Entry
from roundsman_console.facts.doctor.documents import FindingKind, ReportDocument, Severity

INSPECTS = "make the scheduler inspect it"
"""The repair of `--fix` in words."""

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


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong."""

    kind: FindingKind
    where: str
    """The part that is concerned: the id of a task, the name of a queue, `shard 3`."""
    evidence: str
    """The facts that show it, in words."""
    command: str | None = None
    """The command that the operator should type next; None if there is none."""
    fixable: bool = False
    """Whether `--fix` repairs it, by an inspect command for the task `where`: harmless if the task
    needs nothing."""

    @property
    def entry(self) -> Entry:
        """The catalogue entry of the finding's kind."""
        return CATALOG[self.kind]

    @property
    def place(self) -> tuple[FindingKind, str]:
        """What is wrong and where, which two findings of one fault have in common."""
        return self.kind, self.where


def in_order(found: Iterable[Finding]) -> list[Finding]:
    """Sort findings by severity, kind and place; keep one of those with equal kind and place."""
    kinds, severities = list(FindingKind), list(Severity)
    once = {one.place: one for one in found}
    return sorted(
        once.values(),
        key=lambda one: (severities.index(one.entry.severity), kinds.index(one.kind), one.where),
    )


@dataclass(frozen=True, slots=True)
class Unseen:
    """A part of the stack that could not be read."""

    what: str
    why: str
    lacking: bool = False
    """The deployment (an emulator) does not have this part at all, so nothing can be wrong with
    it."""
    cause: str = ""
    """The cause alone, which other parts may have in common; empty if that is `why`."""


class Looking:
    """Notes which reads failed. `progress` is called with what is being read."""

    def __init__(self, progress: Callable[[str], None] = lambda _: None) -> None:
        self._missed: list[Unseen] = []
        self.progress = progress

    def at(self, what: str) -> "Reading":
        """Return a context manager for one read, which notes an error under the name `what`."""
        return Reading(self, what)

    def missed(self, what: str, why: str, *, lacking: bool = False, cause: str = "") -> None:
        """Note that `what` could not be read. `lacking` and `cause` are as in `Unseen`."""
        self._missed.append(Unseen(what, why, lacking, cause))

    @property
    def unseen(self) -> Sequence[Unseen]:
        """The parts that could not be read, one entry per reason."""
        by_reason: dict[tuple[str, bool, str], list[str]] = defaultdict(list)
        for one in dict.fromkeys(self._missed):
            by_reason[one.why, one.lacking, one.cause].append(one.what)
        return [Unseen(_listed(each), *reason) for reason, each in by_reason.items()]


@dataclass(frozen=True, slots=True)
class Reading:
    """A context manager for one read, which may fail without effect on others."""

    looking: Looking
    what: str

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> bool:
        """Note and suppress an error of AWS or of Roundsman; let any other error pass."""
        if not isinstance(error, ClientError | BotoCoreError | RoundsmanError):
            return False
        code = error.response["Error"].get("Code") if isinstance(error, ClientError) else None
        why, cause = sentence_of(error), cause_of(error)
        self.looking.missed(self.what, why, lacking=code in NOT_MADE, cause=cause)
        return True


def _listed(names: Sequence[str]) -> str:
    whole = ", ".join(names[:NAMED])
    return whole if len(names) <= NAMED else f"{whole} and {len(names) - NAMED} more"


@dataclass(frozen=True, slots=True)
class Looked:
    """What the doctor has read."""

    stack: str
    """The name of the stack."""
    at: int
    """When it was read, in epoch ms."""
    tasks: Mapping[str, int]
    """The number of tasks, by lane."""
    cut: Sequence[str]
    """The lanes that have more tasks than were read."""
    rows: int | None = None
    """The number of rows that the deep look read; None without a deep look."""


@dataclass(frozen=True, slots=True)
class Repair:
    """A repair that was made, or failed."""

    finding: Finding
    problem: str | None = None
    """Why the repair failed; None if it was made."""
    mended: bool = False
    """Whether the finding is gone."""


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of one check of a stack, and what was repaired."""

    looked: Looked
    findings: Sequence[Finding]
    unseen: Sequence[Unseen]
    repairs: Sequence[Repair] | None = None
    """What was repaired; None without `--fix`."""

    @property
    def well(self) -> bool:
        """Whether there is no finding, and every part that the deployment has was read."""
        return not self.findings and all(one.lacking for one in self.unseen)

    @property
    def unread(self) -> list[Unread]:
        """The parts of the deployment that could not be read: what is wrong there is not known."""
        return [Unread(one.what, one.cause or one.why) for one in self.unseen if not one.lacking]

    def document(self) -> ReportDocument:
        """Return the report as JSON for scripts."""
        looked = self.looked
        return {
            "stack": looked.stack,
            "at": iso(looked.at),
            "well": self.well,
            "looked": {
                "open": looked.tasks.get("open", 0),
                "archived": looked.tasks.get("archived", 0),
                "cut": list(looked.cut),
                "deepRows": looked.rows,
            },
            "findings": [
                {
                    "kind": one.kind,
                    "severity": one.entry.severity,
                    "where": one.where,
                    "evidence": one.evidence,
                    "means": one.entry.means,
                    "repair": one.entry.repair,
                    "command": one.command,
                    "fixable": one.fixable,
                }
                for one in self.findings
            ],
            "unseen": [
                {"what": one.what, "why": one.why, "lacking": one.lacking} for one in self.unseen
            ],
            "repairs": None
            if self.repairs is None
            else [
                {
                    "kind": one.finding.kind,
                    "where": one.finding.where,
                    "does": INSPECTS,
                    "mended": one.mended,
                    "problem": one.problem,
                }
                for one in self.repairs
            ],
        }
