"""`roundsman alerts`: lists the standing alerts, whose cause still exists, newest first."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

import typer
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console
from rich.table import Table
from rich.text import Text

from roundsman.aws.clock import now
from roundsman.errors import RoundsmanError
from roundsman.model.instants import SECOND, format_duration
from roundsman.model.json import Json
from roundsman_console.cli.operate import AsJson
from roundsman_console.cli_errors import FAILED, ConsoleError, aws_sentence, complain, sentences
from roundsman_console.dead_letters.queues import Source, counts, sources
from roundsman_console.read.stack import DeployedStack, StackOption, find_stack
from roundsman_console.sanitize import inert, plain
from roundsman_console.views.standing_alerts import (
    Alarm,
    StandingAlert,
    newest_first,
    of_alarms,
    of_dead_letters,
    of_groups,
    of_holds,
    of_rejected,
)

STYLES = {"critical": "bold red", "error": "red", "warning": "yellow", "info": "cyan"}


@dataclass
class Read:
    """The standing alerts, as far as they could be read."""

    standing: list[StandingAlert] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    """The sources that could not be read, each with its error as a sentence."""

    def add(self, what: str, read: Callable[[], list[StandingAlert]]) -> None:
        """Add the alerts that `read` returns.

        If that fails, add the error to `unread`, with the name `what` of the source: one unreadable
        source does not hide the others.
        """
        try:
            self.standing += read()
        except (ClientError, BotoCoreError) as error:
            self.unread.append(f"{what}: {aws_sentence(error)}")
        except (RoundsmanError, ConsoleError) as error:
            self.unread.append(f"{what}: {error}")


def alerts_command(
    limit: Annotated[int, typer.Option(min=1, max=1_000, help="How many at most.")] = 50,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """List what was alerted and still stands, newest first, with what to run next.

    These are open failure groups, circuits and holds, alarms, and queues that wait for a
    person. SQS counts messages with up to a minute's delay.

    Example: roundsman alerts
    """
    with sentences():
        read = read_standing(find_stack(stack))
        found = newest_first(read.standing)
        if as_json:
            print(json.dumps(_document(found[:limit], read, more=len(found) > limit)))
        else:
            _show(found, limit, read)
        for said in read.unread:
            complain(f"Not everything could be read. {said}")
        if read.unread:
            raise typer.Exit(FAILED)


def read_standing(stack: DeployedStack) -> Read:
    """Read the standing alerts of all sources, one source after another."""
    read = Read()
    read.add("Failure groups", lambda: of_groups(stack.groups.groups()))
    read.add("Circuits and holds", lambda: of_holds(stack.holds.holds()))
    read.add("Alarms", lambda: of_alarms(alarms_of(stack)))
    rejected = stack.output("RejectedQueueUrl")
    read.add("RejectedQueue", lambda: of_rejected(counts(stack.sqs, rejected).all))
    for source in sources(stack):
        read.add(f"Dead letters of {source.name}", partial(_dead_letters_of, source))
    return read


def _dead_letters_of(source: Source) -> list[StandingAlert]:
    return of_dead_letters({source.name: counts(source.sqs, source.dead_url).all})


def alarms_of(stack: DeployedStack) -> Iterator[Alarm]:
    """Yield the stack's alarms that are in state ALARM.

    CloudFormation names an alarm `<stack>-<logical id>-<suffix>`. The name of another stack may
    begin with the same prefix, so the alarm must also notify this stack's alert topic.
    """
    prefix, topic = f"{stack.name}-", stack.output("AlertTopicArn")
    pages = stack.cloudwatch.get_paginator("describe_alarms").paginate(
        AlarmNamePrefix=prefix, StateValue="ALARM", AlarmTypes=["MetricAlarm"]
    )
    for page in pages:
        for alarm in page["MetricAlarms"]:
            # The state is checked again because emulators apply only one filter.
            if topic in alarm.get("AlarmActions", []) and alarm["StateValue"] == "ALARM":
                yield Alarm(
                    alarm["AlarmName"].removeprefix(prefix).partition("-")[0],
                    alarm.get("AlarmDescription", ""),
                    round(alarm["StateUpdatedTimestamp"].timestamp() * SECOND),
                )


def _document(found: list[StandingAlert], read: Read, *, more: bool) -> dict[str, Json]:
    return {
        "alerts": [one.document() for one in found],
        "more": more,
        "unread": list(read.unread),
    }


def _show(found: list[StandingAlert], limit: int, read: Read) -> None:
    console = Console(highlight=False)
    if not found and not read.unread:
        console.print("Nothing stands.")
    at = now()
    table = Table(box=None, pad_edge=False, show_header=bool(found))
    for heading in ("Severity", "For"):
        table.add_column(heading, no_wrap=True)
    table.add_column("What", overflow="fold")
    for one in found[:limit]:
        lasting = format_duration(max(0, at - one.since)) if one.since is not None else ""
        table.add_row(
            plain(one.severity, STYLES.get(one.severity, "")),
            plain(lasting),
            Text(f"{inert(one.sentence)}\n> {inert(one.look)}"),
        )
    if found:
        console.print(table)
    if len(found) > limit:
        console.print(f"There are more than these {limit}: raise --limit.")
