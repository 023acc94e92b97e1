"""Measures what is installed from an empty folder with the wheel, and how long that takes.

    python -m benchmarks.installed                # all, into benchmarks/installed.json; minutes
    python -m benchmarks.installed unit demo      # these only

Megabytes are those of `du` after the installation, before Python compiles what it imports. Seconds
are those of the first time; `then` are those of the next, or of the tests once all is installed.
What pip has in its cache is not loaded again: the second of two runs has a warm one.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
RECORD = Path(__file__).with_suffix(".json")
OF_THIS_RUN = ("PYTHON", "VIRTUAL_ENV", "ROUNDSMAN", "MAKE", "MFLAGS", "PYTEST", "AWS_")
"""The beginnings of the names of variables that a person's terminal does not have."""
Figures = dict[str, int]


class Terminal:
    """An empty folder with the wheel, and a terminal of a person in it."""

    def __init__(self, folder: Path) -> None:
        """Build the wheel into the folder, which is empty."""
        self.folder = folder
        built = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
        subprocess.run(
            [*built, "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)], check=True
        )
        [self.wheel] = folder.glob("roundsman-*.whl")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(OF_THIS_RUN)}
        python = Path(sys.base_prefix) / "bin"
        self._environment = {**kept, "PATH": os.pathsep.join([str(python), kept["PATH"]])}

    def run(self, commands: str, where: str = ".") -> int:
        """Run commands of a shell, and return the whole seconds that they took."""
        began = time.monotonic()
        done = subprocess.run(
            ["bash", "-euc", commands],
            cwd=self.folder / where,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"{commands}\n{done.stdout}{done.stderr}")
        return round(time.monotonic() - began)

    def megabytes(self, pattern: str, *options: str) -> int:
        """Return the size of the folder that matches. `options` are those of `du`."""
        [found] = self.folder.glob(pattern)
        command = ["du", "-sm", *options, str(found)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        return int(done.stdout.split()[0])

    def emulator(self, project: str) -> int:
        """Return the size of the local AWS of a project, which has run already."""
        return self.megabytes(f"{project}/.cache/emulator-*/", "--exclude=__pycache__")

    def make_shop(self) -> None:
        """Make an application, without an environment."""
        if not (self.folder / "shop").exists():
            self.run(f"python3 -m venv maker && maker/bin/pip install -q '{self.wheel}[cli]'")
            self.run("maker/bin/roundsman init shop --workflow purchase --agent stock")

    def copy_project(self) -> None:
        """Copy the last commit of this project, without what it has made."""
        if not (self.folder / "project").exists():
            self.run(f"mkdir project && git -C '{ROOT}' archive HEAD | tar -x -C project")


def look(here: Terminal) -> Figures:
    """`roundsman demo`."""
    seconds = here.run(
        f"python3 -m venv look && look/bin/pip install -q --no-compile '{here.wheel}[ui]'"
    )
    return {"seconds": seconds, "megabytes": here.megabytes("look")}


def unit(here: Terminal) -> Figures:
    """`make unit` of an application: the tests in memory."""
    here.make_shop()
    here.run("rm -rf .venv", "shop")
    seconds = here.run("make .venv/.unit", "shop")
    megabytes = here.megabytes("shop/.venv")
    return {"seconds": seconds, "megabytes": megabytes, "then": here.run("make unit", "shop")}


def test(here: Terminal) -> Figures:
    """`make test` of an application: in memory and on moto."""
    here.make_shop()
    here.run("rm -rf .venv", "shop")
    seconds = here.run("make install", "shop")
    megabytes = here.megabytes("shop/.venv")
    return {"seconds": seconds, "megabytes": megabytes, "then": here.run("make test", "shop")}


def local(here: Terminal) -> Figures:
    """`roundsman local up` of an application that is installed."""
    here.make_shop()
    here.run("make install", "shop")
    up, down = (f".venv/bin/roundsman local {verb}" for verb in ("up", "down"))
    seconds = here.run(up, "shop")
    here.run(down, "shop")
    megabytes = here.emulator("shop")
    then = here.run(up, "shop")
    here.run(down, "shop")
    return {"seconds": seconds, "megabytes": megabytes, "then": then}


def demo(here: Terminal) -> Figures:
    """`make demo` of this project."""
    here.copy_project()
    installing = here.run("make .venv/.demo", "project")
    environment = here.megabytes("project/.venv")
    seconds = installing + here.run("make demo", "project")
    megabytes = environment + here.emulator("project")
    return {"seconds": seconds, "megabytes": megabytes, "then": here.run("make demo", "project")}


def tests(here: Terminal) -> Figures:
    """What `make test` of this project installs."""
    here.copy_project()
    here.run("rm -rf .venv", "project")
    seconds = here.run("make .venv/.test", "project")
    return {"seconds": seconds, "megabytes": here.megabytes("project/.venv")}


PARTS: Mapping[str, Callable[[Terminal], Figures]] = {
    each.__name__: each for each in (look, unit, test, local, demo, tests)
}


@contextmanager
def empty_folder() -> Iterator[Terminal]:
    """An empty folder with the wheel, for as long as the context."""
    with tempfile.TemporaryDirectory(prefix="installed-") as folder:
        yield Terminal(Path(folder))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print, and record what was measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.installed", description=__doc__)
    parser.add_argument("part", nargs="*", metavar="PART", help=", ".join(PARTS))
    asked = parser.parse_args(arguments).part or list(PARTS)
    if unknown := set(asked) - set(PARTS):
        parser.error(f"no part {', '.join(sorted(unknown))}: the parts are {', '.join(PARTS)}")
    found: dict[str, Figures] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    with empty_folder() as here:
        for name in asked:
            found[name] = PARTS[name](here)
            figures = "  ".join(f"{what} {number}" for what, number in found[name].items())
            print(f"{name:6} {figures}  {PARTS[name].__doc__}", flush=True)
    in_order = {name: found[name] for name in PARTS if name in found}
    RECORD.write_text(json.dumps(in_order, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
