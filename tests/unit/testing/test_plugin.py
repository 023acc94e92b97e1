"""The pytest plugin, in projects that have nothing but a template and tests."""

import inspect
import re
import shutil
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from roundsman_testing import World
from roundsman_testing.plugin import WorldSettings

PROJECT = Path(__file__).parents[3]
PAGE = (PROJECT / "docs" / "how-to" / "test.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"<!-- test: (\S+) -->\n```python\n(.*?)```", re.DOTALL)

ONE_TEST = "def test_it(roundsman_stack):\n    roundsman_stack.run()\n"


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A copy of this project's template, functions, layers and events, and no tests."""
    for part in ("events", "functions", "layers", "stacks"):
        ignored = shutil.ignore_patterns("__pycache__", "requirements.txt")
        shutil.copytree(PROJECT / part, pytester.path / part, ignore=ignored)
    shutil.copy(PROJECT / "template.yaml", pytester.path)
    return pytester


def run(project: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return project.runpytest_subprocess("-q", "-p", "no:cacheprovider", *arguments)


def test_the_package_registers_the_plugin() -> None:
    [found] = entry_points(group="pytest11", name="roundsman")  # make install puts it there
    assert found.value == "roundsman_testing.plugin"


@pytest.mark.exhaustive
def test_the_code_on_the_page_runs_as_it_stands(project: pytest.Pytester) -> None:
    blocks = BLOCK.findall(PAGE)
    assert len(blocks) == PAGE.count("```python")
    for name, text in blocks:
        file = project.path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
    tests = sum(len(re.findall(r"^def test_", text, re.MULTILINE)) for _, text in blocks)
    run(project, "tests").assert_outcomes(passed=tests)


@pytest.mark.exhaustive
def test_a_world_in_memory_is_made_of_a_workflow_and_agents(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from datetime import timedelta
        from roundsman import Agent, Step, Workflow
        from roundsman_testing import TaskState

        greet = Step(name="greet", agent="greeter", complete_within=timedelta(seconds=5))
        hello = Workflow(name="hello", steps=(greet,), complete_within=timedelta(minutes=1))
        greeter = Agent("greeter")

        @greeter.performs(greet)
        def say(request):
            return {"text": f"hello {request.input['name']}"}

        def test_it(roundsman_world):
            world = roundsman_world(hello, greeter, seed=3, instances=2)
            order_id = world.submit({"name": "you"})
            world.run()
            assert world.task(order_id).state is TaskState.COMPLETED
            assert world.task(order_id).step("greet").result == {"text": "hello you"}
        """
    )
    run(pytester).assert_outcomes(passed=1)


def test_a_missing_template_is_reported_with_where_it_was_looked_for(
    pytester: pytest.Pytester,
) -> None:
    pytester.makeini("[pytest]\nroundsman_template = deploy/stack.yaml\n")
    pytester.makepyfile(ONE_TEST)
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*There is no template at */deploy/stack.yaml*"])
    result.stdout.fnmatch_lines(["*the ini option roundsman_template says where*"])


@pytest.mark.exhaustive
def test_a_parameter_without_a_value_is_named_with_the_fixture_that_gives_it(
    project: pytest.Pytester,
) -> None:
    template = (project.path / "template.yaml").read_text(encoding="utf-8")
    asked = "\nParameters:\n  LoyaltyProgramme:\n    Type: String\n"
    (project.path / "template.yaml").write_text(template.replace("\nParameters:\n", asked, 1))
    project.makepyfile(ONE_TEST)
    result = run(project)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*asks for LoyaltyProgramme*roundsman_parameters*"])


@pytest.mark.exhaustive
def test_an_output_that_is_missing_is_named(project: pytest.Pytester) -> None:
    template = (project.path / "template.yaml").read_text(encoding="utf-8")
    (project.path / "template.yaml").write_text(template.replace("  TasksTableName:", "  Tasks:"))
    project.makepyfile(ONE_TEST)
    result = run(project)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*has no output TasksTableName*"])


@pytest.mark.exhaustive
def test_a_package_that_is_missing_is_named_with_what_installs_it(
    project: pytest.Pytester,
) -> None:
    project.makeconftest(
        """
        import importlib.util

        really = importlib.util.find_spec

        def without_moto(name, package=None):
            return None if name == "moto" else really(name, package)

        importlib.util.find_spec = without_moto
        """
    )
    project.makepyfile(ONE_TEST)
    result = run(project)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*needs moto*pip install *roundsman?testing?*"])


def test_the_fixture_takes_each_setting_of_a_world() -> None:
    parameters = inspect.signature(World.__init__).parameters.values()
    settings = {one.name for one in parameters if one.kind is one.KEYWORD_ONLY} - {"agents"}
    assert WorldSettings.__annotations__.keys() == settings
