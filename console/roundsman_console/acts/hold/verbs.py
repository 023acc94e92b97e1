"""The verbs on agents and on the orders of workflows: hold and release."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar

from roundsman.model.holds import ALL_ORDERS, BREAKER, EVERY_WORKFLOW, OPERATOR, Hold
from roundsman.model.instants import SECOND, format_duration, second
from roundsman_console.acts.hold.agents import can_be_released, hold_agent, release_agent
from roundsman_console.acts.hold.orders import (
    OrdersRelease,
    find_order_hold,
    held_orders,
    hold_orders,
    release_orders,
)
from roundsman_console.acts.hold.results import Held, Released, WatchedRelease, Woke
from roundsman_console.acts.hold.wake import Woken, waiting_words, wake_released
from roundsman_console.acts.hold.watch import Watched, watch_released
from roundsman_console.acts.verb import (
    Argument,
    Asked,
    Confirmed,
    Form,
    Preview,
    Progress,
    StackVerb,
    Subject,
)
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.errors import Interrupted, InvalidArgument
from roundsman_console.base.limits import (
    LONGEST_HOLD,
    LONGEST_WATCH,
    SHORTEST_HOLD,
    SHORTEST_WATCH,
    STOP_AT,
)
from roundsman_console.base.result import Noun, Result, WayBack
from roundsman_console.base.typed_inputs import read_duration, read_stop_at, read_workflow
from roundsman_console.facts.agent.reading import AgentNow, find_agent
from roundsman_console.facts.hold.documents import HeldDocument, ReleasedDocument
from roundsman_console.facts.hold.view import circuit_sentence, order_hold_sentence, orders_of

AGENT = Argument(help="The agent's name, as in: roundsman agents", metavar="[AGENT]", label="Agent")
WORKFLOW = Argument(
    "--workflow",
    "The orders of this workflow, and no agent.",
    metavar="NAME",
    label="Workflow",
    hint="its name, as in the list of orders",
    read=read_workflow,
    read_field=lambda text: text if text == EVERY_WORKFLOW else read_workflow(text),
)
ALL = Argument("--all", "All orders, and no agent.", label="All orders")
OF_TARGETS = ("agent", "workflow", "everything")
"""The arguments of which one says what the verb is about."""

WATCH = 120
"""Seconds for which the release of a share is watched, if nobody says how long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnHoldVerb(StackVerb):
    """A verb on an agent, on the orders of a workflow, or on all orders."""

    noun = Noun.AGENTS
    of_orders: ClassVar[Sequence[str]]
    """The arguments that do not apply to an agent."""
    does_to_agent: ClassVar[str]
    does_to_orders: ClassVar[str]

    agent: Annotated[str | None, AGENT] = None
    workflow: Annotated[str | None, WORKFLOW] = None
    everything: Annotated[bool, ALL] = False

    @property
    def orders_of(self) -> str | None:
        """The workflow of a verb on orders, or EVERY_WORKFLOW; None for a verb on an agent."""
        return EVERY_WORKFLOW if self.everything else self.workflow

    def check(self) -> None:
        """Raise InvalidArgument unless exactly one target is given."""
        given = (self.agent is not None, self.workflow is not None, self.everything)
        if given.count(True) != 1:
            raise InvalidArgument("Give exactly one of AGENT, --workflow NAME and --all.")

    @classmethod
    def subject(cls, stack: DeployedStack, given: Form) -> Subject:
        if given.get("agent", ""):
            return cls.on_agent(find_agent(stack, given["agent"]))
        workflow = given.get("workflow", "")
        return cls._on_orders(workflow) if workflow else Subject("")

    @classmethod
    def on_agent(cls, agent: AgentNow) -> Subject:
        """Return the agent as what the verb is about. Nothing is read."""
        left_out = (*OF_TARGETS, *cls.of_orders)
        return Subject(agent.name, {"agent": agent.name}, left_out, cls.does_to_agent)

    @classmethod
    def _on_orders(cls, workflow: str) -> Subject:
        given = {"workflow": workflow}
        return Subject(orders_of(workflow), given, OF_TARGETS, cls.does_to_orders)


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldVerb(OnHoldVerb):
    """Give an agent no work for a while, or let no step of a workflow's orders begin.

    What waits counts no attempt. New orders are accepted, and what runs at an agent is finished.

    Example: roundsman hold payment --for 30m --reason "acquirer maintenance"

    Example: roundsman hold --all --for 30m --reason "wrong prices"
    """

    name = "hold"
    title = "Hold"
    reason = "Reason, shown for every step that waits."
    document = HeldDocument
    confirmed = Confirmed.BY_YES
    of_orders = ("undos",)
    does_to_agent = (
        "Give the agent no work for a while. Orders that need it wait and lose no attempt, and "
        "calls under way may finish."
    )
    does_to_orders = (
        "Let no step of these orders begin for a while. New orders are accepted and wait, and what "
        "runs at an agent is finished. No attempt is counted."
    )

    seconds: Annotated[
        int,
        Argument(
            "--for",
            "Duration of the hold: 90s, 30m, 2h, 1d; at most 7d.",
            label="For how long",
            hint="90s, 30m, 2h or 1d; at most 7d",
            proposed="30m",
            read=partial(read_duration, least=SHORTEST_HOLD, most=LONGEST_HOLD),
        ),
    ]
    undos: Annotated[
        bool, Argument("--undos-too", "Undos of the orders wait as well.", label="Undos wait too")
    ] = False

    def check(self) -> None:
        """Raise InvalidArgument unless exactly one target is given, or for --undos-too alone."""
        OnHoldVerb.check(self)
        if self.undos and self.agent is not None:
            raise InvalidArgument(
                "An agent on hold makes no undos either: --undos-too goes with --workflow or --all."
            )

    @classmethod
    def on_agent(cls, agent: AgentNow) -> Subject:
        subject, held = super(HoldVerb, cls).on_agent(agent), agent.hold(OPERATOR)
        if held is None:
            return subject
        before = f"It would replace the hold by {held.by} until {second(held.until)}: {held.reason}"
        return replace(subject, notes=[before])

    def preview(self, stack: DeployedStack) -> Preview:
        lasts = format_duration(self.seconds * SECOND)
        if self.orders_of is None:
            return self._preview_of_agent(stack, find_agent(stack, self.agent or ""), lasts)
        workflow = self.orders_of
        before = find_order_hold(stack, workflow)
        any_order = "any order" if workflow == EVERY_WORKFLOW else orders_of(workflow)
        held = "" if before is None else order_hold_sentence(before)

        def go(asked: Asked) -> Held:
            found = hold_orders(
                stack, workflow, self.seconds, undos=self.undos, by=asked.by, reason=asked.reason
            )
            return Held(found)

        return Preview(
            f"No step of {any_order} would begin for {lasts}. {held}".strip(),
            go,
            _version(() if before is None else (before,)),
            f"{held} Hold {orders_of(workflow)} for {lasts}?".strip(),
            subject=self._on_orders(workflow),
        )

    def _preview_of_agent(self, stack: DeployedStack, agent: AgentNow, lasts: str) -> Preview:
        def go(asked: Asked) -> Held:
            held = hold_agent(stack, agent, self.seconds, by=asked.by, reason=asked.reason)
            circuits = [hold for hold in agent.holds if hold.kind == BREAKER]
            back = WayBack(
                f"Undo: release {agent.name}",
                ReleaseVerb.name,
                {"agent": agent.name, "reason": ""},
                _version((*circuits, held.hold)),
            )
            return Held(held, back if held.replaced is None else None)

        held = agent.hold(OPERATOR)
        before = ""
        if held is not None:
            before = f"{agent.name} is held by {held.by} until {second(held.until)}: {held.reason}."
        return Preview(
            f"{agent.name} would make no new call for {lasts}: orders that need it wait, and calls "
            "under way may finish.",
            go,
            _version(agent.holds),
            f"{before} Hold {agent.name} for {lasts}?".strip(),
            subject=self.on_agent(agent),
        )


def _read_share(text: str) -> int:
    share = text.strip().removesuffix("%")
    if not share.isascii() or not share.isdecimal() or not 1 <= int(share[:4]) <= ALL_ORDERS:
        raise InvalidArgument(f"--share must be 1 to {ALL_ORDERS} percent, not {text!r}.")
    return int(share)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseVerb(OnHoldVerb):
    """End the hold of an agent or of orders, and wake the tasks that wait for it.

    Orders can go on in shares: each share contains the one before. If too many of those that were
    woken fail while the command watches them, all are held again.

    Example: roundsman release payment --reason "the acquirer is back"

    Example: roundsman release --all --share 1 --watch 5m --reason "prices are right"
    """

    name = "release"
    title = "Release"
    reason = "Reason, sent to the other operators."
    needs_reason = "optional"
    document = ReleasedDocument
    of_orders = ("share", "watch", "stop_at")
    does_to_agent = "End the hold of the agent, and wake the orders that wait for it."
    does_to_orders = (
        "Let these orders go on, all or a share of them, which contains each smaller share. If too "
        "many of the woken orders fail while they are watched, all are held again."
    )

    share: Annotated[
        int | None,
        Argument(
            "--share",
            "The share of the orders that go on, in percent: 1, 10, 100. All if it is left out.",
            metavar="PERCENT",
            label="Share of the orders in percent",
            hint="1, 10 or 100; all by default",
            read=_read_share,
        ),
    ] = None
    watch: Annotated[
        int | None,
        Argument(
            "--watch",
            "How long to watch the orders that were woken: 30s, 5m; 2m with --share.",
            label="Watch the woken orders for",
            hint="30s or 5m; 2m by default for a share",
            read=partial(read_duration, least=SHORTEST_WATCH, most=LONGEST_WATCH),
        ),
    ] = None
    stop_at: Annotated[
        float | None,
        Argument(
            "--stop-at",
            f"Hold all again if a larger share of the woken orders fails: {STOP_AT} by default.",
            metavar="SHARE",
            label="Hold all again if more fail",
            hint=f"{STOP_AT} by default",
            read=read_stop_at,
        ),
    ] = None

    @property
    def goes_on(self) -> int:
        """The share of the orders that go on, in percent."""
        return ALL_ORDERS if self.share is None else self.share

    @property
    def watches_for(self) -> int:
        """For how many seconds the orders are watched; 0 if they are not."""
        return self.watch or (WATCH if self.share is not None or self.stop_at is not None else 0)

    @property
    def stops_at(self) -> float:
        """The share of failed orders (0 to 1) above which all are held again."""
        return read_stop_at(STOP_AT) if self.stop_at is None else self.stop_at

    def check(self) -> None:
        """Raise InvalidArgument unless exactly one target is given, or for a share of an agent."""
        OnHoldVerb.check(self)
        given = (self.share, self.watch, self.stop_at)
        if self.agent is not None and any(one is not None for one in given):
            raise InvalidArgument(
                "An agent is released as a whole: --share, --watch and --stop-at go with "
                "--workflow or --all."
            )

    @classmethod
    def on_agent(cls, agent: AgentNow) -> Subject:
        subject, circuit = super(ReleaseVerb, cls).on_agent(agent), agent.hold(BREAKER)
        if can_be_released(agent):
            return subject
        also = f" {circuit_sentence(circuit)}" if circuit else ""
        why = f"{agent.name} is not held, so there is nothing to release.{also}"
        return replace(subject, impossible=why)

    def preview(self, stack: DeployedStack) -> Preview:
        if self.orders_of is None:
            agent = find_agent(stack, self.agent or "")
            ends = f"The hold of {agent.name} would end now, and what waits for it would go on."
            return Preview(
                f"{ends} {waiting_words(stack, agent.name)}".strip(),
                lambda asked: Released(
                    release_agent(stack, agent.name, by=asked.by, reason=asked.reason)
                ),
                _version(agent.holds),
                subject=self.on_agent(agent),
                goes_on=partial(self._wake, stack),
                left=WOKEN_LATER,
            )
        workflow = self.orders_of
        before = held_orders(stack, workflow)
        orders = "all orders" if workflow == EVERY_WORKFLOW else orders_of(workflow)
        not_watched = ", and are not watched" if self.watches_for else ""
        return Preview(
            f"{self.goes_on} % of {orders} would go on now. {order_hold_sentence(before)}",
            lambda asked: Released(
                release_orders(stack, workflow, self.goes_on, by=asked.by, reason=asked.reason)
            ),
            _version([before]),
            subject=self._on_orders(workflow),
            goes_on=partial(self._wake, stack),
            left=WOKEN_LATER.removesuffix(".") + f"{not_watched}.",
        )

    def _wake(self, stack: DeployedStack, released: Result, progress: Progress) -> Iterator[Result]:
        """Wake the orders that wait for what was released, and watch them."""
        if not isinstance(released, Released):
            return
        release = released.release
        progress("the first orders that wait for it are woken")
        try:
            woken, lost = wake_released(stack, release)
        except Interrupted:
            woken, lost = Woken(more=True), "interrupted"
        yield Woke(release, woken, lost)
        if isinstance(release, OrdersRelease) and self.watches_for:
            yield self._watch(stack, release, woken, progress)

    def _watch(
        self, stack: DeployedStack, release: OrdersRelease, woken: Woken, progress: Progress
    ) -> WatchedRelease:
        watched = Watched(0, self.stops_at)

        def note(so_far: Watched) -> None:
            nonlocal watched
            watched = so_far
            progress(f"{so_far.failed} of {so_far.orders} woken orders have failed")

        ended = WatchedRelease(release, woken, watched, self.watches_for)
        try:
            watched = watch_released(
                stack,
                release,
                woken,
                seconds=self.watches_for,
                stop_at=self.stops_at,
                progress=note,
            )
        except KeyboardInterrupt:
            watched = replace(watched, not_held="interrupted")
            return replace(ended, watched=watched, interrupted=True)
        return replace(ended, watched=watched)


WOKEN_LATER = "The supervisor wakes the orders that wait for it within two minutes."
"""What becomes of the orders that wait for what was released, and are not woken at once."""


def _version(holds: Iterable[Hold]) -> str:
    """The holds, as a version of what is shown of them."""
    return str([(hold.kind, hold.since, hold.until, hold.released, hold.undos) for hold in holds])
