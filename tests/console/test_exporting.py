"""`roundsman export`: each task on its line, without its order, and on from where it stopped."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from roundsman.errors import CallRefused, TryAgain, UnreadableRecord
from roundsman_console.faces.commands.export import _export
from roundsman_console.facts.orders import export
from roundsman_console.facts.orders.export import Lines
from roundsman_console.facts.orders.listing import Page, find
from roundsman_console.facts.orders.selection import Selection
from tests.console.operators import Operator
from tests.console.schemas import assert_schema
from tests.console.shelves import Shelves, archived
from tests.console.step_samples import AT
from tests.moto.orders import order


class Plans:
    """No plan is stored."""

    def plan(self, plan_hash: str) -> None:
        return None


def stored(count: int) -> Lines:
    shelves = Shelves()
    shelves.put(*(archived(f"ord-{place}", AT + place) for place in range(count)))
    stack = shelves.stack()
    stack.__dict__["plans"] = Plans()
    return Lines(stack, with_orders=False)


def test_what_stops_it_loses_no_line_and_repeats_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "AT_ONCE", 2)
    lines, file = stored(5), io.StringIO()
    pages = [0]

    def throttled(*arguments: object, **options: object) -> object:
        pages[0] += 1
        if pages[0] == 3:
            raise TryAgain("throttled")
        return find(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(export, "find", throttled)
    done = _export(lines, Selection(), file, None, None)
    assert (done.exported, done.stopped, done.whole) == (4, "throttled", False)
    done = _export(lines, Selection(), file, done.cursor, None)
    assert (done.exported, done.stopped, done.whole) == (1, None, True)
    written = [json.loads(line)["orderId"] for line in file.getvalue().splitlines()]
    assert written == [f"ord-{place}" for place in range(5)]


def test_rights_that_are_lost_on_the_way_do_not_lose_the_cursor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(export, "AT_ONCE", 2)
    lines, file = stored(3), io.StringIO()
    refused_from = [2]

    def refused(*arguments: object, **options: object) -> object:
        refused_from[0] -= 1
        if refused_from[0] < 1:
            raise CallRefused("listing archived#0: AccessDenied", "AccessDenied")
        return find(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(export, "find", refused)
    done = _export(lines, Selection(), file, None, None)
    assert (done.exported, done.stopped) == (2, "listing archived#0: AccessDenied")
    monkeypatch.setattr(export, "find", find)
    assert _export(lines, Selection(), file, done.cursor, None).whole
    assert len(file.getvalue().splitlines()) == 3

    monkeypatch.setattr(export, "find", refused)
    with pytest.raises(CallRefused):  # at once: the sentence says what to do about it
        _export(lines, Selection(), file, None, None)


def test_a_plan_that_cannot_be_read_is_counted_and_holds_up_no_other_task() -> None:
    class Altered:
        def plan(self, plan_hash: str) -> None:
            raise UnreadableRecord(f"plan#{plan_hash}", "Text", "is not a plan")

    lines, file = stored(2), io.StringIO()
    lines.stack.__dict__["plans"] = Altered()
    done = _export(lines, Selection(), file, None, None)
    assert (done.exported, done.unreadable, done.whole) == (0, 2, True)


def test_a_pipe_that_is_closed_ends_it_without_a_word() -> None:
    class Closed(io.StringIO):
        def flush(self) -> None:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):  # which ends every verb alike
        _export(stored(2), Selection(), Closed(), None, None)


def test_a_limit_ends_it_with_a_cursor() -> None:
    lines, file = stored(3), io.StringIO()
    done = _export(lines, Selection(), file, None, 2)
    assert (done.exported, done.whole) == (2, False)
    assert _export(lines, Selection(), file, done.cursor, 2).exported == 1


def test_what_services_answered_is_left_out_unless_asked() -> None:
    lines = stored(1)
    [task] = find(lines.stack, Selection()).tasks
    answered = replace(task.steps["charge"], result={"chargeId": "ch_1"})
    page = Page((replace(task, steps={"charge": answered}),), None, 1)
    [line] = lines.of(page)
    assert "ch_1" not in line
    assert "result" not in json.loads(line)["steps"][0]


@pytest.mark.exhaustive
def test_an_export_has_no_order_contents_unless_asked(operator: Operator, tmp_path: Path) -> None:
    operator.world.submit(order("ord-1", tenant="shop-1"), order("ord-2"))
    operator.world.run()
    target = tmp_path / "tasks.jsonl"
    exported = operator.reads("export", "--to", str(target), "--tag", "tenant=shop-1")
    assert_schema("export", exported)
    assert exported["exported"] == 1
    [task] = map(json.loads, target.read_text().splitlines())
    assert (task["orderId"], task["tags"]["tenant"]) == ("ord-1", "shop-1")
    assert "history" not in task
    assert "paymentToken" not in target.read_text()
    assert all("result" not in step for step in task["steps"])

    printed = operator.types("export", "--with-orders")
    both = [json.loads(line) for line in printed.stdout.splitlines()]
    assert {task["orderId"] for task in both} == {"ord-1", "ord-2"}
    assert both[0]["order"]["paymentToken"]
    assert "result" in both[0]["steps"][0]
    assert printed.stderr == "2 tasks written, 2 examined.\n"

    first = operator.reads("export", "--to", str(tmp_path / "some"), "--limit", "1")
    assert operator.types("export", "--to", str(tmp_path / "some")).exit_code == 2
    after = str(first["cursor"])
    assert operator.reads("export", "--to", str(tmp_path / "some"), "--after", after)["whole"]
    assert len((tmp_path / "some").read_text().splitlines()) == 2

    for arguments, message in (
        (["--json"], "--json requires --to"),
        (["--to", str(tmp_path)], "already exists"),
        (["--to", str(tmp_path / "no" / "where")], "cannot be written"),
        (["--after", "x"], "To begin with the first page, leave out --after."),
        (["--after", after, "--to", str(tmp_path / "sone")], "name the file that the export began"),
    ):
        result = operator.types("export", *arguments)
        assert (result.exit_code, result.stdout) == (2, "")
        assert message in result.stderr
    assert not (tmp_path / "sone").exists()
