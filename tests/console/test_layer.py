"""The build of the workflows layer: which libraries it takes, and which it refuses by name.

Where pip is the real one, it finds the wheels of a folder only. Elsewhere a script stands for it,
which installs what a test puts into a folder.
"""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import pytest

from roundsman_console.layer import LayerProblem, build_workflows

PURE = "py3-none-any"
COMPILED = "cp39-abi3-manylinux_2_17_x86_64"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in which pip finds wheels."""
    (tmp_path / "index").mkdir()
    for name, value in (
        ("PIP_NO_INDEX", "1"),
        ("PIP_FIND_LINKS", str(tmp_path / "index")),
        ("PIP_CONFIG_FILE", "/dev/null"),
    ):
        monkeypatch.setenv(name, value)
    return tmp_path / "index"


@pytest.fixture
def tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of libraries that this Python has, as the tests of an application use them."""
    (tmp_path / "tested").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "tested"))
    return tmp_path / "tested"


def files_of(name: str, version: str, tag: str, needs: tuple[str, ...]) -> dict[str, str]:
    info = f"{name}-{version}.dist-info"
    required = "".join(f"Requires-Dist: {each}\n" for each in needs)
    return {
        f"{name}.py": f"VERSION = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{required}",
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n",
        f"{info}/RECORD": "",
    }


def wheel(index: Path, name: str, version: str, tag: str = PURE, *needs: str) -> Path:
    path = index / f"{name}-{version}-{tag}.whl"
    with ZipFile(path, "w") as file:
        for inner, text in files_of(name, version, tag, needs).items():
            file.writestr(inner, text)
    return path


def install(tested: Path, name: str, version: str, tag: str = PURE, *needs: str) -> None:
    for inner, text in files_of(name, version, tag, needs).items():
        (tested / inner).parent.mkdir(exist_ok=True)
        (tested / inner).write_text(text)


@dataclass(frozen=True)
class Build:
    """A build of the workflows layer."""

    folder: Path

    def by_pip(self, requirements: str) -> Path:
        """Build the layer of a requirements.txt by pip, and return its folder."""
        return self._run(sys.executable, requirements)

    def with_taken(self) -> Path:
        """Build the layer of what is in the folder `taken`, and return its folder."""
        python = self.folder / "python"
        python.write_text(
            "#!/bin/sh\n"
            'while [ "$1" != --target ]; do [ $# -gt 0 ] || exit 0; shift; done\n'
            f'cp -R "{self.taken}/." "$2"\n'
        )
        python.chmod(0o755)
        return self._run(str(python), "")

    @property
    def taken(self) -> Path:
        """The folder of the libraries that `with_taken` installs."""
        (self.folder / "taken").mkdir(exist_ok=True)
        return self.folder / "taken"

    def _run(self, python: str, requirements: str) -> Path:
        source = self.folder / "source"
        (source / "workflows").mkdir(parents=True)
        (source / "workflows/registry.py").write_text("WORKFLOWS = {}\n")
        (source / "requirements.txt").write_text(requirements)
        build_workflows(self.folder / "layer", python, source)
        return self.folder / "layer" / "python"


@pytest.fixture
def build(tmp_path: Path, index: Path) -> Build:
    return Build(tmp_path)


def refused(build: Callable[[], Path]) -> str:
    with pytest.raises(LayerProblem) as raised:
        build()
    return str(raised.value)


def test_the_versions_that_the_layer_takes_are_printed(
    build: Build, tested: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("ledger_kit", "prices", "rounding"):
        install(build.taken, name, "1.10")
    install(tested, "ledger_kit", "1.10")
    install(tested, "prices", "1.9")
    assert (build.with_taken() / "ledger_kit.py").exists()
    assert capsys.readouterr().out.splitlines() == [
        "ledger-kit 1.10",
        "prices 1.10, and the tests use 1.9",
        "rounding 1.10, which this Python does not have for the tests",
    ]


def test_an_older_library_because_the_tested_one_is_compiled_is_refused(
    build: Build, tested: Path
) -> None:
    install(build.taken, "prices", "1.9")
    install(tested, "prices", "1.10", COMPILED)
    message = refused(build.with_taken)
    assert message.startswith(
        "prices: the layer would get 1.9, and the tests use 1.10. prices 1.10 is not pure Python. "
    )
    assert "move it to functions/agents/AGENT/requirements.txt" in message


def test_an_older_library_because_the_tested_one_needs_a_compiled_one_is_refused(
    build: Build, tested: Path
) -> None:
    install(build.taken, "models", "1.10")
    install(tested, "models", "2.13", PURE, "middle>=1", "absent; extra == 'more'")
    install(tested, "middle", "1.0", PURE, "models_core (==2.46)", "models", "extras; extra == 'x'")
    install(tested, "models_core", "2.46", COMPILED)
    install(tested, "extras", "1.0", COMPILED)
    message = refused(build.with_taken)
    assert message.startswith(
        "models: the layer would get 1.10, and the tests use 2.13. models 2.13 needs models-core, "
        "which is not pure Python. "
    )


@pytest.mark.exhaustive
def test_what_pip_takes_without_a_word_because_it_is_pure_is_refused(
    build: Build, index: Path, tested: Path
) -> None:
    """The newest release is pure itself; pip goes back to one that needs no compiled library."""
    wheel(index, "models", "1.10")
    wheel(index, "models", "2.13", PURE, "models_core==2.46")
    wheel(index, "models_core", "2.46", COMPILED)
    install(tested, "models", "2.13", PURE, "models_core==2.46")
    install(tested, "models_core", "2.46", COMPILED)
    message = refused(lambda: build.by_pip("models\n"))
    assert message.startswith("models: the layer would get 1.10, and the tests use 2.13.")


def test_each_older_library_that_the_requirements_ask_for_is_refused(
    build: Build, tested: Path
) -> None:
    for name in ("prices", "dates"):
        install(build.taken, name, "1.9")
        install(tested, name, "1.10")
    dates, prices = refused(build.with_taken).splitlines()
    assert dates.startswith("dates: the layer would get 1.9, and the tests use 1.10. Either ")
    assert prices == (
        "prices: the layer would get 1.9, and the tests use 1.10. Either requirements.txt of the "
        "layer allows no newer one, or 1.10 has no wheel of pure Python. Install 1.9 for the "
        "tests, or allow 1.10."
    )


@pytest.mark.parametrize(
    ("taken", "of_tests"),
    [("1.10", "1.9"), ("2.0", "2"), ("2", "2.0.0"), ("2026.1", "2025.12"), ("1.0", "1.0rc1")],
)
def test_a_library_that_is_not_older_is_taken(
    build: Build, tested: Path, taken: str, of_tests: str
) -> None:
    install(build.taken, "prices", taken)
    install(tested, "prices", of_tests)
    assert (build.with_taken() / "prices.py").exists()


def test_the_tests_use_the_library_that_an_import_finds_first(
    build: Build, tested: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(build.taken, "prices", "1.10")
    install(tested, "prices", "1.10")
    (tmp_path / "behind").mkdir()
    install(tmp_path / "behind", "prices", "2.0")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "behind")])
    assert (build.with_taken() / "prices.py").exists()


def test_a_library_whose_own_wheel_says_that_it_is_compiled_is_refused(build: Build) -> None:
    """As pip installs one that it builds here from a folder, whatever its options are."""
    install(build.taken, "fast", "1.0", COMPILED)
    assert refused(build.with_taken).startswith("fast: not pure Python. ")


@pytest.mark.parametrize(
    "requirements",
    [
        "fast\n",
        pytest.param("fast>=1\n", marks=pytest.mark.exhaustive),
        pytest.param("prices\n", marks=pytest.mark.exhaustive),
    ],
)
def test_a_library_without_any_pure_release_is_named(
    build: Build, index: Path, requirements: str
) -> None:
    wheel(index, "fast", "2.0", COMPILED)
    wheel(index, "prices", "1.0", PURE, "fast")
    message = refused(lambda: build.by_pip(requirements))
    assert message.startswith(
        "fast: there is no pure Python of a version that requirements.txt allows, or no such "
        "library. A layer runs on every Python and processor"
    )


@pytest.mark.exhaustive
def test_a_wheel_for_one_platform_that_is_named_by_its_path_is_refused(
    build: Build, index: Path
) -> None:
    path = wheel(index, "fast_kit", "2.0", COMPILED)
    message = refused(lambda: build.by_pip(f"{path}\n"))
    assert message.startswith("fast-kit: there is no pure Python")


@pytest.mark.exhaustive
def test_another_failure_of_pip_is_shown_as_it_is(build: Build) -> None:
    message = refused(lambda: build.by_pip("a requirement of many words\n"))
    assert message.startswith("pip cannot install the libraries of the layer:\nERROR: Invalid")


@pytest.mark.exhaustive
def test_the_command_prints_a_sentence_and_fails(tmp_path: Path, index: Path) -> None:
    (tmp_path / "workflows").mkdir()
    (tmp_path / "requirements.txt").write_text("fast\n")
    command = [sys.executable, "-m", "roundsman_console.layer", str(tmp_path / "layer")]
    done = subprocess.run(
        [*command, "--workflows", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("fast: there is no pure Python")
