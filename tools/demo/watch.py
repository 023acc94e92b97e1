"""Shows a run in progress: a line for each change."""

from collections.abc import Sequence

from rich.console import Console

from roundsman_console.faces.cli.inert_text import plain
from tools.demo.facts import AlertSeen, SeenRejection
from tools.demo.progress import Snapshot, hanging_calls, state_of, step_standing
from tools.demo.scenario import STEPS, SentOrder


class RunWatch:
    """Prints a line for each change."""

    def __init__(self, console: Console, sent: Sequence[SentOrder]) -> None:
        self._console = console
        self._sent = sent
        self._known: dict[tuple[str, str], str] = {}
        self._hanging = 0

    def show(self, seen: Snapshot) -> None:
        for one in self._sent:
            self._show_change(one, "", state_of(one, seen))
            task = seen.tasks.get(one.case.order_id)
            if task is not None and one.case.makes_a_task:
                for name in STEPS:
                    if name in task.steps:
                        self._show_change(one, name, step_standing(task.step(name)))
        if seen.hanging != self._hanging:
            self._hanging = seen.hanging
            self._line(hanging_calls(seen.hanging))

    def _show_change(self, one: SentOrder, step: str, standing: str) -> None:
        key = (one.case.event, step)
        if standing and self._known.get(key) != standing:
            self._known[key] = standing
            where = f"{one.case.order_id} ({one.case.event})" if not step else one.case.order_id
            self._line(f"{where}: {step} {standing}" if step else f"{where}: {standing}")

    def alert(self, alert: AlertSeen) -> None:
        self._line(f"alert: {alert.subject}: {alert.reason}. See: {alert.look}")

    def rejected(self, rejection: SeenRejection, event: str) -> None:
        self._line(f"rejected: {event}: {'; '.join(path for path, _ in rejection.problems)}")

    def _line(self, text: str) -> None:
        self._console.print(plain(text), soft_wrap=True)
