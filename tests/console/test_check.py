"""`roundsman check` in an application that `roundsman init` made, in a process of its own.

The process is another one, since the modules of this application have the names of the example's.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from roundsman.model.json import parse_json
from roundsman_console.main import app
from tests.support.forked import COMMAND, CommandLine


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    made = CliRunner().invoke(app, ["init", "shop", "--agent", "stock", "--agent", "payment"])
    assert made.exit_code == 0, made.output
    return tmp_path / "shop"


@pytest.fixture
def check(shop: Path, forked: CommandLine) -> Callable[[], tuple[int, str]]:
    """A function that returns the exit code of the command and what it prints."""

    def run() -> tuple[int, str]:
        done = forked.run(shop, "check")
        return done.returncode, " ".join((done.stdout + done.stderr).split())

    return run


def edit(shop: Path, agent: str, old: str, new: str) -> None:
    path = shop / f"functions/agents/{agent}/app.py"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.exhaustive
def test_a_new_application_has_no_problem(shop: Path, check: Callable[[], tuple[int, str]]) -> None:
    assert check() == (0, "No problem.")
    alone = subprocess.run(
        [sys.executable, "-c", COMMAND, "check"],
        cwd=shop,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (alone.returncode, alone.stdout, alone.stderr) == (0, "No problem.\n", "")


@pytest.mark.exhaustive
def test_each_command_finds_the_code_of_its_own_application_only(
    tmp_path: Path, forked: CommandLine
) -> None:
    """What one command has imported is in no other's process."""
    for name in ("shop", "returns"):
        assert forked.run(tmp_path, "init", name, "--agent", name + "_agent").returncode == 0
    change(tmp_path / "shop/layers/workflows/workflows/registry.py", "WORKFLOWS:", "OTHERS:")
    codes = [forked.run(tmp_path / name, "check").returncode for name in ("shop", "returns")]
    assert codes == [1, 0]
    assert "Usage" in forked.run(tmp_path, "--help").stdout
    refused = forked.run(tmp_path / "shop", "check", "--no-such-option")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "--no-such-option" in refused.stderr


def test_each_agent_that_lacks_a_function_is_named(
    shop: Path, check: Callable[[], tuple[int, str]]
) -> None:
    edit(shop, "stock", "@stock.compensates(shop_stock)\n", "")
    edit(shop, "payment", "@payment.performs(shop_payment)\n", "")
    code, output = check()
    assert code == 1
    assert (
        "functions/agents/stock/app.py: agent 'stock': step 'shop_stock' of workflow 'shop' has a "
        "compensation but no function that undoes it; add one with @stock.compensates(...), or "
        "remove the compensation." in output
    )
    assert (
        "functions/agents/payment/app.py: agent 'payment': step 'shop_payment' of workflow 'shop' "
        "has no function; add one with @payment.performs(...)." in output
    )


@pytest.mark.exhaustive
def test_an_error_without_a_type_is_found(shop: Path, check: Callable[[], tuple[int, str]]) -> None:
    helper = shop / "functions/agents/stock/bank.py"
    helper.write_text(
        "import roundsman\n"
        "from roundsman import PermanentError\n"
        "typed = PermanentError('CardDeclined')\n"
        "both = PermanentError('card declined', 'the bank refused')\n"
        "named = PermanentError('card declined', message='the bank refused')\n"
        "dynamic = PermanentError(typed.error_type)\n"
        "made = PermanentError(f'{typed}Again')\n"
        "wrong = PermanentError('the bank refused')\n"
        "worse = roundsman.PermanentError(f'{typed} refused')\n"
        "other = ValueError('the bank refused')\n"
    )
    code, output = check()
    problem = (
        "functions/agents/stock/bank.py:{}: PermanentError has a sentence in place of its type; "
        'write PermanentError("CardDeclined", "the sentence") with a type of yours'
    )
    assert (code, output) == (1, f"{problem.format(8)} {problem.format(9)} 2 problems.")


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.exhaustive
def test_a_step_after_enough_of_many_is_no_problem_and_a_wrong_one_is_one_sentence(
    shop: Path, check: Callable[[], tuple[int, str]]
) -> None:
    workflow = shop / "layers/workflows/workflows/shop.py"
    change(workflow, "from roundsman import ", "from roundsman import AnyOf, ")
    change(workflow, "after=(shop_stock,)", "after=AnyOf(shop_stock)")
    assert check() == (0, "No problem.")
    change(workflow, "AnyOf(shop_stock)", "AnyOf(shop_stock, enough=2)")
    code, output = check()
    assert code == 1
    assert "enough=2, which is above the number of its steps, 1" in output


@pytest.mark.exhaustive
def test_a_workflow_that_the_registry_lacks_is_found(
    shop: Path, check: Callable[[], tuple[int, str]]
) -> None:
    folder = shop / "layers/workflows/workflows"
    text = (folder / "shop.py").read_text()
    (folder / "returns.py").write_text(text.replace('name="shop",', 'name="returns",'))
    code, output = check()
    assert code == 1
    assert (
        "layers/workflows/workflows/returns.py: the workflow returns is not in WORKFLOWS" in output
    )


def test_a_registry_without_workflows_is_one_sentence(
    shop: Path, check: Callable[[], tuple[int, str]]
) -> None:
    change(shop / "layers/workflows/workflows/registry.py", "WORKFLOWS:", "OTHERS:")
    assert check() == (
        1,
        "layers/workflows/workflows/registry.py must assign a dict of workflows to WORKFLOWS, by "
        "name: WORKFLOWS = {purchase.name: purchase}.",
    )


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "file", ["layers/workflows/workflows/registry.py", "functions/agents/stock/app.py"]
)
def test_a_module_that_ends_the_process_is_one_sentence(
    shop: Path, check: Callable[[], tuple[int, str]], file: str
) -> None:
    (shop / file).write_text("import sys\n\nsys.exit(0)\n")
    assert check() == (1, f"{file}: SystemExit: 0.")


@pytest.mark.exhaustive
def test_a_module_that_no_other_imports_and_is_not_python_is_one_sentence(
    shop: Path, check: Callable[[], tuple[int, str]]
) -> None:
    (shop / "layers/workflows/workflows/notes.py").write_text("x = (\n")
    code, output = check()
    assert code == 1
    assert output.startswith("layers/workflows/workflows/notes.py is not Python: '(' was")


def test_a_default_that_the_engine_does_not_take_is_one_sentence(
    shop: Path, check: Callable[[], tuple[int, str]]
) -> None:
    change(shop / "template.yaml", "    Default: 60\n", "    Default: 61\n")
    code, output = check()
    assert code == 1
    assert output.startswith(
        "SupervisorIntervalSeconds is 61: use one of 5, 6, 10, 12, 15, 20, 30,"
    )


@pytest.mark.exhaustive
def test_a_pydantic_model_is_an_input_which_the_functions_must_ship(
    shop: Path, check: Callable[[], tuple[int, str]]
) -> None:
    modules = (shop / "layers/workflows/workflows").glob("*.py")
    [path] = (path for path in modules if "(TypedDict):" in path.read_text())
    change(path, "(TypedDict):", "(BaseModel):")
    change(path, "Text(200)", "Field(max_length=3)")
    change(
        path,
        "from roundsman import",
        "from pydantic import BaseModel, Field\nfrom roundsman import",
    )
    event = '{"orderId": "weekly", "customer": "them", "processing": {"run": "RUN"}}'
    change(
        shop / "template.yaml",
        "\nOutputs:\n",
        "\n  Weekly:\n    Type: AWS::Serverless::Application\n    Properties:\n"
        "      Location: stacks/schedule.yaml\n      Parameters:\n"
        "        Engine: !GetAtt Engine.Outputs.ForSchedules\n        Schedule: rate(1 day)\n"
        f"        Order: '{event.replace('RUN', '<aws.scheduler.scheduled-time>')}'\n\nOutputs:\n",
    )
    code, output = check()
    assert code == 1
    agents = [path.parent for path in (shop / "functions/agents").glob("*/app.py")]
    for folder in (shop / "functions/submission", *agents):
        wanted = f"{folder.relative_to(shop)}/requirements.txt must name pydantic"
        assert wanted in output
        (folder / "requirements.txt").write_text("pydantic>=2,<3\n")
    code, output = check()
    assert "requirements.txt" not in output
    wanted = "would be rejected: customer: must have at most 3 characters"
    assert f"Weekly: Order {wanted}" in output
    assert f"events/smoke/shop.json {wanted}" in output
    assert "2 problems." in output
    change(shop / "template.yaml", '"them"', '"us"')
    smoke = parse_json((shop / "events/smoke/shop.json").read_text())
    assert isinstance(smoke, dict)
    (shop / "events/smoke/shop.json").write_text(json.dumps({**smoke, "customer": "us"}))
    assert check() == (0, "No problem.")


@pytest.mark.exhaustive
@pytest.mark.parametrize("of", ["smoke/{}", "{}"])
def test_an_event_file_that_no_longer_fits_the_input_is_named(
    shop: Path, check: Callable[[], tuple[int, str]], of: str
) -> None:
    [smoke] = (shop / "events/smoke").glob("*.json")
    event = shop / "events" / f"{of.format(smoke.stem)}.json"
    event.write_text(smoke.read_text())
    assert check() == (0, "No problem.")
    event.write_text(smoke.read_text().replace('"customer"', '"custmer"'))
    code, output = check()
    assert code == 1
    where = event.relative_to(shop).as_posix()
    assert f"{where} would be rejected: customer: " in output
    assert "2 problems." in output


def test_a_recurring_order_is_read_with_the_workflows_input_type(
    shop: Path, check: Callable[[], tuple[int, str]]
) -> None:
    event = '{"orderId": "weekly", "custmer": "us", "processing": {"run": "now"}}'
    change(
        shop / "template.yaml",
        "\nOutputs:\n",
        "\n  Weekly:\n    Type: AWS::Serverless::Application\n    Properties:\n"
        "      Location: stacks/schedule.yaml\n      Parameters:\n"
        "        Engine: !GetAtt Engine.Outputs.ForSchedules\n"
        f"        Schedule: cron(0 9 * * 1)\n        Order: '{event}'\n\nOutputs:\n",
    )
    code, output = check()
    assert code == 1
    assert "Weekly: Schedule is 'cron(0 9 * * 1)': a cron expression has six fields" in output
    assert 'Weekly: Order: processing.run must be "<aws.scheduler.scheduled-time>"' in output
    assert "Weekly: Order would be rejected: customer: " in output
    assert "Weekly: Order would be rejected: custmer: " in output
    assert "4 problems." in output


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("\nOutputs:", "\n  Stock: {Type: 'AWS::SNS::Topic'}\n\nOutputs:", "Stock is there twice"),
        ("Description", "\udcff", "template.yaml is not text in UTF-8: save it as such."),
    ],
)
def test_a_template_that_readers_would_misread_is_one_sentence(
    shop: Path, check: Callable[[], tuple[int, str]], old: str, new: str, wanted: str
) -> None:
    template = shop / "template.yaml"
    text = template.read_text().replace(old, new, 1)
    template.write_bytes(text.encode(errors="surrogateescape"))
    code, output = check()
    assert code == 1
    assert wanted in output
    assert "Traceback" not in output


def test_an_edited_file_of_the_release_is_a_warning(
    shop: Path, check: Callable[[], tuple[int, str]]
) -> None:
    with (shop / "stacks/agent.yaml").open("a") as file:
        file.write("# mine\n")
    code, output = check()
    assert code == 0
    assert "No problem." in output
    assert "Warning: stacks/agent.yaml was edited, so `roundsman upgrade` will refuse" in output


def test_a_renamed_folder_of_an_agent_is_found(
    shop: Path, check: Callable[[], tuple[int, str]]
) -> None:
    (shop / "functions/agents/stock").rename(shop / "functions/agents/store")
    code, output = check()
    assert code == 1
    assert (
        "functions/agents/store/app.py defines the agent stock: rename the folder to st" in output
    )
    assert (
        "Stock: Code of the agent stock names functions/agents/stock, which has no app.py; name "
        "the folder whose app.py defines stock" in output
    )


@pytest.mark.parametrize("key", ['"store"', '"shop": shop, "alias"'])
def test_a_key_that_is_not_the_workflows_name_is_found(
    shop: Path, check: Callable[[], tuple[int, str]], key: str
) -> None:
    change(shop / "layers/workflows/workflows/registry.py", "shop.name:", f"{key}:")
    code, output = check()
    assert code == 1
    found = key.split('"')[-2]
    assert (
        f"WORKFLOWS of registry.py has shop under the key '{found}': write shop.name as its key"
        in output
    )
    assert "1 problem." in output


def test_a_function_that_is_called_and_is_not_there_is_found(
    shop: Path, check: Callable[[], tuple[int, str]]
) -> None:
    edit(shop, "stock", "def _create(", "def _make(")
    edit(shop, "payment", "from roundsman.agents.http import RemoteService\n", "")
    edit(
        shop, "payment", "cache(RemoteService.from_env)", "cache(lambda: RemoteService.from_env())"
    )
    change(
        shop / "layers/workflows/workflows/shop.py",
        "\n\nclass ",
        "\n\ndef total(given):\n    return add(given)\n\n\nclass ",
    )
    code, output = check()
    assert code == 1
    assert re.search(
        r"functions/agents/stock/app.py:\d+: there is no _create; define or im", output
    )
    assert re.search(r"functions/agents/payment/app.py:\d+: there is no RemoteService; def", output)
    assert re.search(r"layers/workflows/workflows/shop.py:\d+: there is no add; define", output)
    assert "3 problems." in output


@pytest.mark.parametrize(
    ("value", "objection"),
    [
        (
            "PythonRuntime: python3.9",
            "PythonRuntime is 'python3.9': it must be one of python3.11, ",
        ),
        ("SnapStart: yes please", "SnapStart is 'yes please': it must be one of "),
        ("ServiceUrl: ftp://stock", "ServiceUrl is 'ftp://stock': it must match "),
    ],
)
def test_a_value_that_a_blocks_stack_does_not_take_is_named(
    shop: Path, check: Callable[[], tuple[int, str]], value: str, objection: str
) -> None:
    template = shop / "template.yaml"
    before, agent, after = template.read_text().partition("Agent: stock\n")
    indent = " " * (len(before) - len(before.rstrip(" ")))
    rest = re.sub(rf" *{value.partition(':')[0]}: .*\n", "", after, count=1)
    template.write_text(f"{before}{agent}{indent}{value}\n{rest}")
    code, output = check()
    assert code == 1
    assert f"Stock: {objection}" in output


def set_in_template(shop: Path, agent: str, lines: str) -> None:
    """Add lines to the values of an agent's block."""
    template = shop / "template.yaml"
    before, name, after = template.read_text().partition(f"Agent: {agent}\n")
    indent = " " * (len(before) - len(before.rstrip(" ")))
    added = "".join(f"{indent}{line}\n" for line in lines.splitlines())
    template.write_text(f"{before}{name}{added}{after}")


@pytest.mark.parametrize(
    "lines", ["TimeoutSeconds: 310", "VisibilitySeconds: 40", "VisibilitySeconds: 30"]
)
def test_a_timeout_that_is_not_below_the_visibility_is_found_before_the_creation(
    shop: Path, check: Callable[[], tuple[int, str]], lines: str
) -> None:
    set_in_template(shop, "stock", lines)
    code, output = check()
    assert code == 1
    assert re.search(
        r"StockRequestQueue: its VisibilityTimeout can be \d+ s, and the Timeout of StockFunction "
        r"\d+ s; the first must always be longer",
        output,
    )


def test_a_longer_timeout_with_its_visibility_is_no_problem(
    shop: Path, check: Callable[[], tuple[int, str]]
) -> None:
    aged = "OldestMessageAlarmSeconds: 2400"
    set_in_template(shop, "stock", f"TimeoutSeconds: 310\nVisibilitySeconds: 1860\n{aged}")
    assert check() == (0, "No problem.")


@pytest.mark.parametrize(
    ("engine", "agent", "found"),
    [
        ("SnapStart: 'true'", "PythonRuntime: python3.11", True),
        ("SnapStart: 'false'", "PythonRuntime: python3.11\nSnapStart: 'true'", True),
        ("SnapStart: 'true'", "PythonRuntime: python3.11\nSnapStart: 'false'", False),
        ("SnapStart: 'true'", "PythonRuntime: python3.12", False),
    ],
)
def test_an_agent_whose_runtime_has_no_snapstart_is_found_also_if_the_engine_turns_it_on(
    shop: Path, check: Callable[[], tuple[int, str]], engine: str, agent: str, found: bool
) -> None:
    template = shop / "template.yaml"
    text = template.read_text().replace(
        "        WorkflowsLayer: !Ref WorkflowsLayer\n",
        f"        WorkflowsLayer: !Ref WorkflowsLayer\n        {engine}\n",
    )
    block = text.index("Agent: stock\n")
    template.write_text(
        text[:block] + text[block:].replace("        PythonRuntime: !Ref PythonRuntime\n", "", 1)
    )
    set_in_template(shop, "stock", agent)
    code, output = check()
    assert code == int(found)
    assert ("StockFunction: Lambda has no SnapStart for python3.11" in output) is found
