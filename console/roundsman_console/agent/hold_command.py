"""`roundsman hold` and `roundsman release`: put an agent or orders on hold, and end the hold.

What is about orders is in `order_hold_command`. A hold is a row that schedulers and agents read,
not a command to a task. It takes effect when they next read it, and ends by itself at its end time.
"""

import json

from roundsman.command_line import command_line
from roundsman.model.holds import BREAKER, OPERATOR, Hold
from roundsman.model.instants import SECOND, format_duration, second
from roundsman_console.agent import verbs as agents
from roundsman_console.agent.holds import (
    HoldRelease,
    hold_agent,
    release_agent,
    wake_after,
)
from roundsman_console.agent.order_hold_command import (
    hold_orders_now,
    release_orders_now,
    waking,
    warn_not_alerted,
)
from roundsman_console.agent.reading import AgentNow, find_agent
from roundsman_console.agent.view import circuit_sentence
from roundsman_console.agent.woken_text import woken_lines
from roundsman_console.cli.confirm import confirm
from roundsman_console.cli.options import AsJson, By, Yes
from roundsman_console.cli.stack_option import StackOption
from roundsman_console.cli.target import announced_stack
from roundsman_console.cli_errors import complain, sentences
from roundsman_console.hints import hint
from roundsman_console.terminal import say
from roundsman_console.verbs.actor import read_name, read_reason
from roundsman_console.verbs.commands import command_of


@command_of(agents.HoldVerb)
def hold_command(
    verb: agents.HoldVerb,
    reason: str,
    by: By = None,
    stack: StackOption = None,
    as_json: AsJson = False,
    yes: Yes = False,
) -> None:
    with sentences():
        who, why = read_name(by), read_reason(reason)
        found = announced_stack(stack)
        if verb.orders_of is not None:
            hold_orders_now(found, verb, verb.orders_of, who, why, as_json=as_json, yes=yes)
            return
        held = find_agent(found, verb.agent or "")
        lasts = format_duration(verb.seconds * SECOND)
        confirm(f"{_is_held(held)}Hold {held.name} for {lasts}?", yes=yes)
        result = hold_agent(found, held, verb.seconds, by=who, reason=why)
        warn_not_alerted(result.not_alerted)
        if as_json:
            print(json.dumps(result.document()))
        else:
            say(*_held_lines(result.hold, held, lasts))


@command_of(agents.ReleaseVerb)
def release_command(
    verb: agents.ReleaseVerb,
    reason: str,
    by: By = None,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    with sentences():
        who, why = read_name(by), read_reason(reason) if reason else ""
        found = announced_stack(stack)
        if verb.orders_of is not None:
            release_orders_now(found, verb, verb.orders_of, who, why, as_json=as_json)
            return
        release = release_agent(found, verb.agent or "", by=who, reason=why)
        warn_not_alerted(release.not_alerted)
        if not as_json:
            say(*_released_lines(release))
        first = release.first_wake
        woken, lost = waking(
            lambda progress: wake_after(found, release, first, progress), quiet=as_json
        )
        if as_json:
            print(json.dumps(release.document(woken)))
        else:
            say(*woken_lines(woken, first))
        if lost is not None:
            complain(f"Not all waiting tasks were woken: {lost}.")


def _is_held(agent: AgentNow) -> str:
    """Return a sentence about the operator's hold that a new one replaces; empty if there is none.

    It begins the confirmation question.
    """
    held = agent.hold(OPERATOR)
    if held is None:
        return ""
    return f"{agent.name} is held by {held.by} until {second(held.until)}: {held.reason}. "


def _held_lines(hold: Hold, before: AgentNow, lasts: str) -> list[str]:
    until = f"until {second(hold.until)} ({lasts})"
    found = [f"{hold.agent} is held by {hold.by} {until}: {hold.reason}."]
    replaced, circuit = before.hold(OPERATOR), before.hold(BREAKER)
    if replaced:
        change = "lasts longer" if hold.until > replaced.until else "ends sooner"
        found.append(
            f"It replaces the hold by {replaced.by} until {second(replaced.until)} "
            f"({replaced.reason}) and {change}."
        )
    found += [
        "The agent begins nothing new; calls under way at its service may finish.",
        (
            "A step that waits for it counts no attempt, and the task's complete-by moves by the "
            "time waited."
        ),
        "The hold ends by itself at that time, or sooner with: "
        + hint(command_line("release", hold.agent)),
    ]
    return found + ([circuit_sentence(circuit)] if circuit else [])


def _released_lines(release: HoldRelease) -> list[str]:
    who = f"{release.by}: {release.reason}" if release.reason else release.by
    circuit = release.agent.hold(BREAKER)
    return [
        f"{release.agent.name} is released by {who}.",
        *([circuit_sentence(circuit)] if circuit else []),
    ]
