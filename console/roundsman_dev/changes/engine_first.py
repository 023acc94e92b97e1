"""What the deployed scheduler must be able to read before an agent may send it.

A deployment updates the engine before its agents. But one that fails at an agent takes the engine
back, and the former scheduler rejects a reply that it does not know: the attempt is overdue, is
made again under the same key, and counts as failed. So the engine is deployed first, and the agent
by the next deployment.
"""

from collections.abc import Mapping

from roundsman_dev.check.code import calls_of

REPLIES = "Replies"
"""The setting of a stack with the newest form of reply that its scheduler reads; 0 without it."""

FORMS: Mapping[str, int] = {"NotYet": 1}
"""The form of reply that each name needs, which an agent's function returns."""


def engine_first(sources: Mapping[str, str], settings: Mapping[str, str]) -> list[str]:
    """Return a sentence for each module whose replies the deployed scheduler may not read.

    `sources` has the text of each module of the agents, by its path, and `settings` those of the
    deployed stack.
    """
    known = settings.get(REPLIES, "0")
    deployed = int(known) if known.isdecimal() else 0
    return [
        f"{where} returns {name}, which the deployed scheduler may not know: deploy the engine "
        "first, with the former code of this agent, and then this code."
        for where, source in sources.items()
        for name, form in FORMS.items()
        if form > deployed and any(calls_of(source, name))
    ]
