"""`resubmit --set`, `--remove` and `--input`: an order that failed continues with another input."""

import json
import shlex
from pathlib import Path

import pytest

from roundsman_console.inspector import InputCorrection, Inspector
from tests.console.operators import DECLINED, Operator, document
from tests.moto.orders import ALL_EFFECTS, order
from workflows.registry import WORKFLOWS

NO_MAIL: dict[str, object] = {"operation": "POST /messages", "status": 422}
MINUTES = 60_000
EVENT = Path(__file__).resolve().parents[2] / "events" / "good.json"


def declined(operator: Operator, *names: str) -> Operator:
    """Orders that were undone because their card was declined."""
    operator.world.submit(*({**order(name), **DECLINED} for name in names))
    operator.world.run()
    assert {operator.world.task(name).state for name in names} == {"Undone"}
    return operator


@pytest.fixture
def unsent(operator: Operator) -> Operator:
    """An order of which only the confirmation was refused, some minutes ago."""
    operator.world.faults(NO_MAIL)
    operator.world.submit(order("ord-1"))
    operator.world.run()
    assert operator.world.task("ord-1").state == "Archived"
    operator.world.faults()
    operator.world.clock.now += 5 * MINUTES
    return operator


@pytest.mark.exhaustive
def test_an_undone_order_begins_again_with_another_token_which_is_not_shown(
    operator: Operator,
) -> None:
    declined(operator, "ord-1")
    result = operator.asks("resubmit", "ord-1", "--again", "--set", "paymentToken=tok_visa")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[:3] == [
        "Its input would change:",
        "  paymentToken: (masked), now (masked)",
        "Done: resubmit by ops: routine; corrected paymentToken.",
    ]
    operator.world.run()
    assert operator.world.task("ord-1").state == "Completed"
    assert operator.world.effects("ord-1") == ALL_EFFECTS | {
        "inventory perform": 2,
        "inventory undo": 1,
    }
    assert "corrected paymentToken" in json.dumps(operator.reads("show", "ord-1")["history"])
    history = operator.types("show", "ord-1").stdout
    assert "tok_visa" not in history


@pytest.mark.exhaustive
def test_a_dry_run_shows_the_changes_with_the_computed_ones_and_sends_nothing(
    unsent: Operator,
) -> None:
    before = unsent.world.task("ord-1")
    typed = ("--set", "lines[0].quantity=3", "--used", "--not-done", "send_confirmation")
    command = ("resubmit", "ord-1", *typed, "--dry-run", "--reason", "routine")
    found = unsent.reads(*command)
    assert (found["outcome"], found["commandId"]) == ("dryRun", None)
    assert found["input"] == [
        {"path": "lines[0].quantity", "before": "2", "after": "3"},
        {"path": "total", "before": '"39.80"', "after": '"59.70"'},
    ]
    shown = unsent.types(*command).stdout.splitlines()
    assert shown == [
        "Its input would change:",
        "  lines[0].quantity: 2, now 3",
        '  total: "39.80", now "59.70"',
        "resubmit of ord-1 is possible; nothing was sent.",
    ]
    unsent.world.run()
    assert unsent.world.task("ord-1") == before


def test_a_number_that_is_typed_for_a_text_is_text(operator: Operator) -> None:
    declined(operator, "ord-1", "ord-2")
    typed = ("--again", "--set", "shippingAddress.postalCode=1234", "--set", "lines[0].quantity=3")
    for orders in (("ord-1",), ("ord-1", "ord-2")):
        dry = () if len(orders) > 1 else ("--dry-run",)
        shown = operator.types("resubmit", *orders, *typed, *dry, "--reason", "routine").stdout
        assert '  shippingAddress.postalCode: "9000", now "1234"' in shown
        assert "  lines[0].quantity: 2, now 3" in shown


@pytest.mark.exhaustive
def test_what_finished_steps_have_used_is_corrected_only_if_asked_explicitly(
    unsent: Operator,
) -> None:
    typed = ("--set", "shippingAddress.name=B. Reader", "--not-done", "send_confirmation")
    result = unsent.asks("resubmit", "ord-1", *typed)
    assert result.exit_code == 1
    users = "shippingAddress.name was used by reserve_stock, charge_card, create_shipment"
    assert users in result.stderr
    assert "nothing was sent" in result.stderr
    result = unsent.asks("resubmit", "ord-1", *typed, "--used")
    assert f"corrected shippingAddress.name ({users})" in result.stdout
    unsent.world.run()
    task = unsent.world.task("ord-1")
    assert (task.state, task.step("send_confirmation").round) == ("Completed", 2)


@pytest.mark.exhaustive
def test_all_that_a_correction_must_state_is_named_at_once_with_the_command(
    unsent: Operator,
) -> None:
    typed = ("resubmit", "ord-1", "--set", "customerId=c-43", "--reason", "routine", "--yes")
    for dry in ((), ("--dry-run",)):
        result = unsent.types(*typed, *dry)
        assert result.exit_code == 1
        assert "customerId was used by reserve_stock" in result.stderr
        assert "add --used to change it nevertheless" in result.stderr
        assert "send_confirmation: it may have had its effect" in result.stderr
        assert "add --not-done and its name" in result.stderr
        assert "`" not in result.stderr
        hint = "Next if the service shows that send_confirmation did not happen: "
        [following] = [line for line in result.stderr.splitlines() if line.startswith("Next")]
        assert following.startswith(f"{hint}roundsman resubmit ord-1 --set customerId=c-43")
        assert following.endswith("--used --not-done send_confirmation")
    following = following.removeprefix(f"{hint}roundsman ")
    result = unsent.types(*shlex.split(following))
    assert "resubmit of ord-1 is possible" in result.stdout
    result = unsent.types(*shlex.split(following.replace(" --dry-run", "")))
    assert result.exit_code == 0
    unsent.world.run()
    assert unsent.world.task("ord-1").state == "Completed"


@pytest.mark.exhaustive
def test_only_what_is_missing_is_named(unsent: Operator) -> None:
    typed = ("resubmit", "ord-1", "--set", "customerId=c-43", "--used")
    result = unsent.asks(*typed)
    assert result.stderr.rstrip().endswith("--yes --not-done send_confirmation")
    result = unsent.asks(*typed[:-1], "--not-done", "send_confirmation")
    assert result.stderr.rstrip().endswith("--yes --used")
    assert "\nNext: roundsman resubmit ord-1" in result.stderr


@pytest.mark.exhaustive
def test_an_obstacle_that_nothing_removes_is_named_after_the_others(operator: Operator) -> None:
    operator.world.faults(NO_MAIL)
    operator.world.submit(order("ord-1"))
    operator.world.run()  # a copy of the request may act some seconds longer
    result = operator.asks("resubmit", "ord-1", "--set", "customerId=c-43")
    assert "add --used" in result.stderr
    assert "a copy of its request may act under its key until" in result.stderr
    assert "--used --not-done send_confirmation" in result.stderr


@pytest.mark.exhaustive
def test_a_whole_input_replaces_the_input(unsent: Operator, tmp_path: Path) -> None:
    file = tmp_path / "order.json"
    whole = order("ord-1")
    whole["customerId"] = "c-43"
    file.write_text(json.dumps(whole), encoding="utf-8")
    typed = ("--input", str(file), "--used", "--not-done", "send_confirmation")
    result = unsent.asks("resubmit", "ord-1", *typed)
    assert '  customerId: "c-42", now "c-43"' in result.stdout.splitlines()
    unsent.world.run()
    assert unsent.world.task("ord-1").state == "Completed"
    del whole["currency"]
    file.write_text(json.dumps(whole), encoding="utf-8")
    result = unsent.asks("resubmit", "ord-1", *typed)
    assert "the corrected input is not valid: currency: missing" in result.stderr


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (("--set", "currency=eur"), "currency: must be three capital letters"),
        pytest.param(("--set", "total=1"), "total: unknown field", marks=pytest.mark.exhaustive),
        pytest.param(("--remove", "currency"), "currency: missing", marks=pytest.mark.exhaustive),
        pytest.param(
            ("--set", "orderId=ord-2"),
            "orderId: is not a part of the input",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(
            ("--set", "lines[9].sku=x"),
            "there is no field lines[9].sku",
            marks=pytest.mark.exhaustive,
        ),
        pytest.param(
            ("--set", "currency=EUR"),
            "the correction changes nothing",
            marks=pytest.mark.exhaustive,
        ),
    ],
)
def test_a_correction_that_is_not_valid_is_refused_before_anything_is_sent(
    unsent: Operator, typed: tuple[str, ...], sentence: str
) -> None:
    before = unsent.world.task("ord-1")
    result = unsent.asks("resubmit", "ord-1", *typed, "--used")
    assert result.exit_code == 1
    assert "refused, nothing was sent" in result.stderr
    assert sentence in result.stderr
    unsent.world.run()
    assert unsent.world.task("ord-1") == before


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (("--set", "currency"), "'currency' has no value; write it as path=value."),
        (("--set", "a[=1"), "'a[' is not a path"),
        (("--input", "none.json"), "none.json cannot be read"),
    ],
)
def test_options_that_make_no_sense_are_a_sentence(
    operator: Operator, typed: tuple[str, ...], sentence: str
) -> None:
    result = operator.asks("resubmit", "ord-1", *typed)
    assert (result.exit_code, result.stdout) == (2, "")
    assert sentence in result.stderr


@pytest.mark.parametrize(
    ("content", "message"), [("{", "is not JSON"), ("[]", "not a JSON object")]
)
def test_a_file_that_is_not_an_object_is_a_sentence(
    operator: Operator, tmp_path: Path, content: str, message: str
) -> None:
    file = tmp_path / "order.json"
    file.write_text(content, encoding="utf-8")
    result = operator.asks("resubmit", "ord-1", "--input", str(file))
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.exhaustive
def test_a_correction_is_asked_about(unsent: Operator) -> None:
    typed = ("--set", "customerId=c-43", "--used", "--not-done", "send_confirmation")
    result = unsent.types("resubmit", "ord-1", *typed, "--reason", "routine", answer="n\n")
    assert result.exit_code == 2
    assert "Continue it with the corrected input?" in result.stderr
    assert not unsent.world.task("ord-1").corrections


@pytest.mark.exhaustive
def test_without_an_application_a_correction_cannot_be_checked(
    unsent: Operator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for orders in (("ord-1",), ("--state", "Archived")):
        result = unsent.asks(
            "resubmit", *orders, "--stack", "roundsman", "--set", "customerId=c-43"
        )
        assert result.exit_code == 1
        assert "there is no application in this folder or a parent" in result.stderr


@pytest.mark.exhaustive
def test_many_orders_are_corrected_each_with_its_own_total(operator: Operator) -> None:
    declined(operator, "ord-1", "ord-2")
    more = order("ord-3")
    more["lines"] = [{"sku": "KB-101", "quantity": 3, "unitPrice": "19.90"}]
    operator.world.submit({**more, **DECLINED})
    operator.world.run()
    names = ("ord-1", "ord-2", "ord-3")
    typed = ("--again", "--set", "paymentToken=tok_visa", "--set", "lines[0].unitPrice=10.00")
    tried = operator.reads(
        "resubmit", *names, *typed[:3], "--set", 'lines[0].unitPrice="10.00"', "--reason", "routine"
    )
    inputs = tried["inputs"]
    assert isinstance(inputs, list)
    assert [one["orderId"] for one in inputs] == list(names)
    totals = [change["after"] for one in inputs for change in one["changes"][-1:]]
    assert totals == ['"20.00"', '"20.00"', '"30.00"']
    assert "tok_visa" not in json.dumps(inputs)
    shown = operator.types("resubmit", *names, *typed[:3], "--reason", "routine").stdout
    assert "ord-1: the input would change:\n  paymentToken: (masked), now (masked)" in shown
    operator.lets_time_pass()
    result = operator.types(
        "resubmit", *names, *typed[:3], "--reason", "routine", "--as", "ops", "--go", "--yes",
        "--json", "--set", 'lines[0].unitPrice="10.00"',
    )  # fmt: skip
    found = document(result)
    assert (found["completed"], found["sent"]) == (3, 3)
    assert "tok_visa" not in result.stdout
    for name, total in zip(names, ("20.00", "20.00", "30.00"), strict=True):
        row = operator.world.store.order(name)
        assert row is not None
        fixed = operator.world.task(name).input(row.content)
        assert isinstance(fixed, dict)
        assert (fixed["total"], fixed["paymentToken"]) == (total, "tok_visa")


@pytest.mark.exhaustive
def test_of_many_orders_those_with_an_invalid_input_are_refused_by_themselves(
    operator: Operator,
) -> None:
    declined(operator, "ord-1")
    two = order("ord-2")
    line = {"sku": "KB-101", "quantity": 2, "unitPrice": "19.90"}
    operator.world.submit({**two, "lines": [line, line], **DECLINED})
    operator.world.run()
    tried = operator.reads(
        "resubmit", "ord-1", "ord-2", "--again", "--set", "lines[1].quantity=1", "--reason", "why"
    )
    refused, eligible = tried["refused"], tried["eligible"]
    assert isinstance(refused, list)
    assert isinstance(eligible, dict)
    assert refused[0]["samples"] == ["ord-1"]
    assert "lines[1]" in refused[0]["reason"]
    assert eligible["samples"] == ["ord-2"]


@pytest.mark.exhaustive
def test_the_library_corrects_an_input_too(unsent: Operator) -> None:
    inspector = Inspector.of_stack("roundsman", workflows=WORKFLOWS)
    fix = InputCorrection(sets={"customerId": "c-43"}, used=True, not_done=("send_confirmation",))
    result = inspector.resubmit("ord-1", by="amy", reason="why", correction=fix, dry_run=True)
    assert [(one.path, one.after) for one in result.input] == [("customerId", '"c-43"')]
