"""What is wrong with a stack: findings, what could not be read, and what was repaired."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from botocore.exceptions import BotoCoreError, ClientError

from roundsman.command_line import command_line
from roundsman.errors import RoundsmanError
from roundsman.model.instants import iso
from roundsman_console.aws.versions import Published
from roundsman_console.base.counted import counted
from roundsman_console.base.errors import cause_of, sentence_of
from roundsman_console.base.unread import Unread
from roundsman_console.facts.finding.documents import (
    AlertDocument,
    AlertListDocument,
    AlertSource,
    ReportDocument,
)
from roundsman_console.facts.finding.table import (
    ALERT_SEVERITIES,
    DOCTOR,
    AlertSeverity,
    FindingKind,
    Severity,
    StandingAlert,
    Trouble,
)

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

    kind: Trouble
    where: str
    """The part that is concerned: the id of a task, the name of a queue, `shard 3`."""
    evidence: str
    """The facts that show it, in words."""
    about: str | None = None
    """What the command is about, if that is not `where`."""
    fixable: bool = False
    """Whether `--fix` repairs it, by an inspect command for the task `where`: harmless if the task
    needs nothing."""
    since: int | None = None
    """When it began, in epoch ms; None if it is not known."""
    count: int | None = None
    """The number of orders or messages; None for other kinds."""
    like: Trouble | None = None
    """The kind that has the severity and the command of an alarm; None for `kind`."""
    graded: AlertSeverity | None = None
    """The severity of an alert that has one of its own; None for that of its kind."""

    @property
    def row(self) -> Trouble:
        """The row with the severity and the command."""
        return self.like or self.kind

    @property
    def place(self) -> tuple[Trouble, str]:
        """What is wrong and where, which two findings of one fault have in common."""
        return self.kind, self.where

    @property
    def command(self) -> str | None:
        """The command that the operator should type next; None if there is none."""
        command, about = self.row.command, self.about
        if command is None or ("{about}" in command and about is None):
            return None
        verb, _, place = command.removeprefix("roundsman ").rpartition(" ")
        if place in ("{where}", "{about}") and command.startswith("roundsman "):
            return command_line(verb, about or self.where)  # quoted for a shell
        return command.format(about=about)

    @property
    def severity(self) -> AlertSeverity:
        """How soon a person must act, as an alert says it."""
        alert = self.row.alert
        return self.graded or (alert.severity if alert else "critical")

    @property
    def sentence(self) -> str:
        """The finding as an alert says it."""
        return (self.kind.alert or StandingAlert("critical")).sentence.format(
            where=self.where,
            evidence=self.evidence,
            messages=counted(self.count or 0, "message"),
            were="was" if self.count == 1 else "were",
        )

    def alert_document(self) -> AlertDocument:
        """Return the alert as JSON for scripts."""
        return {
            "kind": cast("AlertSource", self.kind.replace("-", "_")),
            "about": self.where,
            "severity": self.severity,
            "since": None if self.since is None else iso(self.since),
            "count": self.count,
            "sentence": self.sentence,
            "next": self.command or DOCTOR,
            "page": self.row.page,
        }


def in_order(found: Iterable[Finding]) -> list[Finding]:
    """Sort findings by severity, kind and place; keep one of those with equal kind and place."""
    kinds, severities = list[Trouble]([*FindingKind]), list(Severity)
    once = {one.place: one for one in found}
    return sorted(
        once.values(),
        key=lambda one: (severities.index(one.kind.severity), kinds.index(one.kind), one.where),
    )


def worst_first(found: Iterable[Finding]) -> list[Finding]:
    """Sort alerts by severity, and those of one severity by their time, the newest first."""
    by_time = sorted(found, key=lambda one: (one.since is None, -(one.since or 0)))
    return sorted(by_time, key=lambda one: ALERT_SEVERITIES.index(one.severity))


def newest_first(found: Iterable[Finding]) -> list[Finding]:
    """Sort alerts by `since`, the newest first; those with an unknown `since` come last."""
    return sorted(
        found, key=lambda one: (one.since is None, -(one.since or 0), one.kind, one.where)
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


def unread_of(unseen: Iterable[Unseen]) -> list[Unread]:
    """Return what could not be read, with the causes."""
    return [Unread(one.what, one.cause or one.why) for one in unseen]


class Looking:
    """Notes which reads failed. `progress` is called with what is being read."""

    def __init__(self, progress: Callable[[str], None] = lambda _: None) -> None:
        self._missed: list[Unseen] = []
        self.progress = progress
        self.published: list[Published] = []
        """The versions of functions that were read."""

    def at(self, what: str) -> "Reading":
        """Return a context manager for one read, which notes an error under the name `what`."""
        return Reading(self, what)

    def missed(self, what: str, why: str, *, lacking: bool = False, cause: str = "") -> None:
        """Note that `what` could not be read. `lacking` and `cause` are as in `Unseen`."""
        self._missed.append(Unseen(what, why, lacking, cause))

    @property
    def parts(self) -> Sequence[Unseen]:
        """The parts that could not be read, each by itself."""
        return [*dict.fromkeys(self._missed)]

    @property
    def unseen(self) -> Sequence[Unseen]:
        """The parts that could not be read, one entry per reason."""
        by_reason: dict[tuple[str, bool, str], list[str]] = defaultdict(list)
        for one in self.parts:
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
    published: Sequence[Published] = ()
    """The versions of the functions."""


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
        return unread_of(one for one in self.unseen if not one.lacking)

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
                    "kind": cast("FindingKind", one.kind),
                    "severity": one.kind.severity,
                    "where": one.where,
                    "evidence": one.evidence,
                    "means": one.kind.means,
                    "repair": one.kind.repair,
                    "command": one.command,
                    "page": one.kind.page,
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
                    "kind": cast("FindingKind", one.finding.kind),
                    "where": one.finding.where,
                    "does": INSPECTS,
                    "mended": one.mended,
                    "problem": one.problem,
                }
                for one in self.repairs
            ],
        }


@dataclass(frozen=True, slots=True)
class StandingAlerts:
    """The alerts whose cause still exists, as far as they could be read."""

    standing: Sequence[Finding] = ()
    unseen: Sequence[Unseen] = ()
    """The sources that could not be read."""

    @property
    def unread(self) -> list[str]:
        """Each source that could not be read, with its error as a sentence."""
        return [f"{one.what}: {one.why}" for one in self.unseen]

    def document(self, limit: int) -> AlertListDocument:
        """Return the newest `limit` alerts as JSON for scripts."""
        return {
            "alerts": [one.alert_document() for one in newest_first(self.standing)[:limit]],
            "more": len(self.standing) > limit,
            "unread": self.unread,
        }
