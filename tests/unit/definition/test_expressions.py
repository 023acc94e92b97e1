"""`when`: what is true, what is refused at import, what fails on an order without telling it."""

import operator
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundsman.definition.expressions import compile_condition, evaluate_list, is_true, paths_read
from roundsman.errors import DefinitionError
from roundsman.model.json import Json

ORDER: Json = {
    "total": "150.00",
    "lines": [{"sku": "KB-101", "quantity": 2, "unitPrice": "19.90"}],
    "note": "secret",
    "gift": False,
    "zero": 0,
    "tags": [],
}
RESULTS: dict[str, Json] = {"reserve_stock": {"reservationId": "r-1", "backorder": True}}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("input.note == 'secret'", True),
        ("input.note == 'other'", False),
        ("results.reserve_stock.backorder", True),
        ("results.charge_card", False),
        ("input.gift", False),
        ("!(input.gift)", True),  # the brackets matter: `!` binds closer than the dot
        ("input.tags", False),
        ("input.zero", True),  # a number is true in JMESPath, zero included
        ("input.lines[?quantity > `1`]", True),
        ("input.lines[?quantity > `2`]", False),
        ("length(input.lines) >= `1` && contains(keys(@), 'results')", True),
        ("''", False),
        ("`{}`", False),
        ("input.missing > `1`", False),
        ("input.gift > `1`", False),  # only numbers and strings have an order
        ("input.tags < 'a'", False),
        ("input.note < 'tail'", True),
    ],
)
def test_a_condition_holds_by_jmespaths_own_truth(expression: str, expected: bool) -> None:
    compile_condition("step 'a': when", expression)
    assert is_true(expression, ORDER, RESULTS) is expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("input.total > `100`", True),
        ("input.total > `150`", False),
        ("input.total >= `150`", True),
        ("input.total < `1000`", True),  # as text, "150.00" < "1000" is false
        ("`1000` > input.total", True),
        ("input.total <= `150.0`", True),
        ("input.lines[?unitPrice < `19.91`]", True),
        ("input.lines[?unitPrice < `19.90`]", False),
        ("input.note > `1`", False),
        ("'nan' > `1`", False),
        ("input.total > `true`", False),
        ("input.total > input.tags", False),
    ],
)
def test_an_amount_and_a_number_are_ordered_by_their_value(expression: str, expected: bool) -> None:
    assert is_true(expression, ORDER, RESULTS) is expected


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("", "when is not valid JMESPath: ''"),
        ("   ", "when is not valid JMESPath"),
        ("input.", "when is not valid JMESPath: 'input.'"),
        ("input[", "Incomplete expression"),
        ("input ==", "when is not valid JMESPath"),
        ("nope(input)", r"there is no function nope\(\)"),
        ("input.lines[?nope(@)] | [0]", r"there is no function nope\(\)"),
        ("length()", r"length\(\) takes 1 argument"),
        ("length(input, results)", r"length\(\) takes 1 argument\(s\), not 2"),
        ("{a: sort_by(input.lines)}", r"sort_by\(\) takes 2 argument\(s\), not 1"),
        ("not_null()", r"not_null\(\) takes 1 argument\(s\), not 0"),
        (None, "when must be a JMESPath expression, not None"),
        (1, "when must be a JMESPath expression, not 1"),
    ],
)
def test_an_expression_that_can_never_be_evaluated_is_refused(
    expression: object, sentence: str
) -> None:
    with pytest.raises(DefinitionError, match=f"step 'a': .*{sentence}"):
        compile_condition("step 'a': when", expression)


def test_a_function_of_many_arguments_takes_many() -> None:
    compile_condition("step 'a': when", "not_null(input.a, input.b, input.note) && merge(@, input)")


@pytest.mark.parametrize(
    "expression",
    [
        "abs(input.note)",
        "contains(input.note, `1`)",
        "input.lines[::0]",
        "ceil(to_number('inf'))",
        "sort_by(input.lines, &sku.x)",
        "sum(input.lines[].unitPrice)",
    ],
)
def test_an_expression_that_fails_on_an_order_says_so_without_the_orders_contents(
    expression: str,
) -> None:
    with pytest.raises(ValueError, match="cannot be evaluated") as failure:
        is_true(expression, ORDER, RESULTS)
    assert repr(expression) in str(failure.value)
    for content in ("secret", "KB-101", "19.90"):
        assert content not in str(failure.value)


@pytest.mark.parametrize(
    ("expression", "paths"),
    [
        ("input.lines", {("input", "lines")}),
        ("@.input.lines", {("input", "lines")}),
        ("@ | input.lines", {()}),
        ("values(@)", {()}),
        ("*", {()}),
        ("input.lines | length(@)", {("input", "lines")}),
        ("input.lines[?@.qty > input.least]", {("input", "lines")}),
        ("{a: @.results.a, b: input}", {("results", "a"), ("input",)}),
        ("results.a[0].sku", {("results", "a")}),
        ("results.a.lines[].sku", {("results", "a", "lines")}),
        ("results.a.lines[?qty > `1`].sku", {("results", "a", "lines")}),
        ("results.a[*].sku.*", {("results", "a")}),
        ("results.a.*.sku", {("results", "a")}),
        ("results.*.sku", {("results",)}),
        ("results.[a, b]", {("results",)}),
        ("results[0]", {("results",)}),
    ],
)
def test_the_paths_that_an_expression_reads(expression: str, paths: set[tuple[str, ...]]) -> None:
    assert paths_read(expression) == paths


FULL_WIDTH = "\uff11\uff12\uff13"
OPERATORS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
amounts = st.decimals(-1_000, 1_000, places=2).map(str) | st.integers(-1_000, 1_000)


@given(amounts, amounts, st.sampled_from(sorted(OPERATORS)))
def test_six_operators_compare_amounts_as_decimal_does(
    left: str | int, right: str | int, sign: str
) -> None:
    found = is_true(f"input.a {sign} input.b", {"a": left, "b": right}, {})
    assert found is OPERATORS[sign](Decimal(left), Decimal(right))


@pytest.mark.parametrize(
    "text",
    [
        "1_000",
        FULL_WIDTH,
        "NaN",
        "Infinity",
        " 200 ",
        "1e3",
        "1,000.00",
        "+200",
        "0200",
        "200.",
    ],
)
def test_other_text_is_text_and_not_an_amount(text: str) -> None:
    for sign in ("<", "<=", ">", ">=", "=="):
        assert not is_true(f"input.total {sign} `1000`", {"total": text}, {})
    assert is_true("input.total != `1000`", {"total": text}, {})
    assert is_true("input.total == input.total", {"total": text}, {})


def test_max_min_and_sort_order_amounts_by_value_and_other_text_as_text() -> None:
    order: Json = {"a": ["9.50", "10.00", "1.5"], "t": ["b", "10", "9"]}
    assert is_true("max(input.a) == '10.00' && min(input.a) == '1.5'", order, {})
    assert evaluate_list("sort(input.a)", order, {}) == ["1.5", "9.50", "10.00"]
    assert evaluate_list("sort(input.t)", order, {}) == ["10", "9", "b"]
    assert not is_true("max(`[]`) || min(`[]`)", order, {})


def lines(*totals: Json) -> Json:
    return {"lines": [{"total": total, "at": at} for at, total in enumerate(totals)]}


@pytest.mark.parametrize(
    ("order", "ordered"),
    [
        (lines("9.50", "10.00", "1.5"), [2, 0, 1]),
        (lines("9.50", 10, 1.5), [2, 0, 1]),
        (lines("1.10", "-3", "1.01"), [1, 2, 0]),
        (lines(9, 10, 1), [2, 0, 1]),
        # One text that is no amount: all are compared as text.
        (lines("9.50", "10.00", "1e3"), [1, 2, 0]),
        (lines("b", "10", "9"), [1, 2, 0]),
        (lines(), []),
    ],
)
def test_sort_by_max_by_and_min_by_compare_amounts_by_value(
    order: Json, ordered: list[Json]
) -> None:
    assert evaluate_list("sort_by(input.lines, &total)[].at", order, {}) == ordered
    least = evaluate_list("[min_by(input.lines, &total).at]", order, {})
    greatest = evaluate_list("[max_by(input.lines, &total).at]", order, {})
    assert [*least, *greatest] == ([ordered[0], ordered[-1]] if ordered else [None, None])


def test_of_equal_amounts_the_first_is_the_greatest_and_the_least_and_all_stay_in_order() -> None:
    order = lines("1.1", "1.10", 1.1)
    assert evaluate_list("sort_by(input.lines, &total)[].at", order, {}) == [0, 1, 2]
    for function in ("max_by", "min_by"):
        assert evaluate_list(f"[{function}(input.lines, &total).at]", order, {}) == [0]


@pytest.mark.parametrize("function", ["sort_by", "max_by", "min_by"])
@pytest.mark.parametrize("totals", [(True, False), (None, "1"), ("1", [1]), (1, "x")])
def test_what_has_no_order_fails_with_a_sentence(function: str, totals: tuple[Json, ...]) -> None:
    with pytest.raises(ValueError, match="cannot be evaluated"):
        evaluate_list(f"[{function}(input.lines, &total)]", lines(*totals), {})


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("contains(input.a, `10`)", True),
        ("contains(input.a, '10')", True),
        ("contains(input.a, '10.000')", True),
        ("contains(input.a, '9.5')", True),
        ("contains(input.a, `9.5`)", True),
        ("contains(input.a, '1')", False),
        ("contains(input.a, '1e1')", False),
        ("contains(input.a, 'x')", True),
        ("contains(input.a, `true`)", True),
        ("contains(input.a, `1`)", False),
        ("contains(input.a, `[1]`)", True),
        ("contains('v1.10', '1.1')", True),
        ("contains('v1.10', '1.100')", False),
    ],
)
def test_a_list_contains_an_amount_by_its_value_and_a_text_its_parts(
    expression: str, expected: bool
) -> None:
    order: Json = {"a": ["10.00", 9.5, "x", True, [1], None]}
    assert is_true(expression, order, {}) is expected
