"""The drawing of a workflow: where each step stands, and the lines between them. Pure.

The layers and the order within them come from fast-sugiyama, as in Graphviz's dot: few lines cross.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fast_sugiyama import from_edges

from roundsman.definition.plan import Plan
from roundsman.model.task import Task, step_of

WIDTH, HEIGHT = 172, 46
"""The size of a step, in units of the drawing."""
BETWEEN_LAYERS, BETWEEN_STEPS = 56, 18
MARGIN = 8


@dataclass(frozen=True, slots=True)
class Node:
    """One step of the drawing; a fan-out is one node."""

    name: str
    x: float
    y: float
    state: str
    """The state of the step; of a fan-out, the state of the item that is the least advanced."""
    note: str
    """The agent of the step; for a fan-out, the number of its items by state."""


@dataclass(frozen=True, slots=True)
class Edge:
    """A line from a step to a step that comes after it."""

    path: str
    """The `d` of an SVG path."""
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """The steps and edges of a workflow, from left to right."""

    width: float
    height: float
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


def draw(plan: Plan, task: Task | None = None) -> Drawing:
    """Return the drawing of a plan, with the states of a task's steps if one is given."""
    stored = plan.expanded({})
    after = {name: tuple(step.after) for name, step in stored.steps.items()}
    places = positions(after)
    nodes = tuple(
        Node(name, *places[name], *_state_of(name, stored, task)) for name in stored.steps
    )
    width = max((x for x, _ in places.values()), default=0) + WIDTH + MARGIN
    height = max((y for _, y in places.values()), default=0) + HEIGHT + MARGIN
    edges = tuple(
        Edge(_curve(places[other], places[name]), other, name)
        for name, befores in after.items()
        for other in befores
    )
    return Drawing(width, height, nodes, edges)


def positions(after: Mapping[str, Sequence[str]]) -> dict[str, tuple[float, float]]:
    """Return the left upper corner of each step; `after` has the direct predecessors of each."""
    edges = [(other, name) for name, befores in after.items() for other in befores]
    found: dict[str, tuple[float, float]] = {}
    top = float(MARGIN)
    for places, *_ in from_edges(edges, vertex_spacing=1) if edges else ():
        layers = sorted({y for _, (_, y) in places}, reverse=True)
        left = min(x for _, (x, _) in places)
        for name, (x, y) in places:
            found[str(name)] = (
                MARGIN + layers.index(y) * (WIDTH + BETWEEN_LAYERS),
                top + (x - left) * (HEIGHT + BETWEEN_STEPS),
            )
        top += (max(x for _, (x, _) in places) - left + 1) * (HEIGHT + BETWEEN_STEPS)
    for name in after:  # steps without any line
        if name not in found:
            found[name] = (float(MARGIN), top)
            top += HEIGHT + BETWEEN_STEPS
    return found


LEAST_ADVANCED = (
    "Error",
    "UndoError",
    "Processing",
    "Undoing",
    "Pending",
    "Undone",
    "Processed",
    "Skipped",
)
"""The states of steps, the one that needs a look the most first."""


def _state_of(name: str, plan: Plan, task: Task | None) -> tuple[str, str]:
    step = plan.steps[name]
    if task is None:
        each = " for each item" if step.for_each else ""
        return "", f"{', '.join(step.agents)}{each}"
    items = [
        record.process_state.value
        for found, record in task.steps.items()
        if step_of(found) == name and found != name
    ]
    if not items:
        record = task.step(name)
        return record.process_state.value, record.agent or step.agent
    counted = Counter(items)
    state = min(counted, key=LEAST_ADVANCED.index)
    return state, ", ".join(f"{counted[one]} {one}" for one in LEAST_ADVANCED if counted[one])


def _curve(start: tuple[float, float], end: tuple[float, float]) -> str:
    x1, y1 = start[0] + WIDTH, start[1] + HEIGHT / 2
    x2, y2 = end[0], end[1] + HEIGHT / 2
    middle = (x1 + x2) / 2
    return f"M{x1:g},{y1:g} C{middle:g},{y1:g} {middle:g},{y2:g} {x2:g},{y2:g}"
