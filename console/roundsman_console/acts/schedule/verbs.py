"""The verbs on recurring orders: pause, resume, run now, and make up for runs of the past."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from roundsman.command_line import command_line
from roundsman.model.instants import SECOND, second
from roundsman.model.schedules import MOST_QUEUED, Overlap, Pause, is_under_way
from roundsman.model.schedules import open_order as known_of
from roundsman.wire.limits import wire_text
from roundsman_console.acts.order.following import client_of
from roundsman_console.acts.verb import (
    Argument,
    Asked,
    Confirmed,
    Form,
    Item,
    Preview,
    Progress,
    StackVerb,
    Subject,
    no_progress,
)
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import now
from roundsman_console.base.counted import counted
from roundsman_console.base.errors import InvalidArgument, NotPossible
from roundsman_console.base.result import CommandOutcome, Noun, Result
from roundsman_console.base.typed_inputs import read_instant, read_workflow
from roundsman_console.facts.schedule.reading import RecurringOrder, find_schedule, read_target

MOST_RUNS = MOST_QUEUED
"""The most runs that one backfill makes: as many as may wait for each other."""
SCHEDULE = Argument(
    metavar="SCHEDULE", help="The orderId of its event, as in: roundsman schedules ls.", label=""
)


@dataclass(frozen=True, slots=True)
class PauseChanged(Result):
    """A pause that was stored or ended."""

    schedule: str | None
    workflow: str | None
    paused: bool
    sentence: str

    def words(self) -> Sequence[str]:
        return [self.sentence]


@dataclass(frozen=True, slots=True, kw_only=True)
class OnPauseVerb(StackVerb):
    """A verb on a schedule, or on every schedule of a workflow."""

    document = PauseChanged
    noun = Noun.SCHEDULES

    schedule: Annotated[
        str | None,
        Argument(metavar="[SCHEDULE]", help=SCHEDULE.help, label="Schedule"),
    ] = None
    workflow: Annotated[
        str | None,
        Argument(
            "--workflow",
            "Every schedule of this workflow.",
            metavar="NAME",
            label="Workflow",
            hint="every schedule of it",
            read=read_workflow,
        ),
    ] = None

    def check(self) -> None:
        """Raise InvalidArgument unless exactly one target is given."""
        if (self.schedule is None) == (self.workflow is None):
            raise InvalidArgument("Give either SCHEDULE or --workflow NAME.")

    @classmethod
    def subject(cls, stack: DeployedStack, given: Form) -> Subject:
        schedule = given.get("schedule", "")
        if not schedule:
            return Subject("")
        find_schedule(stack, schedule, now())
        return Subject(schedule, {"schedule": schedule}, ("schedule", "workflow"))

    @property
    def target(self) -> str:
        """What the pause is about, as it is stored."""
        return read_target(self.schedule, self.workflow)

    @property
    def named(self) -> str:
        """What the pause is about, in words."""
        return self.schedule or f"every schedule of {self.workflow}"

    def changed(self, sentence: str, *, paused: bool) -> PauseChanged:
        """Return that the pause was stored or ended."""
        return PauseChanged(self.schedule, self.workflow, paused, sentence)


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseScheduleVerb(OnPauseVerb):
    """Skip the runs of a schedule, or of every schedule of a workflow, until it is resumed.

    Orders that were begun go on. The runs that are skipped are listed, and `roundsman schedules
    backfill` makes their orders.

    Example: roundsman schedules pause weekly-paper --reason "stocktaking"
    """

    name = "schedules pause"
    title = "Pause"
    reason = "Reason, shown for each run that is skipped."

    def preview(self, stack: DeployedStack) -> Preview:
        if self.schedule is not None:
            find_schedule(stack, self.schedule, now())
        before = _pause_of(stack, self.target)

        def go(asked: Asked) -> PauseChanged:
            by, why = wire_text(asked.by), wire_text(asked.reason)
            stack.schedules.pause(Pause(self.target, now(), by, why))
            return self.changed(f"Done: the runs of {self.named} are skipped.", paused=True)

        already = "" if before is None else f" Now {before}."
        return Preview(f"The runs of {self.named} would be skipped.{already}", go, str(before))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeScheduleVerb(OnPauseVerb):
    """Resume a schedule, or every schedule of a workflow. Runs that were skipped stay skipped.

    Example: roundsman schedules resume weekly-paper
    """

    name = "schedules resume"
    title = "Resume"
    reason = ""
    reason_options = ()
    needs_reason = "none"

    def preview(self, stack: DeployedStack) -> Preview:
        before = _pause_of(stack, self.target)
        if before is None:
            raise NotPossible(f"{self.named} is not paused.")

        def go(_asked: Asked) -> PauseChanged:
            stack.schedules.resume(self.target)
            return self.changed(f"Done: {self.named} makes orders again.", paused=False)

        return Preview(f"{before}. It would be resumed.", go, str(before))


@dataclass(frozen=True, slots=True)
class RunsSent(Result):
    """The orders of runs that were sent to the SubmissionQueue, or would be."""

    schedule: str
    orders: Sequence[str]
    """Their ids."""
    sent: bool = True

    def words(self) -> Sequence[str]:
        those = f"{counted(len(self.orders), 'order')} of {self.schedule}"
        if not self.sent:
            return [f"{those} would be sent."]
        return [f"Sent: {those}." if self.orders else "Nothing was sent."]

    def ended(self) -> CommandOutcome:
        return CommandOutcome.DONE if self.sent else CommandOutcome.DRY_RUN

    def lines(self) -> Sequence[str]:
        return [*self.words(), *(f"See: {command_line('show', one)}" for one in self.orders[:1])]

    def leads_to(self) -> str:
        return self.orders[0] if len(self.orders) == 1 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnRunsVerb(StackVerb):
    """A verb that sends orders of a schedule."""

    reason = ""
    reason_options = ()
    needs_reason = "none"
    document = RunsSent
    noun = Noun.SCHEDULES

    schedule: Annotated[str, SCHEDULE]

    @classmethod
    def subject(cls, stack: DeployedStack, given: Form) -> Subject:
        schedule = given.get("schedule", "")
        find_schedule(stack, schedule, now())
        return Subject(schedule, {"schedule": schedule})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScheduleVerb(OnRunsVerb):
    """Send the order of a schedule now, also while it is paused or off.

    Its id has the present time, so it is another order than those of the schedule.

    Example: roundsman schedules run weekly-paper
    """

    name = "schedules run"
    title = "Run now"
    confirmed = Confirmed.BY_YES

    def preview(self, stack: DeployedStack) -> Preview:
        at = now()
        found = find_schedule(stack, self.schedule, at)
        body, order_id = found.event_of(at - at % SECOND)
        waits = _waits_for(stack, found, at)
        if waits and found.overlap is Overlap.SKIP:
            raise NotPossible(
                f"{waits} has not ended, and {self.schedule} skips a run then. Send it later."
            )
        when = f"when {waits} has ended" if waits else "now"

        def go(_asked: Asked) -> RunsSent:
            client_of(stack).submit_text(body)
            return RunsSent(self.schedule, [order_id])

        would = f"{order_id} would be sent, and begin {when}."
        return Preview(would, go, waits, f"{would} Send it?")


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillVerb(OnRunsVerb):
    """Make the orders of the runs of a span of time, as the schedule would have made them.

    Without --go it only shows them. Each order has the id that its run would have had, so a run
    whose order there is makes nothing, and the command can be repeated. If the schedule does not
    let runs overlap, the orders begin one after the other.

    Example: roundsman schedules backfill weekly-paper --from 2026-12-01T00:00:00Z --go
    """

    name = "schedules backfill"
    title = "Backfill"
    confirmed = Confirmed.BY_GO
    searches = True

    since: Annotated[
        int,
        Argument(
            "--from",
            "The first instant of the span, in UTC: 2026-12-01T00:00:00Z.",
            metavar="INSTANT",
            label="From, in UTC",
            hint="2026-12-01T00:00:00Z",
            read=read_instant,
        ),
    ]
    """In epoch ms."""
    until: Annotated[
        int | None,
        Argument(
            "--until",
            "The last instant of the span; now by default.",
            metavar="INSTANT",
            label="Until, in UTC",
            hint="now by default",
            read=read_instant,
        ),
    ] = None

    def check(self) -> None:
        """Raise InvalidArgument for a span that ends before it begins, or in the future."""
        last = now() if self.until is None else self.until
        if last > now():
            raise InvalidArgument("A backfill is of the past: --until is in the future.")
        if last < self.since:
            raise InvalidArgument("The span ends before it begins.")

    def preview(self, stack: DeployedStack) -> Preview:
        return self.search(stack, no_progress)

    def search(self, stack: DeployedStack, progress: Progress) -> Preview:
        found = find_schedule(stack, self.schedule, now())
        last = now() if self.until is None else self.until
        overlap = Overlap.QUEUE if found.overlap is Overlap.SKIP else None
        runs = list[tuple[int, str, str, bool]]()
        for at in found.runs(self.since - 1, last):
            if len(runs) >= MOST_RUNS:
                raise InvalidArgument(
                    f"The span has more than {MOST_RUNS} runs: make it shorter, and repeat it."
                )
            body, order_id = found.event_of(at, overlap)
            runs.append((at, body, order_id, stack.tasks.has_order(order_id)))
            progress(f"{len(runs)} runs looked at")
        missing = [(body, order_id) for _, body, order_id, there in runs if not there]
        skipped = {one.order: one.reason for one in found.skipped}

        def go(_asked: Asked) -> RunsSent:
            client = client_of(stack)
            for body, _ in missing:
                client.submit_text(body)
            return RunsSent(self.schedule, [order_id for _, order_id in missing])

        options = ("--from", second(self.since), "--until", second(last), "--go")
        those = counted(len(missing), "order")
        return Preview(
            f"{those} of {counted(len(runs), 'run')} would be made. Nothing was sent.",
            go,
            " ".join(order_id for _, order_id in missing),
            f"Make {those} of {self.schedule}?" if missing else "",
            found=RunsSent(self.schedule, [order_id for _, order_id in missing], sent=False),
            items=[
                Item(order_id, second(at), *_verdict(there, skipped.get(order_id)), goes=not there)
                for at, _, order_id, there in runs
            ],
            items_are=("Order", "Run"),
            command=command_line("schedules backfill", self.schedule, options=options),
        )


def _verdict(there: bool, skipped: str | None) -> tuple[str, str]:
    if there:
        return "there is", "its order is stored"
    return "made", "it was not made" if skipped is None else f"it was skipped: {skipped}"


def _pause_of(stack: DeployedStack, target: str) -> Pause | None:
    return next((one for one in stack.schedules.pauses() if one.target == target), None)


def _waits_for(stack: DeployedStack, schedule: RecurringOrder, at: int) -> str:
    """The order for which a run would have to wait now; empty if there is none."""
    if schedule.overlap is Overlap.ALLOW or schedule.current is None:
        return ""
    record = stack.schedules.read(schedule.schedule)
    task = stack.tasks.load(record.current, at)
    last = known_of(None if task is None else task.state)
    return record.current if record.queued or is_under_way(record, last, at) else ""


OF_SCHEDULES: Sequence[type[StackVerb]] = (
    PauseScheduleVerb,
    ResumeScheduleVerb,
    RunScheduleVerb,
    BackfillVerb,
)
