"""The verbs on agents: hold and release."""

from dataclasses import dataclass
from functools import partial
from typing import Annotated

from roundsman_console.agent.documents import AgentHeldDocument, AgentReleasedDocument
from roundsman_console.verbs.limits import LONGEST_HOLD, SHORTEST_HOLD
from roundsman_console.verbs.reading import read_duration
from roundsman_console.verbs.verb import Argument, Verb

AGENT = Argument(help="The agent's name, as in: roundsman agents", label="")


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldVerb(Verb):
    """Give an agent no work for a while. Its steps wait, and no attempt is counted.

    Example: roundsman hold payment --for 30m --reason "acquirer maintenance"
    """

    name = "hold"
    title = "Hold"
    reason = "Reason, shown for every step that waits."
    document = AgentHeldDocument

    agent: Annotated[str, AGENT]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseVerb(Verb):
    """End the hold of an agent, and wake the tasks that wait for it.

    Example: roundsman release payment --reason "the acquirer is back"
    """

    name = "release"
    title = "Release"
    reason = "Reason, sent to the other operators."
    needs_reason = "optional"
    document = AgentReleasedDocument

    agent: Annotated[str, AGENT]
