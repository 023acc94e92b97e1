"""Each block of output on a page is compared with what is printed: none can go out of date unseen.

Most are marked `<!-- run: ... -->` or `<!-- bench: ... -->` and made again by the test of their
page. The others are compared here, or in the module that `COMPARED` names.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from roundsman import Compensation, DefinitionError, Retry, Step, Workflow
from roundsman.definition.plan import plan_of
from roundsman.engine.new_task import ProcessingOptions, new_task
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.errors import ConsoleError
from roundsman_console.base.hints import hint
from roundsman_console.faces.cli.target import where
from roundsman_dev.local.code import check_syntax
from roundsman_dev.local.watch import name_files, name_functions
from roundsman_dev.preflight.checks import check_orders
from roundsman_dev.preflight.open_orders import Function, OrdersRead
from roundsman_dev.prove.deployment import Place
from roundsman_dev.prove.text import print_plan

PROJECT = Path(__file__).parents[2]
PAGES = sorted(
    path
    for folder in ("docs", "examples")
    for path in (PROJECT / folder).rglob("*.md")
    if "decisions" not in path.parts
) + [PROJECT / name for name in ("README.md", "PACKAGE.md", "events/README.md", "SECURITY.md")]

BLOCK = re.compile(
    r"(?P<mark><!-- (?:run|bench): [\w-]+ -->\n)?"
    r"^(?P<indent> *)```(?P<kind>\w*)\n(?P<text>.*?)^(?P=indent)```$",
    re.S | re.M,
)
OUTPUT = ("", "console", "text")

COMPARED = {
    "README.md": "tests/docs/test_readme.py",
    "docs/reference/cli.md": "tests/docs/test_reference.py",
    "docs/how-to/deploy.md": "tests/docs/test_pasted_outputs.py",
    "docs/how-to/prove.md": "tests/docs/test_pasted_outputs.py",
    "docs/how-to/run-locally.md": "tests/docs/test_pasted_outputs.py",
    "docs/reference/workflow.md": "tests/docs/test_pasted_outputs.py",
}
"""The pages with blocks of output that are not marked, each with the module that compares them."""

NO_OUTPUT = re.compile(
    r"fields @|filter |annotation\.|curl |roundsman |make |sam |\$ aws |functions/\*/app\.py"
    r"| +\+-| your app| \w+ -->"
)
"""How a block begins that is typed, or drawn, and not printed."""


@dataclass(frozen=True)
class Shown:
    page: str
    text: str


def shown() -> list[Shown]:
    """The blocks of output that no marker says the test of."""
    found = []
    for path in PAGES:
        for block in BLOCK.finditer(path.read_text(encoding="utf-8")):
            typed = NO_OUTPUT.match(block["text"])
            if block["kind"] in OUTPUT and not block["mark"] and not typed:
                found.append(Shown(path.relative_to(PROJECT).as_posix(), block["text"]))
    return found


def test_each_block_of_output_is_compared_by_a_test() -> None:
    pages = {one.page for one in shown()}
    assert pages - {*COMPARED} == set(), "compare it, or mark it as a run"
    assert {*COMPARED} - {"docs/reference/cli.md", "README.md"} <= pages, (
        "it has no such block any more"
    )
    for module in COMPARED.values():
        assert (PROJECT / module).is_file()


def of(page: str, begin: str) -> str:
    [found] = [one.text for one in shown() if one.page == page and one.text.startswith(begin)]
    return found


def joined(text: str) -> str:
    return " ".join(text.split())


SHORT = timedelta(seconds=30)
CHARGE = Step(name="charge", agent="payment", complete_within=SHORT)
CHECKOUT = Workflow(name="checkout", steps=(CHARGE,), complete_within=timedelta(hours=1))
QUOTE = replace(CHARGE, name="quote")
REFUSED: list[Callable[[], object]] = [
    lambda: replace(CHARGE, name="charge_card", complete_within=timedelta(seconds=1200)),
    lambda: replace(CHECKOUT, steps=(replace(CHARGE, after=(replace(CHARGE, name="reserve"),)),)),
    lambda: replace(
        CHECKOUT, steps=(QUOTE, replace(CHARGE, name="pick", for_each="results.quote"))
    ),
    lambda: replace(
        CHECKOUT, steps=(replace(CHARGE, retry=Retry(keep_trying_for=timedelta(hours=2))),)
    ),
]


def test_the_refusals_of_the_workflow_page_are_those_of_the_definitions() -> None:
    said = []
    for make in REFUSED:
        with pytest.raises(DefinitionError) as refused:
            make()
        said.append(str(refused.value))
    assert of("docs/reference/workflow.md", "step 'charge_card'").splitlines() == said


def test_the_reference_shows_where_a_stack_is_as_commands_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    monkeypatch.setenv("AWS_PROFILE", "prod")
    arn = "arn:aws:cloudformation:eu-central-1:123456789012:stack/shop/1"
    stack = DeployedStack("shop", {}, {}, arn=arn, endpoint="https://aws.example")
    assert of("docs/reference/cli.md", "Stack ") == f"{where(stack)}\n"


def test_the_page_on_deployment_shows_what_preflight_says_of_orders() -> None:
    workflow = Workflow(
        name="order_fulfilment",
        steps=(replace(CHARGE, name="charge_card", compensation=Compensation()),),
        complete_within=timedelta(hours=1),
    )
    plan = plan_of(workflow)
    tasks = [
        new_task(plan, f"ord-{number}", ProcessingOptions(), 0, shards=1) for number in (7, 8, 9)
    ]
    read = OrdersRead(tasks, {plan.hash: plan})
    found = check_orders([Function("payment", "charge_card", "perform")], read)
    said = joined(of("docs/how-to/deploy.md", "warning "))
    assert found.do is not None
    for part in (found.sentence, *found.details, hint(found.do)):
        assert joined(part) in said


def test_the_page_on_proofs_shows_the_beginning_of_the_plan() -> None:
    place, printed = Place("123456789012", "eu-central-1", local=False), StringIO()
    print_plan("prove-a3d593", place, 1_000, 60, Console(file=printed, width=200))
    command, *lines = of("docs/how-to/prove.md", "$ roundsman prove").splitlines()
    assert command == "$ roundsman prove"
    assert printed.getvalue().splitlines()[:2] == lines[:2]
    assert lines[2:] == ["...", f"Make this proof in {place.words}? [y/N]"]


def test_the_page_on_the_local_aws_shows_what_watching_says(tmp_path: Path) -> None:
    lines = of("docs/how-to/run-locally.md", "functions/agents/mail").splitlines()
    mail, fraud = Path("functions/agents/mail/app.py"), Path("functions/agents/fraud/app.py")
    (tmp_path / mail).parent.mkdir(parents=True)
    (tmp_path / mail).write_text("\n" * 27 + "print(\n")
    with pytest.raises(ConsoleError) as refused:
        check_syntax(tmp_path, [mail])
    order = Path("layers/workflows/workflows/order.py")
    assert [re.sub(r" \([\d.]+ s\)$", "", line) for line in lines] == [
        f"{mail}: updated {name_functions(['MailFunction'])}",
        f"{mail}: {refused.value}",
        f"{order}: updated {name_functions([str(one) for one in range(5)])}",
        f"{name_files([fraud, mail])}: deploying the stack",
    ]
