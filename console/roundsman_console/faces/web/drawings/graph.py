"""The drawing of a workflow: where each step stands, and the lines between them. Pure.

The layers and the order within them come from fast-sugiyama, as in Graphviz's dot: few lines cross.
A long workflow goes on in further rows, and the steps of a large one are folded
(`roundsman_console.faces.web.drawings.folding`).
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fast_sugiyama import from_edges

from roundsman.definition.plan import Plan
from roundsman.model.states import ProcessState, SituationName
from roundsman.model.task import StepRecord, Task, step_of
from roundsman_console.faces.web.drawings.folding import FEW, Kinds, folded
from roundsman_console.facts.order.not_needed import enough_words
from roundsman_console.facts.order.step_text import situation_words, wait_words

WIDTH, HEIGHT = 200, 62
"""The size of a step, in units of the drawing."""
BETWEEN_LAYERS, BETWEEN_STEPS = 46, 20
MARGIN = 16
IN_A_ROW = 5
"""So many layers stand beside each other; a workflow with more goes on below, if it can."""
FIRST_LINE, SECOND_LINE, NOTE_LINE = 21, 23, 29
"""How many characters fit in the lines of a step."""
NAMED = 5
"""So many folded steps are named on hover; the table of steps has all."""
END_NOTE = "an end with closing steps"

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

FAILED = "failed"
_KIND_OF = {
    ProcessState.ERROR: FAILED,
    ProcessState.UNDO_ERROR: "undo failed",
    ProcessState.PROCESSING: "under way",
    ProcessState.UNDOING: "undoing",
    ProcessState.PENDING: "pending",
    ProcessState.UNDONE: "undone",
    ProcessState.PROCESSED: "done",
    ProcessState.SKIPPED: "skipped",
}
KINDS = (
    *(FAILED, "undo failed", "under way", "undoing", "waiting"),
    *("undone", "done", "skipped", "pending"),
)
"""The kinds of steps in words, the ones that need a look first."""
QUIET = frozenset({"done", "skipped", "pending", "undone"})
"""The kinds that need no look."""
_TOGETHER = (
    frozenset({"done", "skipped"}),
    frozenset({"pending"}),
    frozenset({"undone"}),
)


@dataclass(frozen=True, slots=True)
class Node:
    """One step of the drawing; a fan-out is one node, and so are steps that are folded."""

    name: str
    """The name of the step; of folded steps, their number and kind: `17 done`; of an end, its
    state: `Undone`."""
    x: float
    y: float
    state: str
    """The state of the step; of several, the state of the one that is the least advanced."""
    note: str
    """The agent of the step; for a fan-out, the number of its items by kind."""
    steps: tuple[str, ...]
    """The steps that it stands for; an end of the workflow stands for none."""
    kind: str = ""
    failed: bool = False
    """Whether the order failed here."""
    items: bool = False
    """Whether it is a fan-out whose items have begun."""
    situation: str = ""
    """The situation of a single step where it says more than the state."""
    enough: str = ""
    """How many of the steps before it, or of its items, have to succeed: `2 of 3`; empty if all."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What stands below the name: the state and the note, or the items in two lines."""
        if not self.items:
            return (cut(self._state_and_note, NOTE_LINE),)
        if len(self.note) <= NOTE_LINE or len(self.lines) > 1:
            return (cut(self.note, NOTE_LINE),)
        first = self.note.rfind(", ", 0, NOTE_LINE) + 1
        return (self.note[:first], cut(self.note[first + 1 :], NOTE_LINE))

    @property
    def failed_before(self) -> bool:
        """Whether the order failed here, and the state does not say so: it was undone since."""
        return self.failed and self.state not in ("Error", "UndoError")

    @property
    def lines(self) -> tuple[str, ...]:
        """The name in one or two lines."""
        return name_lines(self.name)

    @property
    def words(self) -> str:
        """The whole of what it says, for hover and for a screen reader."""
        failed = "failed, " if self.failed_before else ""
        named, rest = self.steps[:NAMED], len(self.steps) - NAMED
        more = f" and {rest} more" if rest > 0 else ""
        steps = f": {', '.join(named)}{more}" if len(self.steps) > 1 else ""
        note = self.note if self.items else self._state_and_note
        enough = f", {self.enough} have to succeed" if self.enough else ""
        return f"{self.name} {failed}{note}{steps}{enough}"

    @property
    def _state_and_note(self) -> str:
        state = ", ".join(filter(None, (self.state, self.situation)))
        return " · ".join(filter(None, (state, self.note)))


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
    summary: str
    """How many steps there are of each kind."""
    folded: bool
    """Whether some steps are drawn as one."""

    @property
    def trouble(self) -> str | None:
        """The name of the node that needs a look first; None if no step failed or is under way."""
        found = [node for node in self.nodes if node.kind and node.kind not in QUIET]
        found.sort(key=lambda node: (not node.failed, KINDS.index(node.kind)))
        return found[0].name if found else None


@dataclass(frozen=True, slots=True)
class NodePlace:
    """Where a step stands: its left upper corner, and the row of layers that it is in."""

    x: float
    y: float
    row: int


def draw(
    plan: Plan, task: Task | None = None, failed: Collection[str] = (), *, whole: bool = False
) -> Drawing:
    """Return the drawing of a plan, with the states of a task's steps if one is given.

    `failed` are the steps and items at which the order failed, whatever their states are now.
    With `whole`, no step is folded. Without a task, each end with closing steps is a node too, and
    they come after it; a task has those of its own end alone.
    """
    stored = plan.expanded({}, {} if task is None else task.added)
    if task is not None and task.closing is not None:
        stored = stored.ending_as(task.closing.end)
    after = {name: _lines_to(stored, name) for name in stored.steps}
    failed_nodes = {_node_of(one, stored) for one in failed}
    items: dict[str, list[StepRecord]] = {}
    for one, record in {} if task is None else task.steps.items():
        if step_of(one) != one:
            items.setdefault(step_of(one), []).append(record)
    steps = {
        name: _step_node(name, stored, task, failed_nodes, items.get(name, ())) for name in after
    }
    for end in stored.closing if task is None else ():
        after |= {end: _last_of(stored)} | _lines_after(end, stored)
        steps |= {end: Node(end, 0, 0, "", END_NOTE, ())} | _nodes_after(end, stored)
    kinds = Kinds({name: node.kind for name, node in steps.items()}, QUIET, _TOGETHER)
    groups = folded(after, kinds, few=len(after) if whole or task is None else FEW)
    places = layout(groups.after)
    nodes = tuple(
        _placed([steps[one] for one in members], places[name])
        for name, members in groups.members.items()
    )
    width = max((place.x for place in places.values()), default=0) + WIDTH + MARGIN
    height = max((place.y for place in places.values()), default=0) + HEIGHT + MARGIN
    edges = tuple(
        Edge(_curve(places[other], places[name]), other, name)
        for name, befores in groups.after.items()
        for other in befores
    )
    return Drawing(width, height, nodes, edges, _summary(steps), len(nodes) < len(steps))


def _lines_to(plan: Plan, name: str) -> tuple[str, ...]:
    """The steps from which a line leads to this one.

    A step after one that has added others comes after all of these. A line from the last of them
    says so.
    """
    after = plan.steps[name].after
    if plan.steps[name].closes and not after:
        return _last_of(plan)
    if not plan.added or len(after) < 2:
        return after
    indirectly = plan.before_any(after)
    return tuple(one for one in after if one not in indirectly)


def _last_of(plan: Plan) -> tuple[str, ...]:
    """The steps that no other step comes after: a closing step begins once all are over."""
    followed = {other for step in plan.steps.values() for other in step.after}
    return tuple(n for n, step in plan.steps.items() if n not in followed and not step.closes)


def _lines_after(end: str, plan: Plan) -> dict[str, tuple[str, ...]]:
    """The closing steps of an end, and from where lines lead to each of them."""
    return {
        _at_end(name, end): tuple(_at_end(one, end) for one in step.after) or (end,)
        for name, step in plan.closing[end].items()
    }


def _nodes_after(end: str, plan: Plan) -> dict[str, Node]:
    """The closing steps of an end as nodes, without their places."""
    ending = plan.ending_as(end)
    return {
        _at_end(name, end): _step_node(name, ending, None, (), ()) for name in plan.closing[end]
    }


def _at_end(name: str, end: str) -> str:
    """Where a closing step stands: several ends may have the same one."""
    return f"{end}: {name}"


def _node_of(name: str, plan: Plan) -> str:
    """The node that a step is in: an item is in that of its fan-out."""
    return name if name in plan.steps else step_of(name)


def _summary(steps: Mapping[str, Node]) -> str:
    kinds = _kinds_in_words(node.kind for node in steps.values())
    number = len({name for node in steps.values() for name in node.steps})
    many = "1 step" if number == 1 else f"{number} steps"
    return f"{many}: {kinds}" if kinds else many


def _kinds_in_words(found: Iterable[str]) -> str:
    """How many steps are of each kind: `1 failed, 77 done, 22 pending`."""
    counted = Counter(found)
    return ", ".join(f"{counted[kind]} {kind}" for kind in KINDS if counted[kind])


def layout(after: Mapping[str, Sequence[str]]) -> dict[str, NodePlace]:
    """Return the place of each step; `after` has the direct predecessors of each."""
    edges = [(other, name) for name, befores in after.items() for other in befores]
    found: dict[str, NodePlace] = {}
    row, top = 0, float(MARGIN)
    for placed, *_ in from_edges(edges, vertex_spacing=1) if edges else ():
        levels = sorted({y for _, (_, y) in placed}, reverse=True)
        layers: list[dict[str, float]] = [{} for _ in levels]
        for name, (x, y) in placed:
            layers[levels.index(y)][str(name)] = x
        for band in _bands(layers, after):
            first = min(x for layer in band for x in layer.values())
            for column, layer in enumerate(band):
                for name, x in _in_order(layer, after).items():
                    left = MARGIN + column * (WIDTH + BETWEEN_LAYERS)
                    found[name] = NodePlace(left, top + (x - first) * (HEIGHT + BETWEEN_STEPS), row)
            last = max(x for layer in band for x in layer.values())
            top += (last - first + 1) * (HEIGHT + BETWEEN_STEPS)
            row += 1
    alone = [name for name in after if name not in found]
    for place, name in enumerate(alone):  # steps without any line
        down, column = divmod(place, IN_A_ROW)
        left = MARGIN + column * (WIDTH + BETWEEN_LAYERS)
        found[name] = NodePlace(left, top + down * (HEIGHT + BETWEEN_STEPS), row + down)
    return found


def _bands(
    layers: Sequence[dict[str, float]], after: Mapping[str, Sequence[str]]
) -> Iterator[Sequence[dict[str, float]]]:
    """Divide the layers into rows of IN_A_ROW layers, where one line only leads to the next row.

    A row is longer where more lines lead on.
    """
    level = {name: place for place, layer in enumerate(layers) for name in layer}
    crossing = Counter(
        place
        for name in level
        for other in after[name]
        for place in range(level[other] + 1, level[name] + 1)
    )
    begin = 0
    while len(layers) - begin > IN_A_ROW:
        cuts = [place for place in range(begin + 1, len(layers)) if crossing[place] == 1]
        near = [place for place in cuts if place <= begin + IN_A_ROW]
        if not cuts:
            break
        end = near[-1] if near else cuts[0]
        yield layers[begin:end]
        begin = end
    yield layers[begin:]


def _in_order(layer: Mapping[str, float], after: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """The layer with steps between the same steps in the order of the workflow."""
    later: dict[str, list[str]] = {name: [] for name in layer}
    for name, befores in after.items():
        for other in befores:
            if other in later:
                later[other].append(name)
    order = {name: place for place, name in enumerate(after)}
    alike: dict[tuple[frozenset[str], frozenset[str]], list[str]] = {}
    for name in sorted(layer, key=order.__getitem__):
        alike.setdefault((frozenset(after[name]), frozenset(later[name])), []).append(name)
    return {
        name: x
        for names in alike.values()
        for name, x in zip(names, sorted(layer[one] for one in names), strict=True)
    }


def name_lines(name: str) -> tuple[str, ...]:
    """Return a name in at most two lines, divided after an underscore if both parts fit.

    The 40 characters that the name of a step may have fit in them.
    """
    if len(name) <= FIRST_LINE:
        return (name,)
    least = len(name) - SECOND_LINE
    divided = name.rfind("_", max(least - 1, 0), FIRST_LINE) + 1 or FIRST_LINE
    return (name[:divided], cut(name[divided:], SECOND_LINE))


def cut(text: str, most: int) -> str:
    """Return a text, and of one that has more than `most` characters the beginning."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def kind_of(record: StepRecord) -> str:
    """Return what a step is in one or two words: `done`, `failed`, `waiting`."""
    if record.process_state is ProcessState.PENDING:
        return "pending" if record.situation_name is SituationName.NOT_BEGUN else "waiting"
    return _KIND_OF[record.process_state]


def _step_node(
    name: str,
    plan: Plan,
    task: Task | None,
    failed: Collection[str],
    items: Sequence[StepRecord],
) -> Node:
    """The node of one step, without its place. `items` are those of a fan-out."""
    step = plan.steps[name]
    if task is None:
        each = " for each item" if step.for_each else ""
        note = wait_words(step) or f"{', '.join(step.agents)}{each}"
        return Node(name, 0, 0, "", note, (name,), enough=enough_words(step))
    records = items or [task.step(name)]
    kinds = {kind_of(one) for one in records}
    kind = FAILED if name in failed else min(kinds, key=KINDS.index)
    states = (one.process_state.value for one in records)
    state = min(states, key=LEAST_ADVANCED.index)
    note = _kinds_in_words(map(kind_of, items)) if items else records[0].agent or step.agent
    note = note or wait_words(step)
    situation = "" if items else situation_words(task, records[0])
    enough = enough_words(step, task.fan_outs.get(name))
    fans_out = bool(items)
    return Node(name, 0, 0, state, note, (name,), kind, name in failed, fans_out, situation, enough)


def _placed(nodes: Sequence[Node], place: NodePlace) -> Node:
    """One node for these steps."""
    if len(nodes) == 1:
        return replace(nodes[0], x=place.x, y=place.y)
    steps = tuple(node.name for node in nodes)
    state = min((node.state for node in nodes), key=LEAST_ADVANCED.index)
    kind = min((node.kind for node in nodes), key=KINDS.index)
    failed = any(node.failed for node in nodes)
    return Node(f"{len(nodes)} {kind}", place.x, place.y, state, "", steps, kind, failed)


def _curve(start: NodePlace, end: NodePlace) -> str:
    x1, y1 = start.x + WIDTH, start.y + HEIGHT / 2
    x2, y2 = end.x, end.y + HEIGHT / 2
    if start.row != end.row:
        # Down beside the row, back between the rows, and in from the left.
        out, into = x1 + MARGIN / 2, x2 - MARGIN / 2
        between = end.y - BETWEEN_STEPS / 2
        return f"M{x1:g},{y1:g} H{out:g} V{between:g} H{into:g} V{y2:g} H{x2:g}"
    middle = (x1 + x2) / 2
    return f"M{x1:g},{y1:g} C{middle:g},{y1:g} {middle:g},{y2:g} {x2:g},{y2:g}"
