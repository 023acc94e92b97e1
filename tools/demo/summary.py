"""Compares the expected and the actual end of each order, and describes each difference."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from roundsman.model.states import TaskState
from roundsman.model.task import StepRecord, Task, Termination, idempotency_key
from tools.demo.facts import (
    AlertSeen,
    DemoFacts,
    LedgerEffect,
    QueueDepth,
    SeenRejection,
)
from tools.demo.progress import hanging_calls
from tools.demo.scenario import DemoOrder, ExpectedEnd, SentOrder


@dataclass(frozen=True)
class OrderVerdict:
    """The actual end of one message, and its differences from the expected end."""

    case: DemoOrder
    actual: str
    """The actual end."""
    detail: str = ""
    """How or why the message ended so."""
    failure_counts: Mapping[str, int] = field(default_factory=dict)
    """The FailureCount of each step that has one, by the step's name."""
    differences: tuple[str, ...] = ()
    """A sentence for each difference."""

    @property
    def ok(self) -> bool:
        return not self.differences


@dataclass(frozen=True)
class Summary:
    """The result of a run."""

    verdicts: tuple[OrderVerdict, ...]
    alerts: tuple[AlertSeen, ...]
    effects: tuple[LedgerEffect, ...]
    queues: tuple[QueueDepth, ...]
    differences: tuple[str, ...]
    """The differences that do not belong to one message."""
    seconds: float = 0.0
    """The duration since the first message was sent."""

    @property
    def ok(self) -> bool:
        return not self.differences and all(verdict.ok for verdict in self.verdicts)

    def all_differences(self) -> list[str]:
        """Return all differences; one that is about a message begins with its event and order."""
        found = [
            f"{verdict.case.event} ({verdict.case.order_id}): {difference}"
            for verdict in self.verdicts
            for difference in verdict.differences
        ]
        return [*found, *self.differences]


def summarise(
    sent: Sequence[SentOrder],
    facts: DemoFacts,
    *,
    seconds: float = 0.0,
    still_open: Sequence[str] = (),
) -> Summary:
    """Compare the facts of a run with the scenario.

    `still_open` contains a sentence for each message that was not settled in time.
    """
    differences = [
        *still_open,
        *_unexpected_tasks(sent, facts),
        *_unexpected_rejections(sent, facts),
        *_unexpected_effects(sent, facts),
        *_unexpected_alerts(sent, facts),
        *_left_in_queues(facts),
    ]
    if facts.hanging:
        differences.append(f"at the end, {hanging_calls(facts.hanging)}")
    return Summary(
        verdicts=tuple(_verdict(one, sent, facts) for one in sent),
        alerts=tuple(facts.alerts),
        effects=tuple(facts.effects),
        queues=tuple(facts.queues),
        differences=tuple(differences),
        seconds=seconds,
    )


def perform_key(order_id: str, step: str) -> str:
    """Return the idempotency key of `perform` for a step in its first round at its first agent."""
    return idempotency_key(order_id, step, "perform", StepRecord())


def undo_key(order_id: str, step: str) -> str:
    """Return the idempotency key of `undo` for a step in its first round at its first agent."""
    return idempotency_key(order_id, step, "undo", StepRecord())


def _verdict(one: SentOrder, sent: Sequence[SentOrder], facts: DemoFacts) -> OrderVerdict:
    rejection = rejection_of(one, facts)
    if rejection is not None:
        return _rejected(one.case, rejection)
    if one.case.makes_a_task:
        return _processed(one.case, sent, facts)
    if one.case.end is ExpectedEnd.NOTHING_NEW:
        return _repeated(one.case, facts)
    if one.case.end is ExpectedEnd.ACCEPTED:
        return _cancels(one.case, facts)
    return OrderVerdict(one.case, "not found", differences=("it is not in the RejectedQueue",))


def rejection_of(one: SentOrder, facts: DemoFacts) -> SeenRejection | None:
    """Return the rejection of this message, which is found by its body; None if there is none."""
    return next((found for found in facts.rejections if found.body == one.body), None)


def _rejected(case: DemoOrder, rejection: SeenRejection) -> OrderVerdict:
    detail = "; ".join(f"{path}: {problem}" for path, problem in rejection.problems)
    if case.end is not ExpectedEnd.REJECTED:
        return OrderVerdict(case, ExpectedEnd.REJECTED, differences=(f"it was rejected: {detail}",))
    named = {path for path, _ in rejection.problems}
    differences = [
        f"the problem at {path} is not named" for path in case.problems if path not in named
    ]
    differences += [
        f"an unexpected problem is named: {path or 'the whole message'}: {problem}"
        for path, problem in rejection.problems
        if path not in case.problems
    ]
    return OrderVerdict(case, ExpectedEnd.REJECTED, detail, differences=tuple(differences))


def _repeated(case: DemoOrder, facts: DemoFacts) -> OrderVerdict:
    before, after = facts.first_rows.get(case.order_id), facts.rows.get(case.order_id)
    if before is None or after is None:
        return OrderVerdict(
            case, "not found", differences=("the order that it repeats is not stored",)
        )
    if before != after:
        differences = ("the order's row is not what it was before the repetition",)
        return OrderVerdict(case, "changed the order", differences=differences)
    return OrderVerdict(case, ExpectedEnd.NOTHING_NEW, "one order row, one task, unchanged")


def _cancels(case: DemoOrder, facts: DemoFacts) -> OrderVerdict:
    task = facts.tasks.get(case.order_id)
    why = task.ending.why if task and task.ending else ""
    if not all(word in why for word in case.reason):
        return OrderVerdict(case, "not found", differences=("its order was not cancelled",))
    return OrderVerdict(case, ExpectedEnd.ACCEPTED, "its order was cancelled")


def _processed(case: DemoOrder, sent: Sequence[SentOrder], facts: DemoFacts) -> OrderVerdict:
    task = facts.tasks.get(case.order_id)
    if task is None:
        return OrderVerdict(case, "not found", differences=("there is no task",))
    counts = {name: task.step(name).failure_count for name in sorted(task.steps)}
    differences = [
        *_wrong_state(case, task),
        *_wrong_counts(case, counts),
        *_wrong_effects(case, facts),
        *_fault_missed(case, sent, facts),
        *_wrong_alerts(case, facts),
    ]
    return OrderVerdict(
        case,
        task.state.value,
        _why(case, task.ending) if task.ending else _how(case, counts, facts),
        {name: count for name, count in counts.items() if count},
        tuple(differences),
    )


def _why(case: DemoOrder, ending: Termination) -> str:
    return f"{ending.why}; undone: {', '.join(case.undone)}" if case.undone else ending.why


def _how(case: DemoOrder, counts: Mapping[str, int], facts: DemoFacts) -> str:
    calls = {effect.key: effect.calls for effect in facts.effects}
    again = [
        f"{step}: {counts.get(step, 0)} failed, {calls.get(perform_key(case.order_id, step), 0)} "
        "calls with one key"
        for step in case.called_again
    ]
    return "; ".join(again) or "every step at the first attempt"


def _wrong_state(case: DemoOrder, task: Task) -> list[str]:
    found: list[str] = []
    if task.state.value != case.end.value:
        why = f": {task.ending.why}" if task.ending else ""
        found.append(f"it is {task.state.value}, not {case.end.value}{why}")
    elif task.state is not TaskState.COMPLETED:
        why = task.ending.why if task.ending else ""
        found += [
            f"its reason does not contain {word!r}: {why}"
            for word in case.reason
            if word not in why
        ]
    if task.owed:
        found.append(f"it has not sent {', '.join(owed.name for owed in task.owed)}")
    return found


def _wrong_counts(case: DemoOrder, counts: Mapping[str, int]) -> list[str]:
    found: list[str] = []
    for step in sorted({*counts, *case.failures}):
        allowed, count = case.failures.get(step, range(1)), counts.get(step, 0)
        if count not in allowed:
            least, most = allowed[0], allowed[-1]
            wanted = f"{least}" if least == most else f"{least} to {most}"
            found.append(f"the FailureCount of {step} is {count}, not {wanted}")
    return found


def _wrong_effects(case: DemoOrder, facts: DemoFacts) -> list[str]:
    by_key = {effect.key: effect for effect in facts.effects}
    found: list[str] = []
    for step in case.processed:
        effect = by_key.get(perform_key(case.order_id, step))
        times = effect.effects if effect else 0
        if times != 1:
            found.append(f"the effect of {step} happened {_times(times)}, not once")
        if effect and step in case.called_again and effect.calls < 2:
            found.append(f"{step} was not called again with the same key")
        if effect and effect.undone is not (step in case.undone):
            stands = "was undone" if effect.undone else "still stands"
            found.append(f"the effect of {step} {stands}")
    for step in case.undone:
        effect = by_key.get(undo_key(case.order_id, step))
        times = effect.effects if effect else 0
        if times != 1:
            found.append(f"the effect of {step} was undone {_times(times)}, not once")
        if effect and step in case.undo_called_again and effect.calls < 2:
            found.append(f"the undo of {step} was not called again with the same key")
    return found


def _fault_missed(case: DemoOrder, sent: Sequence[SentOrder], facts: DemoFacts) -> list[str]:
    """Return a difference if the case's fault was never applied.

    Without its fault, the case would only repeat the order without faults.
    """
    if case.fault is None:
        return []
    with_faults = [one.case for one in sent if one.case.fault]  # in the order of their rules
    place = with_faults.index(case)
    struck = facts.struck[place] if place < len(facts.struck) else 0
    return [] if struck else ["its fault was never applied"]


def _wrong_alerts(case: DemoOrder, facts: DemoFacts) -> list[str]:
    alerted = any(alert.order_id == case.order_id for alert in facts.alerts)
    if case.end is ExpectedEnd.ARCHIVED and not alerted:
        return ["there was no alert about it"]
    return []


def _unexpected_tasks(sent: Sequence[SentOrder], facts: DemoFacts) -> list[str]:
    expected = {one.case.order_id for one in sent if one.case.makes_a_task}
    found = [
        f"there is an unexpected task {name}" for name in sorted(facts.tasks.keys() - expected)
    ]
    found += [
        f"there is an unexpected order row {name}" for name in sorted(facts.rows.keys() - expected)
    ]
    return found


def _unexpected_rejections(sent: Sequence[SentOrder], facts: DemoFacts) -> list[str]:
    bodies = [one.body for one in sent]
    found: list[str] = []
    for rejection in facts.rejections:
        if rejection.body not in bodies:
            problems = "; ".join(f"{path}: {problem}" for path, problem in rejection.problems)
            found.append(f"a message that the demo did not send was rejected: {problems}")
    return found


def _unexpected_effects(sent: Sequence[SentOrder], facts: DemoFacts) -> list[str]:
    expected = {perform_key(one.case.order_id, step) for one in sent for step in one.case.processed}
    expected |= {undo_key(one.case.order_id, step) for one in sent for step in one.case.undone}
    return [
        f"an unexpected effect happened: {effect.key}, {_times(effect.effects)}"
        for effect in facts.effects
        if effect.effects and effect.key not in expected
    ]


def _unexpected_alerts(sent: Sequence[SentOrder], facts: DemoFacts) -> list[str]:
    expected = {one.case.order_id for one in sent if one.case.end is ExpectedEnd.ARCHIVED}
    return [
        f"there was an unexpected alert: {alert.subject} ({alert.reason})"
        for alert in facts.alerts
        if alert.order_id is not None and alert.order_id not in expected
    ]


def _left_in_queues(facts: DemoFacts) -> list[str]:
    if not facts.queues:
        return ["no queue was checked"]
    return [
        f"{depth.name} still holds {depth.messages} message{'s' if depth.messages > 1 else ''}"
        for depth in facts.queues
        if depth.messages
    ]


def _times(count: int) -> str:
    return {0: "not at all", 1: "once", 2: "twice"}.get(count, f"{count} times")
