"""What users may import: the lists of the public packages, and nothing with an underscore."""

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOTS = {"roundsman": ROOT / "layers" / "core", "roundsman_console": ROOT / "console"}
PUBLIC = {
    "roundsman": {
        "ANY",
        "Agent",
        "AnyOf",
        "Archive",
        "Busy",
        "Callback",
        "Compensation",
        "CredentialRefused",
        "DefinitionError",
        "DidNotHappen",
        "Done",
        "From",
        "Happened",
        "InvalidInput",
        "Items",
        "Json",
        "Limit",
        "Masked",
        "NamedStep",
        "NextAgent",
        "NotYet",
        "Pattern",
        "Payload",
        "PayloadError",
        "PermanentError",
        "Priority",
        "Problem",
        "Range",
        "Retry",
        "RoundsmanError",
        "Signal",
        "Skip",
        "Sleep",
        "SleepUntil",
        "Step",
        "StepRequest",
        "Text",
        "TransientError",
        "Undo",
        "Wait",
        "Workflow",
        "WrongAddress",
        "read_input",
    },
    "roundsman.client": {
        "CallRefused",
        "Client",
        "OrderEnded",
        "InvalidCall",
        "InvalidToken",
        "OrderUnknown",
        "OrderStatus",
        "PermanentError",
        "Problem",
        "OrderRejected",
        "OrderRemoved",
        "SchemaTooNew",
        "OrderOpen",
        "TransientError",
        "TryAgain",
        "UnreadableRecord",
        "WaitResult",
    },
    "roundsman_console.inspector": {
        "AgentNow",
        "CommandOutcome",
        "CommandResult",
        "DeployedStack",
        "Diagnosis",
        "GroupNow",
        "Happening",
        "InputChange",
        "InputCorrection",
        "Inspector",
        "InspectorError",
        "Interrupted",
        "InvalidArgument",
        "NotFound",
        "Page",
        "Plan",
        "ProcessState",
        "Queue",
        "Selection",
        "Stats",
        "Task",
        "TaskState",
        "Unconfirmed",
        "sentence_of",
    },
    "roundsman_testing": {
        "FOR_EVER",
        "Broken",
        "Crash",
        "Fault",
        "Capacity",
        "Circuit",
        "Faults",
        "Invariant",
        "InvariantBroken",
        "Mishaps",
        "ProcessState",
        "ProcessingOptions",
        "StoryBroken",
        "TaskState",
        "World",
        "crash_everywhere",
        "eventbridge_event",
        "s3_notification",
        "s3_test_event",
        "sns_notification",
    },
    "roundsman_testing.stack": {
        "MORNING",
        "AwsCall",
        "AwsFault",
        "Clock",
        "Context",
        "InjectedFault",
        "Killed",
        "QueueMessage",
        "Services",
        "Stack",
        "Template",
        "TemplateProblem",
        "deployed",
    },
    "roundsman_testing.remote_services": {"FaultsInvalid", "PortUnavailable", "RemoteServices"},
}
"""A name that leaves one of these lists breaks somebody's import: say so in the changelog."""


@pytest.mark.parametrize("package", PUBLIC)
def test_a_public_package_offers_the_names_that_are_listed(package: str) -> None:
    assert set(import_module(package).__all__) == PUBLIC[package]


@pytest.mark.parametrize(
    ("package", "name"),
    [(package, name) for package, names in PUBLIC.items() for name in sorted(names)],
)
def test_a_public_name_can_be_imported_and_says_what_it_is(package: str, name: str) -> None:
    found = getattr(import_module(package), name)
    if isinstance(found, type):
        assert found.__doc__


def private_imports() -> Iterator[tuple[Path, str]]:
    """Each import of a module with an underscore, by the file that has it; tests may have any."""
    for folder in ("layers", "functions", "console", "tools", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("roundsman"):
                    names = [f"{node.module}.{alias.name}" for alias in node.names]
                    for module in (str(node.module), *names):
                        if any(part.startswith("_") for part in module.split(".")):
                            yield path, module


@pytest.mark.exhaustive
def test_a_private_module_is_imported_by_its_own_package_and_its_tests_only() -> None:
    checked = list(private_imports())
    assert checked
    for path, module in checked:
        package = module[: module.index("._")]
        folder = ROOTS[package.partition(".")[0]] / package.replace(".", "/")
        assert folder in path.parents, f"{path} imports {module}"
