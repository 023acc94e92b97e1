"""Masks the texts that enter a task: no masked value of its order stands in one afterwards.

A text enters with a message: the error of a reply or of an answer, the reason of a command, the
name of an added step. It is masked before the decision, so what follows from the decision has no
such value: record, history, statuses, alerts and logs. An agent masks its replies in the same way,
with what its request has; here is masked what the agent could not know.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from roundsman.definition.plan import Plan, StepPlan
from roundsman.model.events import (
    Event,
    Extend,
    Inspect,
    Replied,
    Resolve,
    Resubmit,
    Signalled,
    Start,
)
from roundsman.model.json import Json
from roundsman.model.masked_values import (
    EVERYTHING,
    MASK,
    MaskedPaths,
    MaskedTexts,
    any_index,
    leaves,
)
from roundsman.model.record_limits import LONGEST_MESSAGE
from roundsman.model.task import StepToAdd, Task, step_of
from roundsman.wire.commands import LONGEST_REASON
from roundsman.wire.messages import AgentRequest

INPUT, RESULTS, STEP_INPUT = "input", "results", "stepInput"
"""The fields of a request that have values of the order."""


def says_something(event: Event) -> bool:
    """Whether the event has a text of people or of an agent."""
    if isinstance(event, Replied):
        return event.error is not None or bool(event.then)
    return not isinstance(event, Start | Inspect) and bool(event.asked.reason)


def needs_order(plan: Plan, task: Task) -> bool:
    """Whether the order has masked values. Those of an erased one are gone."""
    return bool(plan.masked) and task.erased_at is None


def needed_step_inputs(plan: Plan, task: Task, event: Event) -> tuple[str, ...]:
    """Return the added steps whose inputs have masked values that the event's texts may quote.

    It is the step that the event is about. The inputs of all would be too much to read.
    """
    step = event.step if isinstance(event, Replied | Resolve | Extend) else None
    if step is not None and step in task.added:
        kind = plan.defined(step)
        if kind is not None and kind.input_masked:
            return (step,)
    return ()


def texts_of(
    plan: Plan,
    task: Task,
    content: Json,
    *,
    event: Event | None = None,
    step_inputs: Mapping[str, Json] | None = None,
) -> MaskedTexts:
    """Return what finds the masked values of the task, and those that come with the event.

    `content` is that of the order row; None if the row is missing. It is needed only if the plan
    masks fields of it: without it, every text is masked. `step_inputs` are inputs with which steps
    were added.
    """
    named = named_values(plan, task, content, event=event, step_inputs=step_inputs)
    return EVERYTHING if named is None else MaskedTexts.of(value for _, value in named)


def named_values(
    plan: Plan,
    task: Task,
    content: Json,
    *,
    event: Event | None = None,
    step_inputs: Mapping[str, Json] | None = None,
) -> list[tuple[str, Json]] | None:
    """Return the masked values as for `texts_of`, each with the path of its field or its step.

    None if they are not known.
    """
    found: list[tuple[str, Json]] = []
    paths = MaskedPaths.of(plan.masked)
    if needs_order(plan, task):
        inputs = _inputs(task, content)
        if not inputs:
            return None
        for one in inputs:
            found += paths.values(one)
    for name, record in task.steps.items():
        whole = None if record.left_out is None else record.left_out.whole
        for result in (record.result, whole):
            found += _of_result(plan.defined(name), name, result)
    for signal in task.signals:
        found += _of_signal(plan, signal.name, signal.data)
    for name, value in (step_inputs or {}).items():
        found += _of_step_input(plan, name, value)
    found += _of_event(plan, paths, event)
    return found


def without_masked(event: Event, texts: MaskedTexts) -> Event:
    """Return the event with MASK for each masked value in its texts.

    The type of an error stays: it is a name that plans refer to, and must not come from an order.
    """
    if not texts:
        return event
    if isinstance(event, Replied):
        error = event.error and replace(
            event.error, message=texts.text(event.error.message, LONGEST_MESSAGE)
        )
        return replace(event, error=error, then=masked_then(event.then, texts))
    if isinstance(event, Start | Inspect):
        return event
    reason = texts.text(event.asked.reason, LONGEST_REASON)
    return replace(event, asked=replace(event.asked, reason=reason))


def masked_then(then: Iterable[StepToAdd], texts: MaskedTexts) -> tuple[StepToAdd, ...]:
    """Return the steps to add; MASK replaces the own name of one that has a masked value in it.

    The engine adds no step of that name (`roundsman.engine.added_steps`).
    """
    return tuple(
        replace(one, name=f"{step_of(one.name)}[{MASK}]") if texts.stands_in(one.name) else one
        for one in then
    )


def named_by_masked(adder: str, kind: str) -> str:
    """Why a step of this kind is not added: its name has a masked value. It quotes no name."""
    return (
        f"{adder} adds a {kind} whose name has a value that is masked; name it by something that "
        "is not, such as its number"
    )


def masked_in_request(plan: Plan, step: str, results: Iterable[str]) -> tuple[str, ...]:
    """Return the paths of the masked values in a request for the step, such as `input.card`.

    `results` are the names of the steps whose results it has.
    """
    kind = plan.defined(step)
    known = (name for name in results if (one := plan.defined(name)) and one.result_masked)
    return (
        *(f"{INPUT}.{path}" for path in plan.masked),
        *(any_index((RESULTS, name)) for name in known),
        *(f"{STEP_INPUT}.{path}" for path in (kind.input_masked if kind else ())),
    )


def texts_of_request(request: AgentRequest) -> MaskedTexts:
    """Return what finds the values of the request that must be in no text of its reply."""
    contents = {INPUT: request.input, RESULTS: request.results, STEP_INPUT: request.step_input}
    return MaskedTexts.of(value for _, value in MaskedPaths.of(request.masked).values(contents))


def _inputs(task: Task, content: Json) -> list[Json]:
    """The input before and after each correction: a text may quote what was corrected since.

    None if the order is missing, or is that of another task: it was restored, or altered.
    """
    if content is None:
        return []
    try:
        return [task.input(content, count) for count in range(len(task.corrections) + 1)]
    except ValueError:
        return []


def _of_result(step: StepPlan | None, name: str, value: Json) -> Iterator[tuple[str, Json]]:
    if step is not None and step.result_masked and value is not None:
        yield from ((f"the result of {name}", inner) for _, inner in leaves(value))


def _of_signal(plan: Plan, name: str, data: Json) -> Iterator[tuple[str, Json]]:
    for step in plan.steps.values():
        if step.signal == name:
            yield from _of_result(step, step.name, data)


def _of_step_input(plan: Plan, name: str, value: Json) -> Iterator[tuple[str, Json]]:
    kind = plan.defined(name)
    if kind is not None:
        for path, inner in MaskedPaths.of(kind.input_masked).values(value):
            yield f"{path} of {name}", inner


def _of_event(plan: Plan, paths: MaskedPaths, event: Event | None) -> Iterator[tuple[str, Json]]:
    """Yield the masked values that come with the event itself."""
    match event:
        case Replied():
            yield from _of_result(plan.defined(event.step), event.step, event.result)
            for one in event.then:
                yield from _of_step_input(plan, one.name, one.input)
        case Resolve():
            yield from _of_result(plan.defined(event.step), event.step, event.result)
        case Signalled():
            yield from _of_signal(plan, event.name, event.data)
        case Resubmit():
            for change in event.changes:
                yield from paths.values(change.value, change.path)
        case _:
            return
