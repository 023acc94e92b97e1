"""The verbs on recurring orders: pause, resume, run now, and make up for runs of the past."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from roundsman.command_line import command_line
from roundsman.model.instants import SECOND, second
from roundsman.model.schedules import MOST_QUEUED, OF_WORKFLOW, Pause
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
from roundsman_console.facts.schedule.reading import find_schedule

MOST_RUNS = MOST_QUEUED
"""The most runs that one backfill makes: as many as may wait for each other."""
NAME_HELP = "The orderId of its event, as in: roundsman schedules ls."
WORKFLOW = Argument(
    "--workflow", "Every schedule of this workflow.", metavar="NAME", read=read_workflow
)
SINCE = Argument(
    "--from",
    "The first instant of the span, in UTC: 2026-12-01T00:00:00Z.",
    metavar="INSTANT",
    read=read_instant,
)
UNTIL = Argument(
    "--until", "The last instant of the span; now by default.", metavar="INSTANT", read=read_instant
)


@dataclass(frozen=True, slots=True)
class PauseChanged(Result):
    """A pause that was stored or ended."""

    target: str
    """The schedule, or every schedule of a workflow, in words."""
    paused: bool

    def words(self) -> Sequence[str]:
        now_so = "are skipped" if self.paused else "make orders again"
        return [f"Done: the runs of {self.target} {now_so}."]


@dataclass(frozen=True, slots=True, kw_only=True)
class OnScheduleVerb(StackVerb):
    """A verb on a schedule."""

    reason: ClassVar[str] = ""
    reason_options: ClassVar[tuple[str, ...]] = ()
    needs_reason: ClassVar[Literal["required", "optional", "none"]] = "none"
    noun = Noun.SCHEDULES

    @classmethod
    def subject(cls, stack: DeployedStack, given: Form) -> Subject:
        if not given.get("schedule"):
            return Subject("")
        name = find_schedule(stack, given["schedule"], now()).schedule
        return Subject(name, {"schedule": name}, ("schedule", "workflow"))


@dataclass(frozen=True, slots=True, kw_only=True)
class OnPauseVerb(OnScheduleVerb):
    """A verb on a schedule, or on every schedule of a workflow."""

    document = PauseChanged

    schedule: Annotated[str | None, Argument(metavar="[SCHEDULE]", help=NAME_HELP)] = None
    workflow: Annotated[str | None, WORKFLOW] = None

    def check(self) -> None:
        """Raise InvalidArgument unless exactly one target is given."""
        if (self.schedule is None) == (self.workflow is None):
            raise InvalidArgument("Give either SCHEDULE or --workflow NAME.")

    @property
    def target(self) -> str:
        """What the pause is about, as it is stored."""
        return self.schedule or f"{OF_WORKFLOW}{self.workflow}"

    @property
    def named(self) -> str:
        """What the pause is about, in words."""
        return self.schedule or f"every schedule of {self.workflow}"

    def pause_in(self, stack: DeployedStack) -> Pause | None:
        """Return the pause of the target; None if it is not paused."""
        return next((one for one in stack.schedules.pauses() if one.target == self.target), None)


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
    reason_options = ("--reason",)
    needs_reason = "required"

    def preview(self, stack: DeployedStack) -> Preview:
        if self.schedule is not None:
            find_schedule(stack, self.schedule, now())
        before = self.pause_in(stack)

        def go(asked: Asked) -> PauseChanged:
            by, why = wire_text(asked.by), wire_text(asked.reason)
            stack.schedules.pause(Pause(self.target, now(), by, why))
            return PauseChanged(self.named, paused=True)

        already = "" if before is None else f" Now {before}."
        return Preview(f"The runs of {self.named} would be skipped.{already}", go, str(before))


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeScheduleVerb(OnPauseVerb):
    """Resume a schedule, or every schedule of a workflow. Runs that were skipped stay skipped.

    Example: roundsman schedules resume weekly-paper
    """

    name = "schedules resume"
    title = "Resume"

    def preview(self, stack: DeployedStack) -> Preview:
        before = self.pause_in(stack)
        if before is None:
            raise NotPossible(f"{self.named} is not paused.")

        def go(_asked: Asked) -> PauseChanged:
            stack.schedules.resume(self.target)
            return PauseChanged(self.named, paused=False)

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
        return [f"Sent: {those}." if self.sent else f"{those} would be sent."]

    def ended(self) -> CommandOutcome:
        return CommandOutcome.DONE if self.sent else CommandOutcome.DRY_RUN

    def leads_to(self) -> str:
        return self.orders[0] if len(self.orders) == 1 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnRunsVerb(OnScheduleVerb):
    """A verb that sends orders of a schedule."""

    document = RunsSent

    schedule: Annotated[str, Argument(metavar="SCHEDULE", help=NAME_HELP, label="")]

    def sent(self, stack: DeployedStack, events: Sequence[tuple[str, str]]) -> RunsSent:
        """Send these events, each with the id of its order."""
        client = client_of(stack)
        for body, _ in events:
            client.submit_text(body)
        return RunsSent(self.schedule, [order_id for _, order_id in events])


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScheduleVerb(OnRunsVerb):
    """Send the order of a schedule now, also while it is paused or off.

    Its id has the present time, so it is another order than those of the schedule. If the schedule
    does not let runs overlap, it begins when the last one has ended.

    Example: roundsman schedules run weekly-paper
    """

    name = "schedules run"
    title = "Run now"
    confirmed = Confirmed.BY_YES

    def preview(self, stack: DeployedStack) -> Preview:
        at = now()
        event = find_schedule(stack, self.schedule, at).event_of(at - at % SECOND)
        would = f"{event[1]} would be sent."
        return Preview(would, lambda _: self.sent(stack, [event]), question=f"{would} Send it?")


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillVerb(OnRunsVerb):
    """Make the orders of the runs of a span of time, as the schedule would have made them.

    Without --go it only shows them. Each order has the id that its run would have had, so a run
    whose order there is makes nothing, and the command can be repeated. If the schedule does not
    let runs overlap, the orders begin one after the other.

    Example: roundsman schedules backfill weekly-paper --from 2026-01-05T00:00:00Z --go
    """

    name = "schedules backfill"
    title = "Backfill"
    confirmed = Confirmed.BY_GO
    searches = True

    since: Annotated[int, SINCE]
    until: Annotated[int | None, UNTIL] = None

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
        last = now() if self.until is None else self.until
        found = find_schedule(stack, self.schedule, now())
        skipped = {one.order: f"it was skipped: {one.reason}" for one in found.skipped}
        missing, items = list[tuple[str, str]](), list[Item]()
        for at in found.runs(self.since - 1, last):
            if len(items) >= MOST_RUNS:
                raise InvalidArgument(
                    f"The span has more than {MOST_RUNS} runs: make it shorter, and repeat it."
                )
            body, order = found.event_of(at)
            if stack.tasks.has_order(order):
                items.append(Item(order, second(at), "there is", "its order is stored", goes=False))
            else:
                missing.append((body, order))
                why = skipped.get(order, "it was not made")
                items.append(Item(order, second(at), "made", why, goes=True))
            progress(f"{len(items)} runs looked at")
        orders = [order for _, order in missing]
        options = ("--from", second(self.since), "--until", second(last), "--go")
        those = counted(len(orders), "order")
        return Preview(
            f"{those} of {counted(len(items), 'run')} would be made. Nothing was sent.",
            lambda _: self.sent(stack, missing),
            " ".join(orders),
            f"Make {those} of {self.schedule}?" if orders else "",
            found=RunsSent(self.schedule, orders, sent=False),
            items=items,
            items_are=("Order", "Run"),
            command=command_line("schedules backfill", self.schedule, options=options),
        )


OF_SCHEDULES: Sequence[type[StackVerb]] = (
    PauseScheduleVerb,
    ResumeScheduleVerb,
    RunScheduleVerb,
    BackfillVerb,
)
