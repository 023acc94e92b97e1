"""What `roundsman init` makes for an evaluation, and for production."""

from pathlib import Path

import pytest

from roundsman_dev.preflight.checks import (
    LEAST_CAP,
    PlannedStack,
    Quota,
    check_concurrency,
    check_parameters,
    check_stack,
)
from roundsman_dev.preflight.documents import CheckStatus
from roundsman_dev.project.create import create
from roundsman_dev.project.planned import planned_stack

NEW_ACCOUNT = Quota(10, 10, [])


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("evaluation") / "shop"
    create(folder, agents=["stock", "payment", "courier", "mail"], version="0.1.0")
    return folder


@pytest.fixture(scope="module")
def evaluation(shop: Path) -> PlannedStack:
    return planned_stack(shop, "evaluation", {})


def test_an_evaluation_is_lean_with_the_fewest_instances_and_runs_in_a_new_account(
    evaluation: PlannedStack,
) -> None:
    assert evaluation.stack == "shop-eval"
    assert evaluation.parameters["Profile"] == "lean"
    assert set(evaluation.caps.values()) == {LEAST_CAP}
    assert len(evaluation.caps) == 2 + 2 * 4, "without urgent queues"
    assert evaluation.alarm_at is None
    found = check_concurrency(evaluation, NEW_ACCOUNT, exists=False)
    assert found.status is CheckStatus.WARNING
    assert found.sentence.endswith("under load orders come late, and none fails.")


def test_the_tables_of_an_evaluation_can_be_removed_with_it(evaluation: PlannedStack) -> None:
    """`roundsman delete --tables` removes what nothing protects without another deployment."""
    assert evaluation.parameters["DeletionProtection"] == "false"
    assert check_stack(evaluation, None).status is CheckStatus.OK


def test_each_environment_has_parameters_that_the_template_takes(shop: Path) -> None:
    for name in ("evaluation", "dev", "prod"):
        planned = planned_stack(shop, name, {})
        assert check_parameters(planned, {}).status is CheckStatus.WARNING, "an example's address"
        assert planned.placeholders[0] == "ServiceUrl"


def test_production_has_all_alarms_and_its_own_instances_and_a_protection_that_comes_later(
    shop: Path,
) -> None:
    planned = planned_stack(shop, "prod", {})
    assert planned.parameters["Profile"] == "full"
    assert planned.parameters["DeletionProtection"] == "later"
    assert max(planned.caps.values()) == 10
    assert planned.alarm_at == 800
    found = check_concurrency(planned, NEW_ACCOUNT, exists=False)
    assert (found.status, "Until then: set SmallAccount" in str(found.do)) == (
        CheckStatus.WARNING,
        True,
    )


def test_a_small_account_with_all_alarms_has_one_that_can_ring_there(shop: Path) -> None:
    planned = planned_stack(shop, "prod", {"SmallAccount": "true"})
    assert planned.alarm_at == 8


@pytest.mark.parametrize(
    ("given", "found"),
    [({"PythonRuntime": "python3.11"}, False), ({"Profile": "standard"}, False)],
)
def test_values_that_go_together_are_no_problem(
    shop: Path, given: dict[str, str], found: bool
) -> None:
    assert bool(planned_stack(shop, "prod", given).impossible) is found


def test_a_timeout_that_only_a_parameter_of_the_deployment_makes_too_long_is_a_fault(
    shop: Path, tmp_path: Path
) -> None:
    """`roundsman check` sees the bounds of the parameter; AWS would refuse it at the creation."""
    copy = tmp_path / "shop"
    create(copy, agents=["stock"], version="0.1.0")
    template = copy / "template.yaml"
    text = template.read_text().replace(
        "\nResources:\n", "  Longest:\n    Type: Number\n    Default: 40\n\nResources:\n", 1
    )
    text = text.replace(
        "        Name: Stock\n", "        Name: Stock\n        TimeoutSeconds: !Ref Longest\n"
    )
    template.write_text(text)
    assert planned_stack(copy, "prod", {}).impossible == []
    problems = planned_stack(copy, "prod", {"Longest": "310"}).impossible
    assert any(
        "StockRequestQueue: its VisibilityTimeout can be 240 s, and the Timeout of StockFunction "
        "310 s" in one
        for one in problems
    )
