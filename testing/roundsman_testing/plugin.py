"""The pytest plugin: fixtures for worlds in memory and for the project's template on moto.

    def test_order(roundsman_stack):
        roundsman_stack.submit({...})
        roundsman_stack.run()
        assert roundsman_stack.task("ord-1").state is TaskState.COMPLETED

pytest loads this module at every start, so the fixtures import slow modules only when they run.
A project overrides a fixture by defining one of the same name in its conftest.py.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypedDict

import pytest

if TYPE_CHECKING:
    from typing import Unpack

    from roundsman import Agent, Workflow
    from roundsman_testing import Capacity, Circuit, Faults, Mishaps, World
    from roundsman_testing.stack import Clock, Services, Stack

INI = "roundsman_template"
WORLD = ("aws_lambda_powertools", "boto3")
"""What a world in memory needs, beside what roundsman itself needs."""
STACK = (*WORLD, "moto", "samtranslator")
"""What a stack on moto needs."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the ini option that names the template."""
    parser.addini(
        INI,
        "The SAM template that the fixture roundsman_stack deploys, from pytest's rootdir.",
        type="string",
        default="template.yaml",
    )


class WorldSettings(TypedDict, total=False):
    """The keyword arguments of `World`, but for its agents."""

    seed: int
    mishaps: "Mishaps"
    faults: "Faults | None"
    supervisors: int
    interval: timedelta
    skew: "Mapping[str, timedelta] | None"
    instances: int | None
    capacity: "Mapping[str, Capacity] | None"
    account: int | None
    circuits: "Mapping[str, Circuit] | None"
    order_retention: timedelta | None
    starts_at: int
    sources: Sequence[str]


class MakeWorld(Protocol):
    """The type of the fixture `roundsman_world`."""

    def __call__(
        self, workflow: "Workflow", *agents: "Agent", **settings: "Unpack[WorldSettings]"
    ) -> "World":
        """Make a world that runs this workflow, with a stand-in for each agent that is not given.

        The parameters are those of `World`.
        """


@pytest.fixture(scope="session", autouse=True)
def _roundsman_traces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Write the traces of failed runs beside pytest's other temporary files."""
    from roundsman_testing.trace_files import TRACE_FILES

    usual, TRACE_FILES.folder = TRACE_FILES.folder, tmp_path_factory.getbasetemp
    yield
    TRACE_FILES.folder = usual


@pytest.fixture
def roundsman_world() -> MakeWorld:
    """A function that makes worlds: `roundsman_world(workflow, agent, seed=1)`.

    See docs/how-to/test.md.
    """

    def make(
        workflow: "Workflow", *agents: "Agent", **settings: "Unpack[WorldSettings]"
    ) -> "World":
        _check_installed("A world in memory", WORLD, "client")
        from roundsman_testing import World

        return World(workflow, agents=agents, **settings)

    return make


@pytest.fixture(scope="session")
def roundsman_template(pytestconfig: pytest.Config) -> Path:
    """The path of the template: the ini option `roundsman_template`, relative to the rootdir."""
    named = str(pytestconfig.getini(INI))
    path = pytestconfig.rootpath / named
    if not path.is_file():
        pytest.fail(
            f"There is no template at {path}. pytest's rootdir is {pytestconfig.rootpath}; "
            f"the ini option {INI} says where in it the template is.",
            pytrace=False,
        )
    return path


@pytest.fixture(scope="session")
def roundsman_clock() -> "Clock":
    """The clock that stacks and services share; each new stack sets it back to MORNING."""
    _check_installed("A stack on moto", STACK, "testing")
    from roundsman_testing.stack import Clock

    return Clock()


@pytest.fixture(scope="session")
def roundsman_services(roundsman_template: Path, roundsman_clock: "Clock") -> "Iterator[Services]":
    """The remote services of the example, and a stand-in for each agent that it does not have.

    Each new stack resets them. Override it with None in a project whose agents do not call them.
    """
    _check_installed("A stack on moto", STACK, "testing")
    from roundsman_dev.template import Template, TemplateProblem
    from roundsman_testing.remote_services import RemoteServices

    try:
        agents = Template.read(roundsman_template).agents()
    except TemplateProblem as problem:
        pytest.fail(str(problem), pytrace=False)
    with RemoteServices(clock=roundsman_clock.at_the_services, stand_ins=agents) as services:
        yield services


@pytest.fixture
def roundsman_parameters(
    roundsman_template: Path, roundsman_services: "Services | None"
) -> Mapping[str, str]:
    """The parameters of the stack: the address of the services for each that has no default.

    Override it to pass other parameters. An override that takes this fixture as an argument can
    add to these.
    """
    _check_installed("A stack on moto", STACK, "testing")
    from roundsman_dev.template import Template, TemplateProblem, mapping_of, part

    if roundsman_services is None:
        return {}
    try:
        asked = part(Template.read(roundsman_template).document, "Parameters")
    except TemplateProblem as problem:
        pytest.fail(str(problem), pytrace=False)
    return {
        name: roundsman_services.url
        for name, parameter in asked.items()
        if name.endswith("Url") and "Default" not in mapping_of(parameter)
    }


@pytest.fixture
def roundsman_stack(
    roundsman_template: Path,
    roundsman_parameters: Mapping[str, str],
    roundsman_services: "Services | None",
    roundsman_clock: "Clock",
) -> "Iterator[Stack]":
    """The project's template, deployed on moto with its functions and services, for one test.

    See docs/how-to/test.md.
    """
    _check_installed("A stack on moto", STACK, "testing")
    from contextlib import ExitStack

    from roundsman_testing.stack import TemplateProblem, deployed

    with ExitStack() as open_until_the_end:
        try:
            stack = open_until_the_end.enter_context(
                deployed(
                    roundsman_template,
                    roundsman_parameters,
                    services=roundsman_services,
                    clock=roundsman_clock,
                )
            )
        except TemplateProblem as problem:
            pytest.fail(str(problem), pytrace=False)
        yield stack


@pytest.fixture
def roundsman_check(pytestconfig: pytest.Config) -> "Callable[[], list[str]]":
    """A function that returns what `roundsman check` finds in this project; empty if nothing."""
    _check_installed("A stack on moto", STACK, "testing")
    from roundsman_dev.check import RULES
    from roundsman_dev.check.project import read_project

    def check() -> list[str]:
        application = read_project(pytestconfig.rootpath)
        return [problem for rule in RULES for problem in rule(application)]

    return check


def _check_installed(what: str, needed: tuple[str, ...], extra: str) -> None:
    """Fail with the names of the missing packages and how to install them, not an ImportError."""
    from importlib.util import find_spec

    if missing := [name for name in needed if find_spec(name) is None]:
        pytest.fail(
            f"{what} needs {', '.join(missing)}, not installed here: "
            f'pip install "roundsman[{extra}]", or make install in a copy of the project.',
            pytrace=False,
        )
