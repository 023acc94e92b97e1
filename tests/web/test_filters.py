"""The table of filters: a row is an option, a field of the form, and part of what is kept."""

from importlib.util import module_from_spec
from types import ModuleType

import pytest
import typer

from roundsman_console.faces.cli import options
from roundsman_console.faces.commands import export, ls
from roundsman_console.faces.web.selection_fields import asked_of, option_text, selection_of
from roundsman_console.facts.orders.filters import FILTERS, Filter
from roundsman_console.facts.orders.selection import Selection
from tests.console.operators import DECLINED
from tests.moto.orders import order
from tests.web.browsers import Browser
from tests.web.test_orders_list import listed

ROW = Filter("fault_of", "Fault", "Only orders with this fault.", of="error", words="fault {}")


@pytest.fixture(autouse=True)
def one_row_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FILTERS, ROW.name, ROW)


def read_again(module: ModuleType) -> ModuleType:
    """A copy of a module whose commands know the row; the module itself stays as it was."""
    spec = module.__spec__
    assert spec
    assert spec.loader
    copy = module_from_spec(spec)
    spec.loader.exec_module(copy)
    return copy


def command_of(function: object) -> typer.core.TyperCommand:
    app = typer.Typer()
    app.command()(function)  # type: ignore[type-var]  # a function of a module that was read again
    command = typer.main.get_command(app)
    assert isinstance(command, typer.core.TyperCommand)
    return command


@pytest.mark.parametrize(("module", "name"), [(ls, "ls_command"), (export, "export_command")])
def test_a_row_is_an_option_of_each_command_with_filters(module: ModuleType, name: str) -> None:
    [found] = [
        one
        for one in command_of(getattr(read_again(module), name)).params
        if one.name == ROW.name and isinstance(one, typer.core.TyperOption)
    ]
    assert (found.opts, found.help, found.metavar) == (["--fault-of"], ROW.help, "NAME")


def test_a_row_selects_the_orders_of_a_bulk_run_and_is_kept_with_it() -> None:
    typed = ["--state", "archived", "--fault-of", "CardDeclined", "--tag", "tenant=a b"]
    read = command_of(read_again(options).read_common)
    parsed = read.main(["x", *typed, "--at-step", "pay"], standalone_mode=False)
    assert parsed.selection.error == "CardDeclined"
    kept = "--state Archived --at-step pay --tag 'tenant=a b' --fault-of CardDeclined"
    assert parsed.selected == kept
    given = {"state": "Archived", "at_step": "pay", "tenant": "a b", ROW.name: "CardDeclined"}
    asked = asked_of(given, command=True)
    assert option_text(asked) == kept
    assert selection_of(asked) == parsed.selection
    assert (
        parsed.selection.words() == "Archived, at pay, CardDeclined, tenant a b, fault CardDeclined"
    )


def test_a_row_is_a_field_of_the_page_and_of_its_links(browser: Browser) -> None:
    browser.operator.world.submit(order("ord-1"), {**order("ord-2"), **DECLINED})
    browser.operator.world.run()
    page = browser.html("/orders?state=Undone&fault_of=CardDeclined")
    assert 'Fault <input name="fault_of" value="CardDeclined"' in page
    assert listed(page) == ["ord-2"]
    assert listed(browser.html("/orders?fault_of=OutOfStock")) == []
    assert "/export?state=Undone&amp;fault_of=CardDeclined" in page
    assert "/commands/undo-all?state=Undone" not in page
    assert "/commands/resubmit-all?state=Undone&amp;fault_of=CardDeclined" in page
    download = browser.html("/export?fault_of=CardDeclined")
    assert '<input type="hidden" name="fault_of" value="CardDeclined">' in download


def test_a_filter_says_whether_the_index_decides_it() -> None:
    decided = {name for name, one in FILTERS.items() if one.in_index}
    assert decided == {"state", "workflow", "older", "newer", "starts", "priority"}
    assert Selection(workflow="w", older=1, tags={"priority": "urgent"}).decided_by_index
    assert not Selection(error="x").decided_by_index
    assert not Selection(tags={"tenant": "a"}).decided_by_index
    assert not Selection(left_out=True).decided_by_index
