"""The application of a world: it sends orders and cancellations.

It sends texts to the queue `orders`. Without a user's `read` function, the text is only a
reference to an order that is kept here. Submission then gets that order directly, or rejects it if
every submission would reject it.
"""

from collections.abc import Callable, Collection, Mapping
from itertools import count
from typing import TypeAlias

from roundsman.engine.new_task import ProcessingOptions
from roundsman.errors import Problem, RejectedOrder
from roundsman.model.json import Json, canonical_json, parse_json, sha256
from roundsman.model.plan import plan_of
from roundsman.model.task import UNDO, item_place
from roundsman.model.workflow import Workflow
from roundsman.ports import Clock
from roundsman.submission.submission import CancelAsked, NewOrder
from roundsman.wire.messages import TASK_ID

ReadEvent: TypeAlias = Callable[[str, int, Callable[[str], str | None]], NewOrder | CancelAsked]
"""A function that reads an event for submission.

Its arguments are the text, the present in epoch ms, and a function that returns the problem of a
reply queue's URL, or None.
"""


LARGEST_ORDER = 200 * 1024
"""The largest order event, in bytes, so that the order and its task with results fit into two
DynamoDB items."""


def _as_text(order: Mapping[str, Json]) -> str:
    """The order as JSON text, so that later changes by the test have no effect.

    Raises ValueError if it is not JSON.
    """
    try:
        return canonical_json(dict(order))
    except (TypeError, ValueError) as problem:
        raise ValueError(f"an order must be a JSON object: {problem}") from problem


def problems_of(order_id: str, text: str) -> list[Problem]:
    """The problems for which every submission rejects an order, whatever its fields are.

    A stack's own `read` function finds these problems too, and others.
    """
    found: list[Problem] = []
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > LARGEST_ORDER:
        found.append(
            Problem("", f"the event has {size} bytes; at most {LARGEST_ORDER} are allowed")
        )
    if not TASK_ID.fullmatch(order_id):
        found.append(Problem("orderId", "must be 1 to 128 letters, digits or any of . _ ~ -"))
    try:
        text.encode()
        parse_json(text)
    except UnicodeEncodeError:
        found.append(Problem("", "a string has half of a surrogate pair"))
    except ValueError as error:
        found.append(Problem("", f"not JSON: {error}"))
    return found


class Application:
    """Sends orders and cancellations with `send`, and reads them with `read` for submission."""

    def __init__(
        self,
        workflows: Collection[Workflow],
        read: ReadEvent | None,
        send: Callable[[str], None],
        clock: Clock,
    ) -> None:
        """Raises ValueError if there is no workflow, or two workflows have one name."""
        if not workflows:
            raise ValueError("a world needs a workflow")
        self.workflows = {workflow.name: workflow for workflow in workflows}
        if len(self.workflows) < len(workflows):
            raise ValueError(f"two workflows have one name, of {', '.join(self.workflows)}")
        self._read = read
        self._send = send
        self._clock = clock
        self._sent: dict[str, NewOrder | CancelAsked | RejectedOrder] = {}
        self._numbers = count(1)

    def submit(
        self,
        order: Mapping[str, Json] | None,
        workflow: str | None,
        options: ProcessingOptions | None,
    ) -> str:
        """Send an order. Returns its id.

        Raises ValueError if the order is not JSON, its id is not text, the world has no such
        workflow, or a workflow or options are given although the world has a `read` function.
        """
        event = dict(order or {})
        order_id = event.setdefault("orderId", f"ord-{next(self._numbers)}")
        if not isinstance(order_id, str):
            raise ValueError(f"orderId must be a text, not {order_id!r}")
        text = _as_text(event)
        if self._read is not None:
            if workflow is not None or options is not None:
                raise ValueError("with read, the event itself says the workflow and the wishes")
            self._send(text)
            return order_id
        plan, options = plan_of(self._workflow(workflow)), options or ProcessingOptions()
        if problems := problems_of(order_id, text):
            self._send_as(order_id, RejectedOrder(problems, order_id=order_id))
            return order_id
        new = NewOrder(
            order_id=order_id,
            content=parse_json(text),
            content_hash=sha256(text),
            plan=plan,
            options=options,
        )
        self._send_as(order_id, new)
        return order_id

    def check_step(self, name: str, operation: str) -> None:
        """Raises ValueError if no workflow has that step, or none has it with that operation."""
        steps = [step for workflow in self.workflows.values() for step in workflow.steps]
        plain, index = item_place(name) or (name, None)
        found = [step for step in steps if step.name == plain]
        if not found:
            known = ", ".join(dict.fromkeys(step.name for step in steps))
            raise ValueError(f"no workflow of this world has a step {plain!r}; there are {known}")
        if index is not None and all(step.for_each is None for step in found):
            raise ValueError(f"step {plain!r} has no for_each, so there is no {name!r}")
        if operation == UNDO and all(step.compensation is None for step in found):
            raise ValueError(f"step {plain!r} has no compensation: it is never undone")

    def _workflow(self, name: str | None) -> Workflow:
        if name is None:
            return next(iter(self.workflows.values()))
        if name not in self.workflows:
            known = ", ".join(self.workflows)
            raise ValueError(f"this world has no workflow {name!r}; it has {known}")
        return self.workflows[name]

    def cancel(self, asked: CancelAsked) -> None:
        """Send a cancellation."""
        self._send_as(asked.order_id, asked)

    def _send_as(self, order_id: str, what: NewOrder | CancelAsked | RejectedOrder) -> None:
        self._sent[text := f"{order_id} #{len(self._sent)}"] = what
        self._send(text)

    def read(self, body: str) -> NewOrder | CancelAsked:
        """The order or cancellation of a text in the queue `orders`.

        Raises RejectedOrder if every submission would reject it, and what the user's `read`
        function raises.
        """
        if body in self._sent or self._read is None:
            said = self._sent[body]
            if isinstance(said, RejectedOrder):
                raise said.with_traceback(None)
            return said
        return self._read(body, self._clock(), lambda _: None)
