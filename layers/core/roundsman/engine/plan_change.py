"""Lets a task continue under another plan: a failed one that is resubmitted, or an open one.

A step of which something is known to have happened, or may have happened, keeps its meaning: its
key, its agent, its list of items and its undo must be the same in both plans. A finished step may
come only after finished steps. All other steps are taken from the new plan as they are. A step that
was sent and is not finished goes on under a new key if other steps come before it, because its
requests contain their results. An open task is refused then: its attempt may be under way.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from roundsman.definition.added_steps import cycle_of
from roundsman.definition.plan import Plan, StepPlan
from roundsman.definition.workflow import MOST_STEPS
from roundsman.engine.added_steps import kept_in_record
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.effects import may_have_been_performed
from roundsman.engine.history import few_words
from roundsman.engine.on_failure import past_no_return
from roundsman.engine.routing import untried
from roundsman.engine.step_values import step_values
from roundsman.engine.transitions import StepEvent
from roundsman.errors import Refused
from roundsman.model.record_limits import MOST_RECORDS, MOST_USED_ROUNDS
from roundsman.model.situations import AwaitsSignal, NotBegun, ToBegin
from roundsman.model.states import DONE, ProcessState
from roundsman.model.task import AfterUndo, Effect, StepRecord, item_place, step_of

SHOWN = 12
"""How many digits of a plan's hash are shown to people."""


def move_to_plan(
    context: DecisionContext, plan_hash: str, *, anew: bool = False
) -> DecisionContext:
    """Return the context of the same decision under the plan with this hash.

    With `anew`, every step will begin again, and no step has to be the same. Raises Refused with
    every reason why the task cannot continue under that plan.
    """
    plan = context.next_plan
    if plan is None or plan.hash != plan_hash:
        raise Refused(f"the plan {plan_hash[:SHOWN]} is not stored")
    task = context.decision.task
    if plan.workflow != task.workflow:
        raise Refused(f"the plan {plan_hash[:SHOWN]} is of the workflow {plan.workflow}")
    old = context.stored_plan.stored or context.stored_plan
    change = _PlanChange(context, old, plan)
    reasons = [] if anew else list(change.reasons())
    if not anew and past_no_return(context) and not past_no_return(change.after):
        reasons.append(
            f"the task is past its point of no return, {old.point_of_no_return}, but in that plan "
            "it would not be"
        )
    if not reasons:
        change.apply(anew=anew)
        reasons = _too_many_steps(change.after)
    if reasons:
        raise Refused(
            f"it cannot continue under the plan {plan_hash[:SHOWN]}: {'; '.join(reasons)}"
        )
    return change.after


def comes_after_others(old: Plan, new: Plan, name: str) -> bool:
    """Whether the step comes after other steps in the new plan, whose results its requests have."""
    return {*map(step_of, old.before(name))} != {*map(step_of, new.before(name))}


def sent_with_other_results(before: DecisionContext, after: DecisionContext) -> Iterator[str]:
    """Why the next requests of steps that were sent would differ from those before, in words.

    `before` and `after` are the contexts under the two plans. A request has the results of the
    steps that come before its step.
    """
    old, new = before.plan, after.plan
    for name, record in after.decision.steps.items():
        sent = record.started_at is not None or record.tried
        over = record.process_state in DONE
        if sent and not over and comes_after_others(old, new, name):
            yield f"{name} was sent to its agent, but in that plan it comes after other steps"


def fit_times(context: DecisionContext) -> None:
    """Fit the times of the steps to the new plan, after the task's time limit began again.

    A waiting step that the new plan does not let begin yet waits for no time: otherwise a
    supervisor would report again and again that it was not started in time.
    """
    decision, ends_at = context.decision, context.decision.task.perform_by
    for name, record in decision.steps.items():
        wait = record.situation
        if isinstance(wait, ToBegin) and wait.claim_by > ends_at:
            decision.move(name, StepEvent.DUE_EARLIER, replace(wait, claim_by=ends_at))
    for step in context.plan.steps.values():
        found = decision.step(step.name)
        waits = found.process_state is ProcessState.PENDING
        if waits and found.situation != NotBegun() and not context.is_unblocked(step):
            decision.move(step.name, StepEvent.BLOCKED, NotBegun())


@dataclass(frozen=True, slots=True)
class _PlanChange:
    """A change from the plan `old` to the plan `new`."""

    context: DecisionContext
    old: Plan
    new: Plan

    @property
    def after(self) -> DecisionContext:
        """The context under the new plan."""
        return replace(self.context, stored_plan=self.new)

    def reasons(self) -> Iterator[str]:
        """Why the task cannot continue under the new plan, in words."""
        for name, old in self.old.steps.items():
            kept = [record for record in self._records(name).values() if not _is_free(record)]
            if not kept:
                continue
            new = self.new.steps.get(name)
            if new is None:
                yield f"{name} {_what_happened(kept)}, and that plan does not have it"
                continue
            yield from _different(old, new, kept)
            yield from self._out_of_order(name, kept)
        yield from self._of_added_steps()
        yield from self._of_quorums()

    def _of_quorums(self) -> Iterator[str]:
        """Why a step of the new plan could not begin, since too many before it are Skipped."""
        plan, step = self.after.plan, self.context.decision.step
        for one in {quorum.step: quorum for quorum in plan.quorums.values()}.values():
            skipped = [
                step_of(member.instances[0])
                for member in one.members
                if all(step(n).process_state is ProcessState.SKIPPED for n in member.instances)
            ]
            if len(one.members) - len(skipped) < one.enough:
                yield (
                    f"{one.step} would need {one.enough} of {len(one.members)} steps, and "
                    f"{few_words(skipped)} cannot succeed any more"
                )

    def _of_added_steps(self) -> Iterator[str]:
        """Why the steps that were added to the task cannot stand in the new plan."""
        task = self.context.decision.task
        if not task.added:
            return
        if len(task.added) > self.new.most_added:
            yield (
                f"{len(task.added)} steps were added, but in that plan {self.new.most_added} may be"
            )
        for name, one in task.added.items():
            old, new = self.old.kinds.get(step_of(name)), self.new.kinds.get(step_of(name))
            if new is None:
                yield f"{name} was added, and that plan does not have {step_of(name)} in may_add"
                continue
            record = self.context.decision.step(name)
            if old is not None and not _is_free(record):
                yield from (
                    sentence.replace(old.name, name, 1)
                    for sentence in _different(old, new, [record])
                )
            for other in (one.adder, *one.after):
                if other not in task.added and step_of(other) not in self.new.steps:
                    yield f"{name} was added after {other}, which that plan does not have"
        if cycle_of(self.new.for_task(task).steps.values()):
            yield "the steps that were added would form a cycle with the steps of that plan"
            return
        yield from self._after_no_return()

    def _after_no_return(self) -> Iterator[str]:
        """Why added steps that were not performed may not follow the point of no return."""
        decision, point = self.context.decision, self.new.point_of_no_return
        if point is None:
            return
        made = self.new.for_task(decision.task)
        before = made.before(made.instances(point)[0])
        for name in made.added:
            kind = step_of(name)
            waits = name in made.steps and _is_free(decision.step(name))
            if waits and name not in before and kind not in made.kinds_after_no_return:
                yield (
                    f"{name} was added, and could follow the point of no return of that plan, "
                    f"{point}; that plan does not have {kind} in may_add_after_no_return"
                )

    def _out_of_order(self, name: str, kept: list[StepRecord]) -> Iterator[str]:
        """Why the place of a step in the order of the new plan does not fit what has happened."""
        before = self.new.before(name)
        for other in self.old.steps:
            if other in self.old.before(name) - before and other in self.new.steps:
                yield f"{name} came after {other}, but in that plan it does not"
        if any(record.process_state is ProcessState.UNDO_ERROR for record in kept):
            for other in sorted(before - self.old.before(name)):
                yield f"the undo of {name} failed, but in that plan {name} comes after {other}"
        if all(record.process_state not in DONE for record in kept):
            return
        for other in self.new.steps:
            if other in before and not self._is_done(other):
                yield f"{name} is done, but in that plan it comes after {other}, which is not"

    def _is_done(self, name: str) -> bool:
        """Whether the step, and all that it has added, is done under the old plan."""
        plan, step = self.context.plan, self.context.decision.step
        parts = (part for one in plan.instances(name) for part in plan.with_parts(one))
        return all(step(part).process_state in DONE for part in parts)

    def _records(self, name: str) -> dict[str, StepRecord]:
        """The records of a step, those of its items included, by name."""
        steps = self.context.decision.steps
        return {record: steps[record] for record in steps if step_of(record) == name}

    def apply(self, *, anew: bool) -> None:
        """Change the task and its steps. Only steps of which nothing stands are reset."""
        decision = self.context.decision
        for name in self.old.steps:
            records = self._records(name)
            if anew or all(map(_is_free, records.values())):
                self._reset(name, records)
        for name in decision.task.added.keys() & decision.steps.keys():
            before, after = self.old.kinds.get(step_of(name)), self.new.kinds.get(step_of(name))
            record = decision.steps[name]
            if before and after and _is_free(record) and self._is_another(before, after, record):
                decision.begin_anew(name)
        for name, record in decision.steps.items():
            # A request that was sent under the old plan ends by the old plan. While a step waits
            # for its callback, the end of its request is stored already.
            if not record.waiting:
                decision.change(name, step_values(acts_until=decision.acts_until(name)))
        for name, record in decision.steps.items():
            if record.key_until is not None:
                decision.change(
                    name, step_values(key_until=self._key_until(name, record.key_until))
                )
        task, old, new = decision.task, self.old, self.new
        # An order keeps a priority of its own. Requests under way are in the queues of the task's.
        under_way = any(record.under_way for record in decision.steps.values())
        keeps_priority = under_way or task.priority != old.priority
        more = new.complete_within - old.complete_within
        # An order that asked for less time than its workflow gives keeps its own limit.
        own_limit = task.complete_by - task.start_at < old.complete_within
        decision.task = replace(
            task,
            plan=new.hash,
            complete_by=task.complete_by if own_limit else task.complete_by + more,
            retain_for=new.retain_for if task.retain_for == old.retain_for else task.retain_for,
            priority=task.priority if keeps_priority else new.priority,
        )

    def _key_until(self, name: str, until: int) -> int | None:
        """Until when the service remembers the step's key by the new plan (epoch ms).

        By the old plan, it is until `until`. It still counts from the first request under the key.
        None if it is to be computed.
        """
        before, after = _key_lifetime(self.old, name), _key_lifetime(self.new, name)
        return None if before is None or after is None else until - before + after

    def _reset(self, name: str, records: dict[str, StepRecord]) -> None:
        """Remove what the new plan does not have, and begin a step anew that it has otherwise."""
        decision = self.context.decision
        old, new = self.old.steps[name], self.new.steps.get(name)
        for instance, record in records.items():
            is_item = item_place(instance) is not None
            if new is None or (is_item and new.for_each is None):
                decision.remove(instance, StepEvent.REMOVED)
            elif is_item or self._is_another(old, new, record):
                decision.begin_anew(instance)
        rest = {step: count for step, count in decision.task.fan_outs.items() if step != name}
        decision.task = replace(decision.task, fan_outs=rest)

    def _is_another(self, old: StepPlan, new: StepPlan, record: StepRecord) -> bool:
        """Whether the next request of the step may differ from those under its key."""
        gone = record.agent is not None and record.agent not in new.agents
        is_kind = old.name in self.old.kinds
        after_others = not is_kind and comes_after_others(self.old, self.new, old.name)
        waits_otherwise = isinstance(record.situation, AwaitsSignal) and old.awaits != new.awaits
        return gone or after_others or waits_otherwise or bool(list(_meaning(old, new)))


def _is_free(record: StepRecord) -> bool:
    """Whether nothing of the step has happened, and no request of it can have an effect."""
    if record.process_state not in (ProcessState.PENDING, ProcessState.ERROR) or record.tried:
        return False
    if may_have_been_performed(record):
        return False
    return record.started_at is None or record.effect is Effect.NONE


def _what_happened(kept: list[StepRecord]) -> str:
    if all(record.process_state is ProcessState.SKIPPED for record in kept):
        return "was skipped"
    if all(record.process_state in DONE for record in kept):
        return "is done"
    return "was sent to its agent"


def _different(old: StepPlan, new: StepPlan, kept: list[StepRecord]) -> Iterator[str]:
    """Why a step of which something has happened is not the same step in the new plan."""
    name, happened = old.name, _what_happened(kept)
    for what in _meaning(old, new):
        yield f"{name} {happened}, but in that plan {what}"
    for agent in dict.fromkeys(agent for record in kept for agent in (*record.tried, record.agent)):
        if agent is not None and agent not in new.agents:
            yield f"{name} was sent to {agent}, but in that plan it has no such agent"
    for record in kept:
        if record.after_undo is AfterUndo.NEXT_AGENT and not untried(new, record):
            yield f"{name} goes on at its next agent after its undo, but in that plan it has none"


def _meaning(old: StepPlan, new: StepPlan) -> Iterator[str]:
    """In what the two differ that decides about keys, items and undo; empty if in nothing."""
    if _kind_words(old) != _kind_words(new):
        yield _kind_words(new)
    elif old.sleeps and old.awaits != new.awaits:
        yield "its sleep is another"
    elif old.signal != new.signal:
        yield f"it waits for the signal {new.signal}, not {old.signal}"
    elif old.agent != new.agent:
        yield f"its first agent is {new.agent}, not {old.agent}"
    if old.when != new.when:
        yield "its condition (when) is another"
    if old.for_each != new.for_each:
        yield "its list of items (for_each) is another"
    if old.enough != new.enough:
        yield "another number of its items has to succeed (enough)"
    if old.enough_before != new.enough_before:
        yield "another number of the steps before it has to succeed (AnyOf)"
    if old.reads != new.reads:
        yield "its list of fields of the input (reads) is another"
    undo = _undo_words(new)
    if undo != _undo_words(old):
        yield f"it has {undo}"


def _kind_words(step: StepPlan) -> str:
    """What kind of a step it is, in words."""
    if step.sleeps:
        return "it is a sleep"
    return "it waits for a signal" if step.signal is not None else "it is performed by an agent"


def _undo_words(step: StepPlan) -> str:
    """What decides how and when the step is undone, in words."""
    if step.compensation is None:
        return "no compensation"
    fences = "fences" if step.compensation.fences_late_performs else "does not fence"
    return f"a compensation that {fences} late performs"


def _too_many_steps(context: DecisionContext) -> list[str]:
    many = context.plan.defined_steps
    if many > MOST_STEPS:
        return [f"it would have {many} steps with the items of its fan-outs, but {MOST_STEPS} fit"]
    records = len(kept_in_record(context))
    if records > MOST_RECORDS:
        return [f"it would have {records} steps with former items, but {MOST_RECORDS} fit"]
    removed = len(context.decision.task.used_rounds)
    if removed > MOST_USED_ROUNDS:
        return [f"{removed} steps would have been removed from it, but {MOST_USED_ROUNDS} fit"]
    return []


def _key_lifetime(plan: Plan, name: str) -> int | None:
    step = plan.defined(name)
    return None if step is None else step.key_lifetime
