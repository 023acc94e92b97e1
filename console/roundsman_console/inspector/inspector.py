"""What an operator asks of a deployed stack, and what an operator does to it, as one class."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from roundsman.definition.plan import Plan
from roundsman.definition.workflow import Workflow
from roundsman.model.corrections import changes_of
from roundsman.model.events import HistoryRow
from roundsman.model.holds import ALL_ORDERS, EVERY_WORKFLOW
from roundsman.model.json import Json
from roundsman.model.task import Task
from roundsman.submission.events import EventReader
from roundsman_console.acts.hold.agents import (
    AgentHold,
    AgentRelease,
    hold_agent,
    release_agent,
)
from roundsman_console.acts.hold.orders import (
    OrdersHold,
    OrdersRelease,
    hold_orders,
    release_orders,
)
from roundsman_console.acts.order.corrections import InputCorrection
from roundsman_console.acts.order.send import send_command
from roundsman_console.acts.order.sent import CommandResult
from roundsman_console.acts.order.verbs import (
    CancelVerb,
    EraseVerb,
    ExtendVerb,
    MoveVerb,
    OrderVerb,
    ResolveVerb,
    ResubmitVerb,
    RunVerb,
    UndoVerb,
)
from roundsman_console.acts.verb import once
from roundsman_console.aws.stack import DeployedStack, find_stack
from roundsman_console.base.clock import now
from roundsman_console.base.errors import InvalidArgument
from roundsman_console.base.limits import WAIT
from roundsman_console.facts.agent.reading import AgentNow, find_agent, find_agents
from roundsman_console.facts.audit.audit import audit_stack
from roundsman_console.facts.audit.reading import MOST, Scope, estimate
from roundsman_console.facts.audit.report import AuditReport
from roundsman_console.facts.finding.doctor import Doctor
from roundsman_console.facts.finding.report import Report, StandingAlerts
from roundsman_console.facts.finding.standing import read_standing
from roundsman_console.facts.group.reading import GroupNow, find_group, list_groups
from roundsman_console.facts.order.lookup import find_shown, shown_tasks
from roundsman_console.facts.order.timeline import Happening, happenings
from roundsman_console.facts.order.why import Diagnosis
from roundsman_console.facts.order.why_facts import why
from roundsman_console.facts.orders.listing import WITHIN, Page, find
from roundsman_console.facts.orders.selection import Selection
from roundsman_console.facts.overview.queues import Queue, find_queues
from roundsman_console.facts.overview.stats import Stats, read_stats
from roundsman_console.facts.schedule.reading import Schedules, read_schedules
from roundsman_console.facts.set_aside.messages import QueueContents, dead_queues, look_at
from roundsman_console.facts.shift.reading import read_shift
from roundsman_console.facts.shift.report import Shift


class Inspector:
    """Reads and operates one deployed stack, with the caller's AWS credentials.

    A method raises NotFound if what it is asked for does not exist, InvalidArgument, before
    anything is sent, for an argument that it does not accept, and InspectorError if the stack does
    not have what it needs. A method that waits for the outcome of a command raises Unconfirmed if
    the outcome cannot be read, and Interrupted on Ctrl-C; `Interrupted.result` is a CommandResult.

    Every method may raise TryAgain and CallRefused if AWS does not answer or refuses a call,
    UnreadableRecord and SchemaTooNew for a record that this code cannot read, and the errors of
    boto3 for calls and for missing credentials. `roundsman_console.inspector.sentence_of` puts each
    of them in words.

    Values that a workflow masks are replaced by `(masked)` in all that a method returns for people:
    in results, errors and reasons.
    """

    def __init__(self, stack: DeployedStack) -> None:
        self.stack = stack

    @classmethod
    def of_stack(
        cls, name: str | None = None, *, workflows: Mapping[str, Workflow] | None = None
    ) -> "Inspector":
        """Return the inspector of the stack with this name; None takes it from samconfig.toml.

        `workflows` are those of the application's submission, by name; with them, the inspector
        knows whether a rejected or dead event would be accepted now.
        """
        return cls(find_stack(name, EventReader(workflows) if workflows else None))

    def tasks(
        self,
        selection: Selection | None = None,
        *,
        after: str | None = None,
        before: str | None = None,
        limit: int = 50,
        budget: int | None = None,
        within: float | None = WITHIN,
        newest_first: bool = False,
    ) -> Page:
        """Return a page of the tasks that match, those that need a person first.

        `after` is the cursor of the page before, and `before` that of the page after. Ended tasks
        come by their end, the newest first if `newest_first`. The page ends early when `within`
        seconds are over or `budget` tasks were looked at; None is no limit.
        """
        page = find(
            self.stack,
            selection or Selection(),
            after=after,
            before=before,
            limit=limit,
            budget=budget,
            within=within,
            newest_first=newest_first,
        )
        return replace(page, tasks=shown_tasks(self.stack, page.tasks))

    def task(
        self, order_id: str, *, reveal: bool = False
    ) -> tuple[Task, Plan | None, list[HistoryRow]]:
        """Return the order's task, its plan (None if it is not stored) and its history.

        Values that the workflow masks are replaced by `(masked)`, unless `reveal` is true.
        """
        facts = find_shown(self.stack, order_id, reveal=reveal)
        return facts.task, facts.plan, [*facts.history]

    def timeline(self, order_id: str) -> list[Happening]:
        """Return what happened to the order, in the order of time."""
        return happenings(find_shown(self.stack, order_id))

    def why(self, order_id: str) -> Diagnosis:
        """Explain what the order waits for now, with evidence and the next command."""
        return why(self.stack, order_id)[1]

    def stats(self) -> Stats:
        """Count the tasks by state, and the messages in the queues."""
        return read_stats(self.stack)

    def groups(self) -> list[GroupNow]:
        """Return the open failure groups, those with most tasks first."""
        return list_groups(self.stack, self.agents(), now())

    def group(self, group_id: str) -> GroupNow | None:
        """Return a failure group with sample tasks; None if it has no members."""
        return find_group(self.stack, group_id, self.agents(), now())

    def agents(self) -> list[AgentNow]:
        """Return the agents with their holds and lags."""
        return find_agents(self.stack)

    def queues(self) -> list[Queue]:
        """Return the queues with the number of their messages and the age of the oldest."""
        return find_queues(self.stack, now())

    def alerts(self) -> StandingAlerts:
        """Return the alerts whose cause still exists."""
        return read_standing(self.stack)

    def schedules(self) -> Schedules:
        """Return the recurring orders, with their next runs and what became of the last ones."""
        return read_schedules(self.stack, now())

    def shift(self, since: int) -> Shift:
        """Return what happened since `since` (epoch ms), and what is open now.

        It takes at most some 400 requests, however many orders there are.
        """
        return read_shift(self.stack, since)

    def dead_letters(self, queue: str | None = None, *, limit: int = 50) -> list[QueueContents]:
        """Return at most `limit` dead letters, by the queue that they come from."""
        return look_at(dead_queues(self.stack, queue), limit)

    def check(self, *, limit: int = 1_000) -> Report:
        """Check the stack; at most `limit` tasks of each lane are read."""
        return Doctor(self.stack, limit, None).check()

    def audit(self, *, since: int | None = None, limit: int = MOST) -> AuditReport:
        """Judge by the stored records whether orders followed the promises.

        At most `limit` orders are read that were submitted at or after `since` (epoch ms); None:
        all. Each takes three read units of DynamoDB or more.
        """
        scope = Scope(since, limit)
        return audit_stack(self.stack, scope, estimate(self.stack, scope))

    def resubmit(  # each is an option of the one command
        self,
        order_id: str,
        *,
        by: str,
        reason: str,
        steps: Sequence[str] = (),
        fresh_key: bool = False,
        again: bool = False,
        correction: InputCorrection | None = None,
        newest_plan: bool = False,
        dry_run: bool = False,
        wait: float = WAIT,
    ) -> CommandResult:
        """Continue a failed task: its failed steps, or `steps`, are tried again.

        With `fresh_key` they are tried under a new idempotency key, after an undo under the old
        one. With `again`, an undone or cancelled task begins again. `correction` corrects the
        input, checked by the type of its workflow; `CommandResult.input` has the changes. With
        `newest_plan`, the task continues under the newest plan of its workflow, which the deployed
        submission function knows; `CommandResult.plan` has the differences. With `dry_run`, nothing
        is sent.
        """
        fix = correction or InputCorrection()
        verb = ResubmitVerb(
            steps=once(steps),
            sets=changes_of(fix.sets, ()),
            removes=changes_of({}, fix.removes),
            input=fix.whole,
            used=fix.used,
            fresh_key=fresh_key,
            again=again,
            newest_plan=newest_plan,
            not_done=tuple(fix.not_done),
        )
        return self._send(order_id, verb, by, reason, wait, dry_run=dry_run)

    def undo(
        self,
        order_id: str,
        *,
        by: str,
        reason: str,
        steps: Sequence[str] | None = None,
        wait: float = WAIT,
    ) -> CommandResult:
        """Undo every effect that may have happened; the task ends Undone.

        With `steps`, only these of a completed task; the others stand, and it ends Completed again.
        Raises InvalidArgument for an empty list, which must not stand for all of them.
        """
        if steps is not None and not steps:
            raise InvalidArgument("No step is named. Name the steps, or None for all of them.")
        return self._send(order_id, UndoVerb(steps=once(steps or ())), by, reason, wait)

    def cancel(
        self, order_id: str, *, by: str, reason: str, undo: bool = True, wait: float = WAIT
    ) -> CommandResult:
        """Stop the task, by default after every effect is undone; it ends Cancelled."""
        return self._send(order_id, CancelVerb(keep=not undo), by, reason, wait)

    def resolve(
        self,
        order_id: str,
        step: str,
        *,
        by: str,
        reason: str,
        did: bool,
        result: Json = None,
        fresh_key: bool = False,
        wait: float = WAIT,
    ) -> CommandResult:
        """Record the outcome of a step: whether its effect happened, and with which result."""
        verb = ResolveVerb(step=step, did=did, result=result, fresh_key=fresh_key)
        return self._send(order_id, verb, by, reason, wait)

    def extend(
        self,
        order_id: str,
        seconds: int,
        *,
        by: str,
        reason: str,
        step: str | None = None,
        wait: float = WAIT,
    ) -> CommandResult:
        """Give the task, or one step that is at its agent, more time."""
        return self._send(order_id, ExtendVerb(seconds=seconds, step=step), by, reason, wait)

    def run(self, order_id: str, *, by: str, reason: str, wait: float = WAIT) -> CommandResult:
        """Start a scheduled task, or the next attempt of one in Retry, at once."""
        return self._send(order_id, RunVerb(), by, reason, wait)

    def move(self, order_id: str, *, by: str, reason: str, wait: float = WAIT) -> CommandResult:
        """Let an open task go on under the newest plan of its workflow, as deployed."""
        return self._send(order_id, MoveVerb(), by, reason, wait)

    def erase(self, order_id: str, *, by: str, reason: str, wait: float = WAIT) -> CommandResult:
        """Remove the contents of an order that has ended, and keep the record that it was."""
        return self._send(order_id, EraseVerb(), by, reason, wait)

    def hold(self, agent: str, seconds: int, *, by: str, reason: str) -> AgentHold:
        """Let the agent take no work for `seconds`: its steps wait, and no attempt is counted."""
        return hold_agent(self.stack, find_agent(self.stack, agent), seconds, by=by, reason=reason)

    def release(self, agent: str, *, by: str, reason: str = "") -> AgentRelease:
        """End an operator's hold. Waiting tasks continue within minutes."""
        return release_agent(self.stack, agent, by=by, reason=reason)

    def hold_orders(
        self,
        seconds: int,
        *,
        workflow: str | None = None,
        undos: bool = False,
        by: str,
        reason: str,
    ) -> OrdersHold:
        """Let no step of a workflow's orders begin for `seconds`, or of all orders without one.

        With `undos`, no undo begins either.
        """
        target = EVERY_WORKFLOW if workflow is None else workflow
        return hold_orders(self.stack, target, seconds, undos=undos, by=by, reason=reason)

    def release_orders(
        self, *, workflow: str | None = None, share: int = ALL_ORDERS, by: str, reason: str = ""
    ) -> OrdersRelease:
        """Let a share of the held orders go on, in percent. They continue within minutes."""
        target = EVERY_WORKFLOW if workflow is None else workflow
        return release_orders(self.stack, target, share, by=by, reason=reason)

    def _send(
        self,
        order_id: str,
        verb: OrderVerb,
        by: str,
        reason: str,
        wait: float,
        *,
        dry_run: bool = False,
    ) -> CommandResult:
        return send_command(
            self.stack, order_id, verb, by=by, reason=reason, wait=wait, dry_run=dry_run
        )
