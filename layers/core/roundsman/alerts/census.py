"""The supervisor's pass over the failure groups: it counts their members and publishes alerts.

If no group is open, a pass costs one read. Otherwise it counts at most MOST_LOOKS groups: first the
groups that were not alerted yet, then those that have waited longest. Of each group, it counts up
to MOST_A_SHARD members in each shard of the index. A group that does not change is counted less and
less often (`roundsman.alerts.group`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from roundsman.alerts.group import (
    AlertKind,
    Census,
    Evaluation,
    alerted,
    census_of,
    counted_since,
    evaluate,
    first_of,
    is_due,
    left_to_others,
    unsent_all_clear,
)
from roundsman.alerts.group_alert import group_alert
from roundsman.alerts.reporter import known_agents
from roundsman.alerts.samples import Sample
from roundsman.errors import CallRefused, RoundsmanError, TryAgain
from roundsman.model.failure import Group
from roundsman.ports import AgentBoard, Clock, GroupStore, Member, Outbox, PlanStore, TaskStore
from roundsman.wire.alert import Alert

MOST_LOOKS = 8
"""The most groups that one pass counts.

With 16 shards, that is 128 queries if the groups are small, and at most 512 if each has thousands
of members."""

MOST_A_SHARD = 1_000
"""The most members that are counted in one shard; alerts then contain "more than"."""


@dataclass(slots=True)
class GroupsReport:
    """What a pass did about failure groups, for the log and the metrics."""

    open: int = 0
    """Groups that are open."""
    looked_at: int = 0
    """Groups that the pass handled."""
    alerted: list[tuple[str, AlertKind, str]] = field(default_factory=list)
    """(group, kind of news, reason) of each alert that was published."""
    problems: list[tuple[str, str]] = field(default_factory=list)
    """(group, or the id of an undone task that could not be added to its group; reason)."""


@dataclass(kw_only=True, eq=False)
class GroupCensus:
    """Counts failure groups and publishes their alerts."""

    tasks: TaskStore
    plans: PlanStore
    groups: GroupStore
    board: AgentBoard
    outbox: Outbox
    clock: Clock
    undone_count: int
    """So many undone orders in one group within UNDONE_WITHIN raise an alert; 0: never."""

    def make(self, shards: int, go_on: Callable[[], bool]) -> GroupsReport:
        """Handle the groups that are due, while `go_on` returns True. Raises nothing.

        `shards` is the number of shards of the index.
        """
        report = GroupsReport()
        try:
            found = self.groups.groups()
        except (TryAgain, CallRefused) as problem:
            report.problems.append(("all groups", str(problem)))
            return report
        report.open = len(found)
        now = self.clock()
        waiting = [group for group in found if is_due(group, now)]
        waiting.sort(
            key=lambda group: (group.alerted_at is not None or group.undone, group.look_at)
        )
        for group in waiting[:MOST_LOOKS]:
            if not go_on():
                break
            report.looked_at += 1
            try:
                self._visit(group, shards, report)
            except (TryAgain, CallRefused) as problem:
                report.problems.append((group.id, str(problem)))
            except Exception as problem:  # noqa: BLE001 - a fault here must not stop the pass
                report.problems.append((group.id, f"unexpected {type(problem).__name__}"))
        return report

    def _visit(self, group: Group, shards: int, report: GroupsReport) -> None:
        """Count the members, store the evaluation, publish the alert, and store that it is sent."""
        now = self.clock()
        if group.closed_at is not None:  # its all-clear was not sent: the sender died or failed
            census, verdict = Census(), unsent_all_clear(group, now)
        else:
            census = self._counted(group, shards, now)
            verdict = evaluate(group, census, now, undone_count=self.undone_count)
        if self.groups.change(verdict.group, seen=group.version):
            self._finish(verdict, census, report)

    def _finish(self, verdict: Evaluation, census: Census, report: GroupsReport) -> None:
        group, news = verdict.group, verdict.news
        if news is AlertKind.FIRST and not census.count:
            census = first_of(group)  # its member was resubmitted, or the index lags behind
        if news is not None and (news is not AlertKind.CLEAR or group.alerted_at is not None):
            try:
                self.outbox.publish(self._alert(news, group, census))
            except (TryAgain, CallRefused):
                self.groups.change(left_to_others(group), seen=group.version)
                raise
            report.alerted.append((group.id, news, verdict.reason))
        if group.closed_at is not None:
            self.groups.remove(group)
        elif news is not None:
            self.groups.change(alerted(group, census.count, self.clock()), seen=group.version)

    def _alert(self, news: AlertKind, group: Group, census: Census) -> Alert:
        samples = (
            [] if news is AlertKind.CLEAR else self._samples(census.samples or (group.opened_by,))
        )
        agents = known_agents(self.board)
        return group_alert(news, group, census, samples, agents, self.clock())

    def _samples(self, task_ids: Sequence[str]) -> list[Sample]:
        """Read the sample tasks; those that cannot be read now are left out of the alert."""
        found: list[Sample] = []
        for task_id in task_ids:
            try:
                task = self.tasks.load(task_id, self.clock())
                if task is not None:
                    found.append(Sample(task, self.plans.plan(task.plan)))
            except RoundsmanError:
                continue
        return found

    def _counted(self, group: Group, shards: int, now: int) -> Census:
        try:
            return self._census(group, shards, now)
        except RoundsmanError:
            if group.alerted_at is not None or group.undone:
                raise
            return first_of(group)  # the first alert must not wait until the index is readable

    def _census(self, group: Group, shards: int, now: int) -> Census:
        """Count up to MOST_A_SHARD members in each shard.

        In a shard with more members, the newest is read separately for `last_at`.
        """
        since = counted_since(group, now)
        members: list[Member] = []
        more, newest = False, 0
        for shard in range(shards):
            found = list(islice(self.tasks.members(group.id, shard, since=since), MOST_A_SHARD))
            members += [each for each in found if not _is_gone(each, now)]
            if len(found) == MOST_A_SHARD:
                more = True
                last = next(self.tasks.members(group.id, shard, newest_first=True), found[-1])
                newest = max(newest, last.failed_at)
        census = census_of(members, more=more)
        return replace(census, last_at=max(census.last_at or 0, newest) or None)


def _is_gone(member: Member, now: int) -> bool:
    return member.expires_at is not None and member.expires_at <= now
