"""The parameters of the stack: what is asked for, what is decided, what is refused."""

from pathlib import Path

import pytest

from roundsman_console.base.errors import ConsoleError
from roundsman_dev.local.parameters import (
    DeclaredTemplate,
    architecture,
    choose_parameters,
    declared_parameters,
    parse_assignments,
    service_urls,
)
from tests.console.local_tools import RUNTIME, make_project
from tests.project import TEMPLATE

HERE = "http://127.0.0.1:9"


@pytest.fixture
def declared(tmp_path: Path) -> DeclaredTemplate:
    return declared_parameters(make_project(tmp_path) / "template.yaml")


def test_assignments_are_split_at_their_first_equals_sign() -> None:
    assert parse_assignments(["A=1", "B=x=y", "C="]) == {"A": "1", "B": "x=y", "C": ""}
    assert parse_assignments([" A =1", "B= x "]) == {"A": "1", "B": " x "}


@pytest.mark.parametrize("text", ["", "A", "=1", " =1"])
def test_what_is_not_an_assignment_is_refused(text: str) -> None:
    with pytest.raises(ConsoleError, match="--param requires Key=Value"):
        parse_assignments([text])


def test_a_parameter_given_twice_is_refused() -> None:
    with pytest.raises(ConsoleError, match="--param A is given twice"):
        parse_assignments(["A=1", "A =2"])


def test_one_services_url_serves_all_four_and_a_parameter_wins(
    declared: DeclaredTemplate,
) -> None:
    chosen = choose_parameters(
        declared, {"MailUrl": "https://mail"}, "https://all/", RUNTIME, stand_ins=HERE
    )
    assert service_urls(declared, chosen) == {
        "inventory": "https://all",
        "payment": "https://all",
        "shipping": "https://all",
        "mail": "https://mail",
    }
    assert chosen["PythonRuntime"] == RUNTIME
    assert chosen["Architecture"] == architecture()


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({}, "false"),
        pytest.param({"DeletionProtection": "true"}, "true", marks=pytest.mark.exhaustive),
    ],
)
def test_the_tables_of_a_local_stack_are_protected_only_if_that_is_asked(
    asked: dict[str, str], found: str
) -> None:
    chosen = choose_parameters(
        declared_parameters(TEMPLATE), asked, "https://all", RUNTIME, stand_ins=HERE
    )
    assert chosen["DeletionProtection"] == found


def test_without_a_services_url_they_are_expected_where_the_stand_ins_answer(
    declared: DeclaredTemplate,
) -> None:
    chosen = choose_parameters(declared, {}, None, RUNTIME, stand_ins=HERE)
    assert set(service_urls(declared, chosen).values()) == {HERE}


ADDED = """
  Fraud:
    Type: AWS::Serverless::Application
    Properties:
      Location: stacks/agent.yaml
      Parameters: {Agent: fraud}
  Partner:
    Type: AWS::Serverless::Application
    Properties:
      Location: stacks/agent.yaml
      Parameters: {Agent: partner, ServiceUrl: !Sub 'https://${AWS::Region}.example.com'}
"""


def test_an_agent_without_an_address_gets_one_and_a_computed_one_stays(tmp_path: Path) -> None:
    template = make_project(tmp_path) / "template.yaml"
    agent = tmp_path / "stacks" / "agent.yaml"
    agent.write_text(agent.read_text().replace("{Type: String}\n", "{Type: String, Default: ''}\n"))
    with template.open("a") as out:
        out.write(ADDED)
    declared = declared_parameters(template)
    chosen = choose_parameters(declared, {}, None, RUNTIME, stand_ins=HERE)
    assert chosen["Fraud.ServiceUrl"] == HERE
    assert "Partner.ServiceUrl" not in chosen
    chosen = choose_parameters(declared, {}, "https://all", RUNTIME, stand_ins=HERE)
    assert set(service_urls(declared, chosen).values()) == {"https://all"}
    assert set(service_urls(declared, chosen)) >= {"fraud", "partner", "mail"}


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("Interval", "soon", "it must be a number"),
        ("Interval", "nan", "it must be at least 5"),
        ("Interval", "3601", "it must be at most 3600"),
        ("Architecture", "mips", "it must be one of arm64, x86_64"),
        ("Name", "a", "it must be at least 2 characters long"),
        ("Name", "abcde", "it must be at most 4 characters long"),
        ("Name", 'a"b', "it must contain no double quote"),
        ("InventoryUrl", "inventory", "it must match"),
    ],
)
def test_a_value_outside_the_templates_bounds_is_refused(
    declared: DeclaredTemplate, name: str, value: str, sentence: str
) -> None:
    with pytest.raises(ConsoleError, match=sentence) as caught:
        choose_parameters(declared, {name: value}, "https://all", RUNTIME, stand_ins=HERE)
    assert str(caught.value).startswith(f"The parameter {name} cannot be ")


@pytest.mark.parametrize(
    ("machine", "name"),
    [("x86_64", "x86_64"), ("aarch64", "arm64"), ("arm64", "arm64")],
)
def test_the_architecture_is_called_what_lambda_calls_it(machine: str, name: str) -> None:
    assert architecture(machine) == name


def test_a_machine_that_lambda_has_not_is_refused() -> None:
    with pytest.raises(ConsoleError, match="Lambda has no riscv64 architecture"):
        architecture("riscv64")


def test_a_template_that_is_no_yaml_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "template.yaml").write_text("a: b: c")
    with pytest.raises(ConsoleError, match=r"template\.yaml is not valid YAML") as caught:
        declared_parameters(tmp_path / "template.yaml")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "[]", "Parameters: 1", "Resources: {}"])
def test_a_template_without_parameters_has_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "template.yaml").write_text(text)
    assert declared_parameters(tmp_path / "template.yaml") == DeclaredTemplate()
