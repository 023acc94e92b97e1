"""The standing alerts of a stack, read from all their sources."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from botocore.exceptions import BotoCoreError, ClientError

from roundsman.errors import RoundsmanError
from roundsman.model.failure import Group
from roundsman.model.instants import SECOND
from roundsman_console.aws.stack import DeployedStack, is_local
from roundsman_console.base.clock import now
from roundsman_console.base.errors import cause_of, sentence_of
from roundsman_console.base.unread import Unread
from roundsman_console.facts.alert.documents import AlertListDocument
from roundsman_console.facts.alert.standing import (
    Alarm,
    StandingAlert,
    each_once,
    of_alarms,
    of_dead_letters,
    of_groups,
    of_holds,
    of_rejected,
    of_scheduler,
)
from roundsman_console.facts.group.reading import list_groups
from roundsman_console.facts.overview.queues import lags_of
from roundsman_console.facts.set_aside.queues import Source, counts, sources


@dataclass
class StandingAlerts:
    """The standing alerts, as far as they could be read."""

    standing: list[StandingAlert] = field(default_factory=list)
    missed: list[Unread] = field(default_factory=list)
    """The sources that could not be read, each with the cause."""
    unread: list[str] = field(default_factory=list)
    """The same, each as one text with its error as a sentence."""

    def add(self, what: str, read: Callable[[], list[StandingAlert]]) -> None:
        """Add the alerts that `read` returns.

        If that fails, add the error to `unread`, with the name `what` of the source: one unreadable
        source does not hide the others.
        """
        try:
            self.standing += read()
        except (ClientError, BotoCoreError, RoundsmanError) as error:
            self.missed.append(Unread(what, cause_of(error)))
            self.unread.append(f"{what}: {sentence_of(error)}")


def read_standing(stack: DeployedStack) -> StandingAlerts:
    """Read the standing alerts of all sources, one source after another."""
    read, at = StandingAlerts(), now()
    read.add("Failure groups", lambda: of_groups(_counted(stack, at), at))
    read.add("Circuits and holds", lambda: of_holds(stack.holds.holds()))
    read.add("Alarms", lambda: of_alarms(alarms_of(stack)))
    read.add("Read marks", lambda: of_scheduler(lags_of(stack.board.marks(), at)))
    rejected = stack.output("RejectedQueueUrl")
    read.add("RejectedQueue", lambda: of_rejected(counts(stack.sqs, rejected).all))
    for source in sources(stack):
        read.add(f"Dead letters of {source.name}", partial(_dead_letters_of, source))
    return replace(read, standing=each_once(read.standing))


def _counted(stack: DeployedStack, at: int) -> list[Group]:
    """Return the open groups, the largest with their number of members now."""
    return [
        replace(
            group.row,
            count=group.count.count,
            more=group.count.more,
            looked_at=group.counted_at,
        )
        for group in list_groups(stack, (), at)
        if group.row is not None
    ]


def _dead_letters_of(source: Source) -> list[StandingAlert]:
    return of_dead_letters({source.name: counts(source.sqs, source.dead_url).all})


_ACTIONS: Mapping[str, Literal["AlarmActions", "InsufficientDataActions"]] = {
    "ALARM": "AlarmActions",
    "INSUFFICIENT_DATA": "InsufficientDataActions",
}
"""The actions of an alarm with which it is raised, by its state."""


def alarms_of(stack: DeployedStack) -> Iterator[Alarm]:
    """Yield the stack's alarms that are raised: in ALARM, or without the data that they need.

    CloudFormation names an alarm `<stack>-<logical id>-<suffix>`. The name of another stack may
    begin with the same prefix, so the alarm must also notify this stack's alert topic.
    """
    prefix, topic = f"{stack.name}-", stack.output("AlertTopicArn")
    # A local AWS evaluates no alarm, so that each stays as it was created: without data.
    raised = ["ALARM"] if is_local(stack.cloudwatch.meta.endpoint_url) else [*_ACTIONS]
    pages = stack.cloudwatch.get_paginator("describe_alarms").paginate(
        AlarmNamePrefix=prefix, AlarmTypes=["MetricAlarm"]
    )
    for page in pages:
        for alarm in page["MetricAlarms"]:
            state = alarm["StateValue"]
            actions = alarm.get(_ACTIONS[state], []) if state in raised else []
            if topic in actions:
                yield Alarm(
                    alarm["AlarmName"].removeprefix(prefix).partition("-")[0],
                    alarm.get("AlarmDescription", ""),
                    round(alarm["StateUpdatedTimestamp"].timestamp() * SECOND),
                )


def alerts_document(
    found: list[StandingAlert], read: StandingAlerts, *, more: bool
) -> AlertListDocument:
    """Return the alerts `found` as JSON for scripts; `more` says that others were left out."""
    return {
        "alerts": [one.document() for one in found],
        "more": more,
        "unread": list(read.unread),
    }
