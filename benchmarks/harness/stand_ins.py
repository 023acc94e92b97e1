"""Workflows with any number of steps, and stand-in agents that reply immediately.

The agents of the example know only the steps of the example. The work inside an agent does not
matter for the growth of cost, so a stand-in agent reads a request and replies with a result of a
given size.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, cast
from unittest.mock import patch

import workflows.registry
from benchmarks.harness.meter import Meter, billed, metered
from benchmarks.harness.stack import stack_on_the_engine
from roundsman import Compensation, Step, Workflow
from roundsman.model.events import Outcome
from roundsman.model.task import StepToAdd
from roundsman.wire.messages import Reply, read_request

if TYPE_CHECKING:
    from roundsman_testing.stack import Context

AGENTS = ("inventory", "payment", "shipping", "mail")


@dataclass(frozen=True)
class WorkflowShape:
    """The shape of a workflow."""

    steps: int
    """The number of stages, one after the other."""
    width: int = 1
    """The number of parallel steps in each stage."""
    result_bytes: int = 40
    """The size of each step's result."""

    added: int = 0
    """The number of steps that are added at run time: the first step adds one, which adds one."""

    @property
    def name(self) -> str:
        added = f"a{self.added}" if self.added else ""
        return f"w{self.steps}x{self.width}r{self.result_bytes}{added}"

    @property
    def operations(self) -> int:
        """The total number of steps."""
        return self.steps * self.width

    def workflow(self) -> Workflow:
        """Return the workflow; all step names have one length, and the four agents alternate."""
        made: list[Step] = []
        before: tuple[Step, ...] = ()
        for stage in range(self.steps):
            here = tuple(
                Step(
                    name=f"step_{stage:03d}_{lane:03d}",
                    agent=AGENTS[(stage + lane) % len(AGENTS)],
                    after=before,
                    complete_within=timedelta(seconds=30),
                    compensation=Compensation(fences_late_performs=True),
                )
                for lane in range(self.width)
            )
            made += here
            before = here
        kind = Step(name="more", agent=AGENTS[0], complete_within=timedelta(seconds=30))
        return Workflow(
            name=self.name,
            steps=tuple(made),
            may_add=(kind,) if self.added else (),
            most_added=max(1, self.added),
            complete_within=timedelta(hours=2),
            retain_for=timedelta(days=7),
        )


def _random_text(key: str, length: int) -> str:
    """Return as many random digits, always the same under one key.

    Records are stored compressed, and identifiers in results do not compress.
    """
    parts = (sha256(f"{key} {part}".encode()).hexdigest() for part in range(length // 64 + 1))
    return "".join(parts)[:length]


def _next(step: str, most: int) -> tuple[StepToAdd, ...]:
    """The step that this one adds; none if there are as many as there may be."""
    number = int(step[-5:-1]) + 1 if step.startswith("more") else 1
    name = f"more[n{number:04d}]"
    return (StepToAdd(name, input={"number": number}),) if number <= most else ()


@contextmanager
def metered_stack(
    endpoint: str, *shapes: WorkflowShape, parameters: Mapping[str, str] | None = None
) -> Iterator[Meter]:
    """Yield the meter of a new stack on the DynamoDB Local at `endpoint`.

    Stand-ins carry out the workflows of these shapes; without any, the example's own agents reply.
    """
    with (
        stack_on_the_engine(endpoint, parameters) as stack,
        metered(stack) as meter,
        stand_ins(meter, *shapes) if shapes else nullcontext(),
    ):
        yield meter


@contextmanager
def stand_ins(meter: Meter, *shapes: WorkflowShape) -> Iterator[None]:
    """Add these workflows to the stack, and reply in place of its agents.

    Enter the context before the first call of submission, which reads the workflows.
    """
    stack, known = meter.stack, {shape.name: shape for shape in shapes}
    agents = {f"{agent.capitalize()}Function": agent for agent in AGENTS}
    invoke = stack.invoke

    def invoked(
        function: str, event: dict[str, object], context: "Context | None" = None
    ) -> object:
        if function not in agents:
            return invoke(function, event, context)
        records = cast("list[dict[str, object]]", event["Records"])
        for record in records:
            _answer(str(record["body"]), function, agents[function])
        size = sum(len(str(record["body"]).encode()) for record in records)
        meter.counts.invocations[function] += 1
        meter.counts.receives[function] += billed(size)
        meter.counts.deletes[function] += 1
        return {"batchItemFailures": []}

    def _answer(body: str, function: str, agent: str) -> None:
        request = read_request(body)
        workflow = json.loads(body)["workflow"]
        length = max(0, known[workflow].result_bytes - len('{"id":""}'))
        result = {"id": _random_text(request.idempotency_key, length)}
        reply = Reply(
            task_id=request.task_id,
            step=request.step,
            operation=request.operation,
            lock=request.lock,
            idempotency_key=request.idempotency_key,
            outcome=Outcome.SUCCEEDED,
            agent=agent,
            finished_at=stack.clock(),
            result=result,
            then=_next(request.step, known[workflow].added),
        )
        text = reply.body()
        stack.send(f"{agent.capitalize()}ReplyQueue", text)
        meter.counts.sends[function] += billed(len(text.encode()))

    made = {shape.name: shape.workflow() for shape in shapes}
    with (
        patch.object(workflows.registry, "WORKFLOWS", {**workflows.registry.WORKFLOWS, **made}),
        patch.object(stack, "invoke", invoked),
    ):
        yield
