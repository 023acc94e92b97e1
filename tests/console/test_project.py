"""`roundsman init`, `add` and `upgrade`: the files that they write, and what they refuse."""

import ast
import errno
import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from roundsman.aws.queue_urls import agent_title
from roundsman_console.base import release
from roundsman_console.faces.cli import confirm
from roundsman_console.main import app
from roundsman_dev.check.code import undefined_names
from roundsman_dev.project import upgrade
from roundsman_dev.project.agents import BLOCKS_END, OUTPUTS_END
from roundsman_dev.project.create import create
from roundsman_dev.project.files import part
from roundsman_dev.project.names import ENGINE_FUNCTIONS, ENGINE_RESOURCES, URGENT, WORDS
from roundsman_dev.project.template import read_names
from roundsman_dev.project.upgrade import (
    RECORD,
    apply_upgrade,
    edited_files,
    plan_upgrade,
    record_of,
)
from roundsman_dev.project.workflows import with_workflow
from tests.console.schemas import assert_schema
from tests.support.forked import TESTS, CommandLine
from tests.support.waiting_application import let_it_wait

TEMPLATE = Path("template.yaml")
PROJECT = Path(__file__).parents[2]
STACKS = PROJECT / "stacks"
WHEEL = "roundsman-0.1.0-py3-none-any.whl"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def types(*arguments: str, **more: str) -> Result:
    return CliRunner().invoke(app, [*arguments], **more)  # type: ignore[arg-type]


def texts(folder: Path) -> dict[Path, str]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder): path.read_text(encoding="utf-8") for path in found}


@pytest.fixture
def shop(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = types("init", "shop", "--agent", "stock", "--agent", "payment")
    assert made.exit_code == 0, made.output
    monkeypatch.chdir(folder / "shop")
    return folder / "shop"


# init


def test_an_application_has_its_agents_and_its_workflow(shop: Path) -> None:
    template = (shop / TEMPLATE).read_text()
    assert template.count("Location: stacks/agent.yaml") == 2
    assert "  StockAgent: {Value: !GetAtt Stock.Outputs.Summary}" in template
    workflow = (shop / "layers/workflows/workflows/shop.py").read_text()
    assert "steps=(shop_stock, shop_payment)" in workflow
    assert "shop.name: shop," in (shop / "layers/workflows/workflows/registry.py").read_text()
    for agent in ("stock", "payment"):  # each step, also the last one, can be undone
        code = (shop / f"functions/agents/{agent}/app.py").read_text()
        assert f"@{agent}.compensates(shop_{agent})" in code
    assert workflow.count("compensation=Compensation(") == 2


def test_the_environment_of_an_application_has_what_its_commands_need(shop: Path) -> None:
    """Each part of the package but what others have (the client, the tests in memory, what
    developers' commands need), and what only the console of a team needs."""
    parts = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    wanted = ",".join(
        sorted(set(parts["optional-dependencies"]) - {"client", "dev", "serve", "unit"})
    )
    assert f"roundsman[{wanted}]==" in (shop / "requirements.txt").read_text()


def test_agents_with_commas_between_them_are_alternatives_for_one_step(folder: Path) -> None:
    made = types("init", "shop", "--agent", "stock", "--agent", "payment,payment_backup")
    assert made.exit_code == 0, made.output
    workflow = (folder / "shop/layers/workflows/workflows/shop.py").read_text()
    assert "steps=(shop_stock, shop_payment)" in workflow
    assert 'agents=("payment", "payment_backup"),' in workflow
    assert (folder / "shop" / TEMPLATE).read_text().count("Location: stacks/agent.yaml") == 3
    for agent in ("payment", "payment_backup"):
        code = (folder / f"shop/functions/agents/{agent}/app.py").read_text()
        assert f"@{agent}.performs(shop_payment)" in code
        assert f"@{agent}.compensates(shop_payment)" in code
    assert "refused-by-payment" in (folder / "shop/events/refused.json").read_text()


@pytest.mark.exhaustive
def test_an_application_whose_agents_are_alternatives_is_sound_and_its_tests_pass(
    folder: Path, forked: CommandLine
) -> None:
    assert types("init", "shop", "--agent", "payment,payment_backup").exit_code == 0
    passed = run_tests(folder / "shop", forked, "tests/test_workflows.py", "tests/test_check.py")
    assert passed.returncode == 0, passed.stdout


def test_no_placeholder_is_left(shop: Path) -> None:
    assert not [path for path, text in texts(shop).items() if re.search(r"\{\{\w+\}\}", text)]


def test_the_stacks_are_those_of_the_release(shop: Path) -> None:
    for name in ("engine.yaml", "agent.yaml", "schedule.yaml"):
        assert (shop / "stacks" / name).read_text() == (STACKS / name).read_text()


def test_without_options_there_are_two_agents_and_a_workflow_of_the_name(folder: Path) -> None:
    assert types("init", "my-shop").exit_code == 0
    assert (folder / "my-shop/functions/agents/booking/app.py").exists()
    assert (folder / "my-shop/layers/workflows/workflows/my_shop.py").exists()


def test_the_files_are_listed_for_scripts(folder: Path) -> None:
    document = json.loads(types("init", "shop", "--json").stdout)
    assert_schema("init", document)
    assert document["folder"] == str(folder / "shop")
    assert set(document["files"]) == {str(path) for path in texts(folder / "shop")}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("1shop",), "'1shop' cannot be the name of an application: it must be letters"),
        (
            ("x" * 22,),
            "it has 22 characters, and the limit is 21, so that its stack for production",
        ),
        (("shop", "--agent", "Stock"), "'Stock' cannot be the name of an agent"),
        (("shop", "--agent", "engine"), "An agent cannot be named engine"),
        (("shop", "--agent", "class"), "it is a word of Python"),
        (("shop", "--agent", "a" * 28), "is too long"),
        (("shop", "--agent", "handler"), "An agent cannot be named handler: the agent's code"),
        (("shop", "--agent", "cache"), "An agent cannot be named cache: the agent's code"),
        (("shop", "--agent", "pay_"), "'pay_' cannot be the name of an agent: it must be a-z"),
        (("shop", "--agent", "pay__x"), "'pay__x' cannot be the name of an agent"),
        (("shop", "--agent", "supervisor"), "a function of the engine has this name"),
        (("shop", "--agent", "recurring_order"), "resources of the engine have this name"),
        (("shop", "--agent", "alert_email"), "template.yaml has a parameter AlertEmail"),
        (("shop", "--agent", "x1", "--agent", "x_1"), "both would have the block X1"),
        (
            ("shop", "--agent", "pay", "--agent", "pay_urgent"),
            "PayUrgentRequestQueue is already the queue of pay for urgent requests",
        ),
        (
            ("shop", "--workflow", "order_fulfilment_process", "--agent", "customer_notification"),
            "the step order_fulfilment_process_customer_notification, which has 46 characters; the "
            "limit is 40.",
        ),
        (("shop", "--workflow", "first"), "events/first.json is an order of the first one"),
        (("shop", "--workflow", "registry"), "A workflow cannot be named registry"),
        (("shop", "--workflow", "a-b"), "'a-b' cannot be the name of a workflow"),
    ],
)
def test_a_name_that_cannot_be_is_refused_and_nothing_is_written(
    folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    refused = types("init", *arguments)
    assert refused.exit_code == 2
    assert message in " ".join(refused.stderr.split())
    assert not list(folder.iterdir())


def test_a_folder_that_is_not_empty_is_left_as_it_is(folder: Path) -> None:
    (folder / "shop").mkdir()
    (folder / "shop/mine.txt").write_text("mine")
    refused = types("init", "shop")
    assert refused.exit_code == 1
    assert "exists and is not an empty folder" in refused.stderr
    assert texts(folder) == {Path("shop/mine.txt"): "mine"}


def test_a_folder_that_has_only_an_environment_gets_the_files_beside_it(folder: Path) -> None:
    (folder / "shop/.venv/bin").mkdir(parents=True)
    (folder / "shop/.venv/bin/python").write_text("mine")
    assert types("init", "shop").exit_code == 0
    assert (folder / "shop/.venv/bin/python").read_text() == "mine"
    assert (folder / "shop" / TEMPLATE).exists()


def test_the_wheel_that_was_installed_is_kept_in_the_application(folder: Path) -> None:
    wheel = folder / "roundsman-0.1.0-py3-none-any.whl"
    wheel.write_bytes(b"\x00wheel")
    create(folder / "shop", version="0.1.0", wheel=wheel)
    assert (folder / "shop/vendor" / wheel.name).read_bytes() == b"\x00wheel"
    assert "--find-links vendor\n" in (folder / "shop/requirements.txt").read_text()


def test_an_empty_folder_that_one_is_in_is_filled(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "shop").mkdir()
    monkeypatch.chdir(folder / "shop")
    here = (folder / "shop").stat().st_ino
    assert types("init", ".").exit_code == 0
    assert (folder / "shop").stat().st_ino == here
    assert (folder / "shop/template.yaml").exists()
    assert [path.name for path in folder.iterdir()] == ["shop"]


@pytest.mark.parametrize("exists", [True, False])
def test_a_folder_that_cannot_be_written_is_left_as_it_was(
    folder: Path, monkeypatch: pytest.MonkeyPatch, exists: bool
) -> None:
    if exists:
        (folder / "shop").mkdir()
    renamed, rename = list[Path](), Path.rename

    def full(source: Path, target: Path) -> Path:
        if len(renamed) == (3 if exists else 0):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))
        renamed.append(target)
        return rename(source, target)

    monkeypatch.setattr(Path, "rename", full)
    refused = types("init", "shop")
    assert refused.exit_code == 1
    assert "shop cannot be written: No space left on device." in " ".join(refused.stderr.split())
    assert list(folder.rglob("*")) == ([folder / "shop"] if exists else [])


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("Resources: [", "template.yaml or a file of stacks/ is no template: while parsing"),
        ("Resources: {}", "template.yaml or a file of stacks/ is no template: "),
        ("only text", "template.yaml is no SAM template: it has no Resources"),
        (None, "There is no template.yaml in"),
    ],
    ids=["not YAML", "empty", "text", "missing"],
)
def test_a_template_that_cannot_be_checked_is_one_sentence(
    shop: Path, forked: CommandLine, template: str | None, message: str
) -> None:
    (shop / TEMPLATE).unlink()
    if template is not None:
        (shop / TEMPLATE).write_text(template)
    refused = forked.run(shop, "check")
    assert refused.returncode == 1
    assert message in " ".join(refused.stderr.split())


@dataclass(frozen=True)
class Installed:
    """An installed package, and what pip noted of its origin."""

    origin: str | None

    def read_text(self, name: str) -> str | None:
        return self.origin if name == "direct_url.json" else None


@pytest.mark.parametrize(
    ("url", "wheel", "on_no_index"),
    [
        (None, False, False),
        ("https://example.com/roundsman-0.1.0-py3-none-any.whl", False, False),
        ("file://{folder}/with%20space/roundsman-0.1.0-py3-none-any.whl", True, False),
        ("file://{folder}/gone/roundsman-0.1.0-py3-none-any.whl", False, True),
        ("file://{folder}", False, True),
    ],
    ids=["an index", "an address", "a wheel", "a wheel that is gone", "a folder"],
)
def test_the_origin_of_the_installed_package_decides_what_an_application_needs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, url: str | None, wheel: bool, on_no_index: bool
) -> None:
    (folder / "with space").mkdir()
    (folder / "with space" / WHEEL).write_bytes(b"wheel")
    noted = None if url is None else json.dumps({"url": url.format(folder=folder)})
    monkeypatch.setattr(release, "distribution", lambda _: Installed(noted))
    assert (release.installed_wheel() is not None) is wheel
    made = types("init", "shop")
    assert made.exit_code == 0
    assert (folder / "shop/vendor" / WHEEL).exists() is wheel
    assert (release.NO_WHEEL in made.stdout) is on_no_index


@pytest.mark.parametrize(
    "name",
    [
        "service",
        *(
            pytest.param(name, marks=pytest.mark.exhaustive)
            for name in ("create", "delete", "workflows", "json")
        ),
    ],
)
def test_an_agent_may_have_a_name_that_its_code_does_not_use(
    folder: Path, forked: CommandLine, name: str
) -> None:
    assert types("init", "shop", "--agent", name).exit_code == 0
    assert checks(folder / "shop", forked) == (0, {"problems": []})


def test_the_names_that_are_refused_are_those_that_the_engine_takes() -> None:
    """An agent's resources begin with its name: none is then one of the engine or another agent."""
    engine, agent = (
        list(read_names((STACKS / f"{name}.yaml").read_text()).agents)
        for name in ("engine", "agent")
    )
    taken = {name.removesuffix(end) for name in engine for end in agent if name.endswith(end)} - {
        ""
    }
    refused = ENGINE_FUNCTIONS | ENGINE_RESOURCES
    assert {agent_title(name) for name in refused} == taken
    between = {name.removesuffix(end) for name in agent for end in agent if name.endswith(end)}
    assert between - {""} == {agent_title(URGENT)}
    code = ast.parse(part("agent_app.py").replace("{{agent}}", "agent_of_this_code"))
    own = {node.id for node in ast.walk(code) if isinstance(node, ast.Name)}
    imported = {
        each.asname or each.name
        for node in ast.walk(code)
        if isinstance(node, ast.ImportFrom)
        for each in node.names
    }
    names = {name for name in own | imported if re.fullmatch("[a-z][a-z0-9]*", name)}
    assert names - {"request"} == WORDS


SORTED = (
    "--isolated --select=F,E,I,UP,B --line-length=100 --target-version=py311 --config "
    "lint.isort.known-first-party=['roundsman','roundsman_console','roundsman_testing','tests','functions','workflows']"
)


@pytest.mark.exhaustive
def test_the_code_of_an_application_is_sorted_and_formatted(shop: Path) -> None:
    agents = [f"agent_with_a_long_name_{n}" for n in range(6)]
    for agent in agents:
        assert types("add", "agent", agent).exit_code == 0
    for workflow in ("returns", "alpha"):
        options = [word for agent in agents for word in ("--agent", agent)]
        assert (
            types("add", "workflow", workflow, "--yes", "--agent", "stock", *options).exit_code == 0
        )
    ruff = [sys.executable, "-m", "ruff"]
    for command in (["check", *SORTED.split()], ["format", "--isolated", "--check", "--diff"]):
        more = ["--line-length=100"] if command[0] == "format" else []
        done = subprocess.run(
            [*ruff, *command, *more, "."], cwd=shop, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


# add


def test_an_agent_is_added_once_and_comments_are_kept(shop: Path) -> None:
    before = (shop / TEMPLATE).read_text().replace("Outputs:\n", "# my comment\nOutputs:\n", 1)
    (shop / TEMPLATE).write_text(before)
    assert types("add", "agent", "gift_wrap").exit_code == 0
    after = (shop / TEMPLATE).read_text()
    assert "# my comment" in after
    assert "        Name: GiftWrap\n" in after
    added = [line for line in after.splitlines() if line not in before.splitlines()]
    assert len(added) <= 12
    result = types("add", "agent", "gift_wrap")
    assert result.exit_code == 0
    assert "is there already" in result.stdout
    assert (shop / TEMPLATE).read_text() == after


def test_a_workflow_is_added_once_with_a_step_for_each_agent(shop: Path) -> None:
    assert types("add", "workflow", "returns", "--agent", "payment", "--yes").exit_code == 0
    written = texts(shop)
    assert 'agent="payment"' in written[Path("layers/workflows/workflows/returns.py")]
    assert "@payment.performs(returns_payment)" in written[Path("functions/agents/payment/app.py")]
    assert "returns_" not in written[Path("functions/agents/stock/app.py")]
    assert "is there already" in types("add", "workflow", "returns").stdout
    assert texts(shop) == written


@pytest.mark.parametrize("marker", [BLOCKS_END, OUTPUTS_END])
def test_a_template_without_the_line_is_left_as_it_is(shop: Path, marker: str) -> None:
    text = (shop / TEMPLATE).read_text().replace(marker, "")
    (shop / TEMPLATE).write_text(text)
    before = texts(shop)
    refused = types("add", "agent", "mail")
    assert refused.exit_code == 1
    assert marker.strip() in refused.stderr
    assert texts(shop) == before


def test_a_template_without_an_engine_is_left_as_it_is(shop: Path) -> None:
    (shop / TEMPLATE).write_text((shop / TEMPLATE).read_text().replace("  Engine:\n", "  Core:\n"))
    before = texts(shop)
    refused = types("add", "agent", "mail")
    assert refused.exit_code == 1
    assert "template.yaml has no block Engine" in refused.stderr
    assert texts(shop) == before


def test_a_template_that_is_not_text_is_left_as_it_is(shop: Path) -> None:
    (shop / TEMPLATE).write_bytes(b"\xff\xfe")
    refused = types("add", "agent", "mail")
    assert refused.exit_code == 1
    assert refused.stderr.strip() == "template.yaml is not text in UTF-8: save it as such."
    assert (shop / TEMPLATE).read_bytes() == b"\xff\xfe"
    assert not (shop / "functions/agents/mail").exists()


def test_a_parameter_that_the_template_does_not_have_is_reported(shop: Path) -> None:
    text = (shop / TEMPLATE).read_text()
    (shop / TEMPLATE).write_text(text.replace("  ServiceUrl:\n", "  StockUrl:\n", 1))
    added = types("add", "agent", "mail")
    assert added.exit_code == 0
    assert "template.yaml has no parameter ServiceUrl: name another in the block of mail." in (
        added.stdout
    )


def test_a_registry_without_its_dict_is_left_as_it_is(shop: Path) -> None:
    (shop / "layers/workflows/workflows/registry.py").write_text("WORKFLOWS = make()\n")
    before = texts(shop)
    refused = types("add", "workflow", "returns")
    assert refused.exit_code == 1
    assert "registry.py has no dict WORKFLOWS" in refused.stderr
    assert texts(shop) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("agent", "Mail"), "'Mail' cannot be the name of an agent"),
        (("agent", "core_layer"), "An agent cannot be named core_layer"),
        (("workflow", "import"), "it is a word of Python"),
    ],
)
def test_a_name_that_cannot_be_is_not_added(
    shop: Path, arguments: tuple[str, ...], message: str
) -> None:
    before = texts(shop)
    refused = types("add", *arguments)
    assert refused.exit_code == 2
    assert message in " ".join(refused.stderr.split())
    assert texts(shop) == before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("WORKFLOWS = {}\nALIASES = {\n    'a': 'b',\n}\n", "}\nALIASES = {\n    'a': 'b',\n}\n"),
        ("WORKFLOWS: dict[str, int] = {'ü': 1}  # mine\n", "}  # mine\n"),
        ("WORKFLOWS = {\n    'a': 1,  # one\n    # no more\n}\n", "}\n"),
        ("WORKFLOWS = {\n    'a': 1\n}\nX = {}\n", "}\nX = {}\n"),
    ],
    ids=["another dict", "one line", "a comment", "no comma"],
)
def test_a_workflow_is_the_last_of_the_dict_of_workflows(before: str, after: str) -> None:
    names: dict[str, object] = {}
    text = with_workflow(before, "returns")
    assert text.endswith(f"    returns.name: returns,\n{after}")
    code = text.replace("from workflows.returns import returns\n", "")
    exec(code, names | {"returns": Workflow}, names)  # noqa: S102 - the code that was written
    assert list(names["WORKFLOWS"])[-1] == Workflow.name  # type: ignore[call-overload]
    assert with_workflow(text, "returns") == text


class Workflow:
    """A workflow as the registry sees one."""

    name = "returns"


def test_an_agent_whose_block_is_in_flow_style_is_not_added_again(shop: Path) -> None:
    text = (shop / TEMPLATE).read_text()
    block = (
        "  Mail: {Type: 'AWS::Serverless::Application', Properties: {Parameters: {Agent: mail}}}\n"
    )
    (shop / TEMPLATE).write_text(text.replace(BLOCKS_END, block + BLOCKS_END))
    assert types("add", "agent", "mail").exit_code == 0
    assert (shop / TEMPLATE).read_text().count("  Mail:") == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("mail", "template.yaml has a block Mail of something else"),
        ("alert_email", "template.yaml has a parameter AlertEmail"),
        ("stock_urgent", "StockUrgentRequestQueue is already the queue of stock"),
        ("s_t_o_c_k", None),
    ],
)
def test_a_name_that_the_application_gives_to_something_else_is_not_added(
    shop: Path, name: str, message: str | None
) -> None:
    text = (shop / TEMPLATE).read_text()
    topic = "  Mail:\n    Type: AWS::SNS::Topic\n\n"
    (shop / TEMPLATE).write_text(text.replace(BLOCKS_END, topic + BLOCKS_END))
    before = texts(shop)
    added = types("add", "agent", name)
    if message is None:
        assert added.exit_code == 0
    else:
        assert added.exit_code == 2
        assert message in " ".join(added.stderr.split())
        assert texts(shop) == before


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("  Stock: {}\n", "Resources has Stock twice. Remove one of them."),
        ("  Stock: [\n", "template.yaml is not valid YAML: while parsing"),
    ],
)
def test_a_template_that_cannot_be_read_gets_no_agent(shop: Path, more: str, message: str) -> None:
    text = (shop / TEMPLATE).read_text().replace(BLOCKS_END, more + BLOCKS_END)
    (shop / TEMPLATE).write_text(text)
    before = texts(shop)
    refused = types("add", "agent", "mail")
    assert refused.exit_code == 1
    assert message in " ".join(refused.stderr.split())
    assert texts(shop) == before


@pytest.mark.exhaustive
def test_the_tests_of_an_added_workflow_send_its_own_event(shop: Path, forked: CommandLine) -> None:
    added = types("add", "workflow", "returns", "--agent", "stock", "--yes")
    assert "make events/returns.json such an order" in added.stdout
    event = json.loads((shop / "events/returns.json").read_text())
    assert event["processing"] == {"workflow": "returns"}
    smoke = json.loads((shop / "events/smoke/returns.json").read_text())
    assert smoke["processing"] == {"workflow": "returns"}
    module = shop / "layers/workflows/workflows/returns.py"
    module.write_text(
        module.read_text()
        .replace("customer: Annotated[str, Text(200)]", "guest: Annotated[str, Text(9)]")
        .replace("on_failure=Undo()", "on_failure=Archive()")
        .replace("Step, Text, Undo, Workflow", "Archive, Step, Text, Workflow")
    )
    failed = run_tests(shop, forked)
    assert failed.returncode == 1
    assert (
        "events/returns.json is not an order of returns: returns-1 was never taken; rejected: "
        in (" ".join(failed.stdout.split()))
    )
    del event["customer"]
    (shop / "events/returns.json").write_text(json.dumps(event | {"guest": "A. Reader"}))
    passed = run_tests(shop, forked)
    assert passed.returncode == 0, passed.stdout


@pytest.mark.verify
def test_the_tests_of_an_application_pass_where_its_steps_wait(
    shop: Path, forked: CommandLine
) -> None:
    workflow = shop / "layers/workflows/workflows/shop.py"
    before, last = workflow.read_text().split("shop_payment = Step(")
    before = before.replace("import Compensation, Step", "import Archive, Compensation, Step")
    before = before.replace("Undo, Workflow", "Undo, Wait, Workflow")
    waits = "on_failure=Wait(timedelta(minutes=20), 2, Archive()),"
    workflow.write_text(f"{before}shop_payment = Step(\n    {waits}{last}")
    agent = shop / "functions/agents/stock/app.py"
    code = agent.read_text().replace(
        "from functools", "from datetime import timedelta\nfrom functools"
    )
    code = code.replace("import Agent, Json", "import Agent, Callback, Json")
    asks = "    _create(request)\n    return Callback(within=timedelta(minutes=30))"
    agent.write_text(code.replace("    return _create(request)", asks))
    passed = run_tests(shop, forked, "tests/test_workflows.py", "tests/test_stack.py")
    assert passed.returncode == 0, passed.stdout


@pytest.mark.exhaustive
def test_the_tests_of_an_application_pass_with_every_kind_of_wait(
    shop: Path, forked: CommandLine
) -> None:
    """A poll, a callback, a signal, long sleeps, the last of which ends it, and added steps."""
    let_it_wait(shop)
    passed = run_tests(
        shop, forked, "tests/test_workflows.py", "tests/test_stack.py", "tests/test_check.py"
    )
    assert passed.returncode == 0, passed.stdout
    assert "5 passed" in passed.stdout


@pytest.mark.verify
@pytest.mark.parametrize("may_fail", ["tolerate=2", "enough=1"])
def test_the_tests_of_an_application_pass_where_its_last_step_may_fail(
    shop: Path, forked: CommandLine, may_fail: str
) -> None:
    workflow = shop / "layers/workflows/workflows/shop.py"
    before, last = workflow.read_text().split("shop_payment = Step(")
    items = f'for_each="[`1`, `2`]", {may_fail},'
    workflow.write_text(f"{before}shop_payment = Step(\n    {items}{last}")
    passed = run_tests(shop, forked, "tests/test_workflows.py", "tests/test_stack.py")
    assert passed.returncode == 0, passed.stdout


def run_tests(shop: Path, forked: CommandLine, *files: str) -> "subprocess.CompletedProcess[str]":
    """Run tests of the application, those in memory by default, in a process of their own."""
    chosen = files or ("tests/test_workflows.py",)
    return forked.run(shop, "-q", "-p", "no:cacheprovider", *chosen, command=TESTS)


def test_files_are_edited_after_a_question_only(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = texts(shop)
    edited = (
        "This edits functions/agents/payment/app.py, functions/agents/stock/app.py, "
        "layers/workflows/workflows/registry.py."
    )
    unattended = types("add", "workflow", "returns")
    assert unattended.exit_code == 2
    assert " ".join(unattended.stderr.split()) == (
        f"{edited} Edit them? There is no terminal to confirm at: add --yes. Nothing was written."
    )
    assert texts(shop) == before
    monkeypatch.setattr(confirm, "at_a_terminal", lambda: True)
    refused = types("add", "workflow", "returns", input="n\n")
    assert refused.exit_code == 1
    assert f"{edited} Edit them?" in refused.stderr
    assert "Nothing was written." in refused.stderr
    assert texts(shop) == before
    assert types("add", "workflow", "returns", input="y\n").exit_code == 0
    assert (shop / "layers/workflows/workflows/returns.py").exists()
    again = types("add", "workflow", "returns", input="")
    assert (again.exit_code, again.stdout) == (0, "The workflow returns is there already.\n")


HELPER = "def _create(request: StepRequest) -> Json:"
AGENTS_OF_OTHER_FORMS = {
    "no create": (HELPER, "def _make(request: StepRequest) -> Json:"),
    "no delete": ("def _delete(", "def _remove("),
    "more arguments": (HELPER, "def _create(request: StepRequest, what: str) -> Json:"),
    "a named argument": (HELPER, "def _create(request: StepRequest, *, what: str) -> Json:"),
    "no argument": (HELPER, "def _create(*, request: StepRequest) -> Json:"),
    "asynchronous": (HELPER, "async def _create(request: StepRequest) -> Json:"),
    "decorated": (HELPER, f"@cache\n{HELPER}"),
    "in a class": (HELPER, "class Calls:\n  def _create(request: StepRequest) -> Json:"),
    "no arguments at all": (HELPER, "def _create() -> Json:"),
    "defaults": (HELPER, "def _create(request: StepRequest, what: str = '') -> Json:"),
    "any arguments": (HELPER, "def _create(*request: StepRequest) -> Json:"),
}
CALLS_HELPERS = {"defaults", "any arguments"}


@pytest.mark.parametrize("form", AGENTS_OF_OTHER_FORMS)
def test_no_call_is_written_of_a_function_that_an_agent_lacks(shop: Path, form: str) -> None:
    old, new = AGENTS_OF_OTHER_FORMS[form]
    path = shop / "functions/agents/stock/app.py"
    code = path.read_text()
    assert old in code
    uses = code.replace(old, new).replace("return _create(request)\n", "return None\n")
    uses = uses.replace("    _delete(request)\n", "    return None\n")
    path.write_text(uses)
    added = types("add", "workflow", "returns", "--agent", "stock", "--yes")
    assert added.exit_code == 0, added.output
    written = path.read_text()
    assert ("return _create(request)\n" in written) is (form in CALLS_HELPERS)
    assert ("_service_of_returns_stock().call(" in written) is (form not in CALLS_HELPERS)
    assert {name for name, _ in undefined_names(written)} <= {"request"}  # in `_create` itself


@pytest.mark.exhaustive
@pytest.mark.parametrize("form", ["no create", "more arguments"])
def test_a_workflow_that_is_added_to_an_agent_of_its_own_form_runs(
    shop: Path, forked: CommandLine, form: str
) -> None:
    old, new = AGENTS_OF_OTHER_FORMS[form]
    path = shop / "functions/agents/stock/app.py"
    call = "return _make(request)" if form == "no create" else "return _create(request, 'it')"
    code = path.read_text().replace(old, new).replace("return _create(request)", call)
    for line in ("from functools import cache", "from roundsman.agents.http import RemoteService"):
        code = code.replace(line + "\n", "")
    code = code.replace("from roundsman import Agent, Json, StepRequest", "import roundsman")
    for name in ("Agent(", "Json", "StepRequest"):
        code = code.replace(name, f"roundsman.{name}")
    own = "functools.cache(roundsman.agents.http.RemoteService.from_env)"
    code = code.replace("cache(RemoteService.from_env)", own)
    code = code.replace("import roundsman\n", "import functools\n\nimport roundsman.agents.http\n")
    path.write_text(code)
    assert types("add", "workflow", "returns", "--agent", "stock", "--yes").exit_code == 0
    assert checks(shop, forked) == (0, {"problems": []})
    passed = run_tests(shop, forked)
    assert passed.returncode == 0, passed.stdout


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (HELPER, "def _make(request)", "functions/agents/stock/app.py, line 14: expected ':'."),
        (
            "from functools import cache",
            "from workflows.shop import shop as cache",
            "has another cache than that of functools, which the functions of returns_stock need.",
        ),
        (
            "from roundsman.agents.http import RemoteService",
            "class RemoteService: from_env = None",
            "has another RemoteService than that of roundsman.agents.http",
        ),
        (
            "import cache",
            "import cache\nimport json as returns_stock",
            "has another returns_stock than that of workflows.returns",
        ),
        (HELPER, "def undo_returns_stock(request):", "has undo_returns_stock already. Rename it"),
        (HELPER, "perform_returns_stock = 1\n" + HELPER, "has perform_returns_stock already."),
    ],
)
def test_code_in_which_the_new_functions_would_not_run_is_left_as_it_is(
    shop: Path, old: str, new: str, message: str
) -> None:
    path = shop / "functions/agents/stock/app.py"
    code = path.read_text()
    assert old in code
    path.write_text(code.replace(old, new).replace("def _delete(", "def _remove("))
    before = texts(shop)
    refused = types("add", "workflow", "returns", "--yes")
    assert refused.exit_code == 1
    assert message in " ".join(refused.stderr.split())
    assert texts(shop) == before


def test_an_import_below_the_handler_is_not_taken_for_one_of_the_beginning(shop: Path) -> None:
    path = shop / "functions/agents/stock/app.py"
    path.write_text(path.read_text() + "import json\n")
    assert types("add", "workflow", "returns", "--agent", "stock", "--yes").exit_code == 0
    written = path.read_text()
    imported, bound = (
        written.index(text)
        for text in (
            "from workflows.returns import returns_stock",
            "@stock.performs(returns_stock)",
        )
    )
    assert imported < bound


def test_a_workflow_of_an_agent_that_is_not_there_is_refused(shop: Path) -> None:
    before = texts(shop)
    refused = types("add", "workflow", "returns", "--agent", "mail")
    assert refused.exit_code == 2
    assert "There is no agent mail; the agents are payment, stock" in refused.stderr
    assert texts(shop) == before


def test_an_agents_code_without_its_last_line_is_left_as_it_is(shop: Path) -> None:
    path = shop / "functions/agents/stock/app.py"
    path.write_text(path.read_text().replace("handler = stock.lambda_handler", "h = 1"))
    before = texts(shop)
    refused = types("add", "workflow", "returns")
    assert refused.exit_code == 1
    assert "handler = stock.lambda_handler" in refused.stderr
    assert texts(shop) == before


def test_outside_of_an_application_nothing_is_added(folder: Path) -> None:
    refused = types("add", "agent", "mail")
    assert refused.exit_code == 1
    assert "There is no template.yaml" in refused.stderr


# upgrade


def as_of_before(shop: Path) -> None:
    """Make the vendored files those of an imaginary release before this one."""
    old = {Path("stacks") / name: f"# {name}\n" for name in ("agent.yaml", "engine.yaml")}
    for path, text in old.items():
        (shop / path).write_text(text)
    (shop / RECORD).write_text(record_of("0.1.0", old))


def test_an_application_of_this_release_needs_no_upgrade(shop: Path) -> None:
    before = texts(shop)
    assert "already" in types("upgrade").stdout
    assert texts(shop) == before


def test_a_file_that_a_later_release_added_is_written(shop: Path) -> None:
    as_of_before(shop)
    (shop / "stacks/schedule.yaml").unlink()
    assert edited_files(shop) == []
    assert "+    Type: AWS::Scheduler::Schedule" in plan_upgrade(shop, "0.1.0").difference
    assert types("upgrade", "--yes").exit_code == 0
    assert (shop / "stacks/schedule.yaml").read_text() == (STACKS / "schedule.yaml").read_text()
    (shop / "stacks/schedule.yaml").unlink()
    assert "stacks/schedule.yaml cannot be read" in types("upgrade").stderr


def test_a_wheel_that_the_application_keeps_is_replaced_with_its_version(
    shop: Path, folder: Path
) -> None:
    as_of_before(shop)
    (shop / "vendor").mkdir()
    (shop / "vendor/roundsman-0.0.9-py3-none-any.whl").write_bytes(b"old")
    (shop / "vendor/other-1-py3-none-any.whl").write_bytes(b"other")
    wheel = folder / WHEEL
    wheel.write_bytes(b"\x00new")
    planned = plan_upgrade(shop, "0.1.0", wheel)
    assert f"writes vendor/{WHEEL}" in planned.difference
    assert "removes vendor/roundsman-0.0.9-py3-none-any.whl" in planned.difference
    apply_upgrade(shop, planned)
    kept = {path.name: path.read_bytes() for path in (shop / "vendor").iterdir()}
    assert kept == {WHEEL: b"\x00new", "other-1-py3-none-any.whl": b"other"}
    assert (shop / "requirements.txt").read_text().count("--find-links vendor\n") == 1
    assert not plan_upgrade(shop, "0.1.0", wheel).changes


def test_an_upgrade_sets_the_version_that_is_required(shop: Path) -> None:
    as_of_before(shop)
    path = shop / "requirements.txt"
    path.write_text(path.read_text() + "boto3==1.43.0  # mine\n")
    before = path.read_text()
    path.write_text(re.sub("(roundsman.*)==.*", r"\1==0.0.1", before))
    release = re.findall("roundsman.*==(.*)", before)
    assert types("upgrade", "--yes").exit_code == 0
    assert path.read_text() == before
    assert release


def test_requirements_that_name_no_release_stop_the_upgrade(shop: Path) -> None:
    as_of_before(shop)
    (shop / "requirements.txt").write_text("roundsman\n")
    before = texts(shop)
    refused = types("upgrade", "--yes")
    assert refused.exit_code == 1
    assert (
        "requirements.txt has no line such as roundsman[cli,local,testing,ui]==" in refused.stderr
    )
    assert texts(shop) == before


def test_an_upgrade_that_cannot_be_written_changes_nothing(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_of_before(shop)
    before = texts(shop)
    replaced, replace = list[Path](), os.replace

    def full(source: Path, target: Path) -> None:
        if len(replaced) == 1 and target not in replaced:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(target))
        replaced.append(target)
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    refused = types("upgrade", "--yes")
    assert refused.exit_code == 1
    assert "cannot be written: No space left on device" in " ".join(refused.stderr.split())
    assert replaced
    assert texts(shop) == before


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (None, "stacks/release.json cannot be read: No such file or directory. Run this in a"),
        ("{", "stacks/release.json is not JSON"),
        ("[]", "stacks/release.json does not name a release and its files"),
        ('{"version": 1, "files": {}}', "does not name a release and its files"),
    ],
    ids=["missing", "not JSON", "a list", "a number"],
)
def test_a_record_of_the_release_that_cannot_be_read_is_one_sentence(
    shop: Path, record: str | None, message: str
) -> None:
    as_of_before(shop)
    (shop / RECORD).unlink()
    if record is not None:
        (shop / RECORD).write_text(record)
    before = texts(shop)
    refused = types("upgrade", "--yes")
    assert refused.exit_code == 1
    assert message in " ".join(refused.stderr.split())
    assert texts(shop) == before


def test_each_release_says_from_which_one_it_can_be_reached() -> None:
    text = (PROJECT / "console/roundsman_dev/project/releases.json").read_text()
    releases = json.loads(text)
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    versions = [each["version"] for each in releases]
    assert versions[-1] == settings["project"]["version"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions)
    assert all(each["direct_from"] in versions for each in releases)


def test_no_command_needs_git_or_any_other_program(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert types("init", "shop").exit_code == 0
    monkeypatch.chdir(folder / "shop")
    as_of_before(folder / "shop")
    for arguments in (("add", "agent", "mail"), ("add", "workflow", "returns", "--yes")):
        assert types(*arguments).exit_code == 0
    assert types("upgrade", "--yes").exit_code == 0


@pytest.mark.parametrize("killed", [False, True])
def test_an_upgrade_that_is_interrupted_is_undone_or_can_be_finished(
    shop: Path, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    as_of_before(shop)
    before = texts(shop)
    replaced, replace = list[Path](), os.replace

    def interrupted(source: Path, target: Path) -> None:
        if len(replaced) == 1 and (killed or target not in replaced):
            raise KeyboardInterrupt
        replaced.append(target)
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", interrupted)
        if killed:  # then nothing is put back
            patch.setattr(Path, "unlink", lambda *_, **__: None)
        with pytest.raises(KeyboardInterrupt):
            apply_upgrade(shop, plan_upgrade(shop, "0.1.0"))
    assert (texts(shop) == before) is not killed
    assert types("upgrade", "--yes").exit_code == 0
    assert (shop / "stacks/engine.yaml").read_text() == (STACKS / "engine.yaml").read_text()
    assert "already" in types("upgrade").stdout


def test_a_record_without_the_hash_of_a_file_does_not_let_it_be_replaced(shop: Path) -> None:
    as_of_before(shop)
    (shop / RECORD).write_text(json.dumps({"version": "0.1.0", "files": {}}))
    before = texts(shop)
    assert "was edited" in types("upgrade", "--yes").stderr
    assert texts(shop) == before


def test_line_ends_and_links_stay(shop: Path, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere.yaml"
    real.write_bytes((shop / TEMPLATE).read_bytes().replace(b"\n", b"\r\n"))
    (shop / TEMPLATE).unlink()
    (shop / TEMPLATE).symlink_to(real)
    assert types("add", "agent", "mail").exit_code == 0
    assert (shop / TEMPLATE).is_symlink()
    written = real.read_bytes()
    assert b"  Mail:\r\n" in written
    assert written.count(b"\n") == written.count(b"\r\n")


@pytest.mark.parametrize("name", ["../evil", "a/b", "..", "/tmp/evil"])
def test_a_path_is_not_the_name_of_an_application(folder: Path, name: str) -> None:
    refused = types("init", name)
    assert refused.exit_code == 2
    assert f"'{name}' is a path" in " ".join(refused.stderr.split())
    assert not list(folder.iterdir())


def test_a_stack_that_has_another_name_than_its_application_is_named(folder: Path) -> None:
    assert "Its stack is named my-shop." in types("init", "my_shop").stdout


def test_an_upgrade_shows_the_difference_and_writes_it_if_asked(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_of_before(shop)
    before = texts(shop)
    unattended = types("upgrade")
    assert unattended.exit_code == 2
    assert "There is no terminal to confirm at: add --yes." in unattended.stderr
    monkeypatch.setattr(confirm, "at_a_terminal", lambda: True)
    refused = types("upgrade", input="n\n")
    assert refused.exit_code == 1
    assert "The release stays 0.1.0" in refused.stdout
    assert texts(shop) == before
    record = json.loads((shop / RECORD).read_text()) | {"version": "0.0.9"}
    (shop / RECORD).write_text(json.dumps(record))
    monkeypatch.setattr(upgrade, "_oldest", lambda *_: "0.1.0")
    before = texts(shop)
    refused = types("upgrade", input="n\n")
    assert refused.exit_code == 1
    assert "releases from 0.1.0 on may be skipped" in refused.stdout
    assert "-# engine.yaml" in refused.stdout
    assert "+AWSTemplateFormatVersion: '2010-09-09'" in refused.stdout
    assert texts(shop) == before
    assert types("upgrade", "--yes").exit_code == 0
    assert (shop / "stacks/engine.yaml").read_text() == (STACKS / "engine.yaml").read_text()
    assert "already" in types("upgrade").stdout


def test_a_vendored_file_that_was_edited_stops_the_upgrade(shop: Path) -> None:
    as_of_before(shop)
    (shop / "stacks/agent.yaml").write_text("# mine\n")
    before = texts(shop)
    refused = types("upgrade", "--yes")
    assert refused.exit_code == 1
    assert "stacks/agent.yaml was edited" in refused.stderr
    assert texts(shop) == before


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("0.0.9", "can be reached from 0.1.0 or later, and this application has 0.0.9"),
        ("9.0.0", "release 9.0.0, which is newer than 0.1.0, the one that is installed. Install"),
    ],
)
def test_an_upgrade_across_too_many_releases_is_refused(
    shop: Path, version: str, message: str
) -> None:
    as_of_before(shop)
    record = json.loads((shop / RECORD).read_text()) | {"version": version}
    (shop / RECORD).write_text(json.dumps(record))
    refused = types("upgrade", "--yes")
    assert refused.exit_code == 1
    assert message in " ".join(refused.stderr.split())


# check


def checks(folder: Path, forked: CommandLine) -> tuple[int, dict[str, list[str]]]:
    """The exit code and the document of `roundsman check`.

    An application's packages have the same names as the example's, which tests have loaded.
    """
    ran = forked.run(folder, "check", "--json")
    document = json.loads(ran.stdout)
    assert_schema("check", document)
    return ran.returncode, document


@pytest.mark.exhaustive
def test_a_new_application_has_no_problem_and_a_timeout_that_is_too_short_is_one(
    shop: Path, forked: CommandLine
) -> None:
    assert checks(shop, forked) == (0, {"problems": []})
    template = TEMPLATE.read_text(encoding="utf-8")
    short = template.replace("Agent: stock", "Agent: stock\n        TimeoutSeconds: 5", 1)
    TEMPLATE.write_text(short, encoding="utf-8")
    code, document = checks(shop, forked)
    assert code == 1
    assert any("stock" in problem.lower() for problem in document["problems"])
