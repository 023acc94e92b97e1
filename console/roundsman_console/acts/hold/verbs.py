"""The verbs on agents and on the orders of workflows: hold and release."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated

from roundsman.model.holds import ALL_ORDERS, EVERY_WORKFLOW
from roundsman_console.acts.verb import Argument, Verb
from roundsman_console.base.errors import InvalidArgument
from roundsman_console.base.limits import (
    LONGEST_HOLD,
    LONGEST_WATCH,
    SHORTEST_HOLD,
    SHORTEST_WATCH,
    STOP_AT,
)
from roundsman_console.base.typed_inputs import read_duration, read_stop_at, read_workflow
from roundsman_console.facts.hold.documents import HeldDocument, ReleasedDocument

AGENT = Argument(help="The agent's name, as in: roundsman agents", metavar="[AGENT]", label="")
WORKFLOW = Argument(
    "--workflow",
    "The orders of this workflow, and no agent.",
    metavar="NAME",
    label="",
    read=read_workflow,
)
ALL = Argument("--all", "All orders, and no agent.", label="")

WATCH = 120
"""Seconds for which the release of a share is watched, if nobody says how long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnHoldVerb(Verb):
    """A verb on an agent, on the orders of a workflow, or on all orders."""

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
        bool, Argument("--undos-too", "Undos of the orders wait as well.", label="")
    ] = False

    def check(self) -> None:
        """Raise InvalidArgument unless exactly one target is given, or for --undos-too alone."""
        OnHoldVerb.check(self)
        if self.undos and self.agent is not None:
            raise InvalidArgument(
                "An agent on hold makes no undos either: --undos-too goes with --workflow or --all."
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

    share: Annotated[
        int | None,
        Argument(
            "--share",
            "The share of the orders that go on, in percent: 1, 10, 100. All if it is left out.",
            metavar="PERCENT",
            label="",
            read=_read_share,
        ),
    ] = None
    watch: Annotated[
        int | None,
        Argument(
            "--watch",
            "How long to watch the orders that were woken: 30s, 5m; 2m with --share.",
            label="",
            read=partial(read_duration, least=SHORTEST_WATCH, most=LONGEST_WATCH),
        ),
    ] = None
    stop_at: Annotated[
        float | None,
        Argument(
            "--stop-at",
            f"Hold all again if a larger share of the woken orders fails: {STOP_AT} by default.",
            metavar="SHARE",
            label="",
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
