"""The application of a world: it sends order events, cancellations and signals.

It sends texts to the queue `orders`. Submission reads them as the deployed submission does. A text
is a reference if the test chose the workflow or the options itself: the event is then kept here.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from itertools import count

from roundsman.definition.workflow import Workflow
from roundsman.engine.new_task import ProcessingOptions
from roundsman.errors import RejectedOrder
from roundsman.model.instants import second
from roundsman.model.json import Json, canonical_json
from roundsman.model.task import UNDO, item_place, step_of
from roundsman.ports import Clock, EventSources
from roundsman.submission.events import Asked, EventReader, given_order_id
from roundsman.submission.submission import CancelAsked, ValidOrder
from roundsman_testing.world.versions import ReadOrder

Readers = Mapping[str, EventReader]
"""The readers of events of one version of submission, by the workflow that is the first."""


def _as_text(order: Mapping[str, Json]) -> str:
    """The order as JSON text, so that later changes by the test have no effect.

    Raises ValueError if it is not JSON.
    """
    try:
        return canonical_json(dict(order))
    except (TypeError, ValueError) as problem:
        raise ValueError(f"an order must be a JSON object: {problem}") from problem


class SimulatedApplication:
    """Sends orders, cancellations and signals with `send`. Submission reads them by `reader`."""

    def __init__(
        self,
        workflows: Collection[Workflow],
        send: Callable[[str], None],
        clock: Clock,
        sources: EventSources,
    ) -> None:
        """Raises ValueError if there is no workflow, or two workflows have one name."""
        if not workflows:
            raise ValueError("a world needs a workflow")
        self.workflows = {workflow.name: workflow for workflow in workflows}
        if len(self.workflows) < len(workflows):
            raise ValueError(f"two workflows have one name, of {', '.join(self.workflows)}")
        self._events = self._readers()
        self._send = send
        self._clock = clock
        self._sources = sources
        self._sent: dict[str, Callable[[Readers], Asked]] = {}
        self._numbers = count(1)

    def deploy(self, workflows: Collection[Workflow]) -> None:
        """Replace the workflows with these names, and add the others."""
        self.workflows.update({workflow.name: workflow for workflow in workflows})
        self._events = self._readers()

    def _readers(self) -> Readers:
        return {
            name: EventReader({name: workflow, **self.workflows})
            for name, workflow in self.workflows.items()
        }

    def submit(
        self,
        order: Mapping[str, Json] | None,
        workflow: str | None,
        options: ProcessingOptions | None,
    ) -> str:
        """Send an order. Returns its id.

        Raises ValueError if the order is not JSON, its id is not text, the world has no such
        workflow, or a workflow or options are given beside the `processing` of the event.
        """
        event = dict(order or {})
        order_id = event.setdefault("orderId", f"ord-{next(self._numbers)}")
        if not isinstance(order_id, str):
            raise ValueError(f"orderId must be a text, not {order_id!r}")
        text = _as_text(event)
        if workflow is None and options is None:
            self._send(text)
            return order_id
        if "processing" in event:
            raise ValueError("give the workflow and the options as arguments or in processing")
        name = self._workflow(workflow)
        self._send_as(order_id, lambda readers: self._read_with(readers, event, name, options))
        return order_id

    def recur(self, order: Mapping[str, Json], at: int, send: Callable[[str, int], None]) -> str:
        """Send the order of a run of a schedule at its instant (epoch ms). Returns its id.

        Raises ValueError if it is not JSON, or if its event has no id.
        """
        options = order.get("processing")
        given = options if isinstance(options, Mapping) else {}
        event = {**order, "processing": {**given, "run": second(at)}}
        order_id = given_order_id(event)
        if order_id is None:
            raise ValueError("the order of a schedule must have an orderId")
        send(_as_text(event), at)
        return order_id

    def _read_with(
        self,
        readers: Readers,
        event: Mapping[str, Json],
        workflow: str,
        options: ProcessingOptions | None,
    ) -> ValidOrder:
        """The order of an event that runs this workflow with these options.

        Raises RejectedOrder if this version of submission does not know the workflow.
        """
        reader = readers.get(workflow)
        if reader is None:
            reader, event = (
                next(iter(readers.values())),
                {**event, "processing": {"workflow": workflow}},
            )
        asked = reader.read(_as_text(event), self._clock(), lambda _: None)
        if not isinstance(asked, ValidOrder):
            raise ValueError("an event with cancel or signal has no workflow and no options")
        return asked if options is None else replace(asked, options=options)

    def check_step(self, name: str, operation: str) -> None:
        """Raises ValueError if no workflow has that step, or none has it with that operation."""
        steps = [step for workflow in self.workflows.values() for step in workflow.all_steps]
        plain, index = item_place(name) or (step_of(name), None)
        found = [step for step in steps if step.name == plain]
        if not found:
            known = ", ".join(dict.fromkeys(step.name for step in steps))
            raise ValueError(f"no workflow of this world has a step {plain!r}; there are {known}")
        if index is not None and all(step.for_each is None for step in found):
            raise ValueError(f"step {plain!r} has no for_each, so there is no {name!r}")
        if operation == UNDO and all(step.compensation is None for step in found):
            raise ValueError(f"step {plain!r} has no compensation: it is never undone")

    def _workflow(self, name: str | None) -> str:
        if name is None:
            return next(iter(self.workflows))
        if name not in self.workflows:
            known = ", ".join(self.workflows)
            raise ValueError(f"this world has no workflow {name!r}; it has {known}")
        return name

    def cancel(self, asked: CancelAsked) -> None:
        """Send a cancellation."""
        self._send_as(asked.order_id, lambda _: asked)

    def signal(self, event: Mapping[str, Json]) -> None:
        """Send a signal. Raises ValueError if submission would reject it."""
        text = _as_text(event)
        try:
            next(iter(self._events.values())).read(text, self._clock(), lambda _: None)
        except RejectedOrder as rejected:
            raise ValueError(f"the signal would be rejected: {rejected}") from rejected
        self._send(text)

    def _send_as(self, order_id: str, read: Callable[[Readers], Asked]) -> None:
        self._sent[text := f"{order_id} #{len(self._sent)}"] = read
        self._send(text)

    def reader(self) -> ReadOrder:
        """Reads a text of the queue `orders` as a submission that knows the present workflows.

        It raises RejectedOrder if the deployed submission would reject the order.
        """
        return partial(self._read, self._events)

    def _read(self, readers: Readers, body: str) -> list[Asked | RejectedOrder]:
        if body in self._sent:
            return [self._sent[body](readers)]
        first = next(iter(readers.values()))
        return first.read_message(body, self._clock(), lambda _: None, lambda: self._sources)
