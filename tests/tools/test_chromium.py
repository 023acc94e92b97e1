"""Where the Chromium of tests/browser comes from, and what its installation refuses."""

import platform
import shutil
from pathlib import Path

import pytest

from tools.engines import chromium
from tools.engines.runtimes import ToolError


def test_packages_that_are_not_the_locked_ones_are_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def bring_something_else(prefix: Path, *_packages: str) -> None:
        packed = prefix / "node_modules" / chromium.PACKAGE / "bin"
        axe = prefix / "node_modules" / chromium.AXE
        packed.mkdir(parents=True)
        axe.mkdir(parents=True)
        (packed / "chromium.br").write_bytes(b"something else")
        (axe / "axe.min.js").write_text("something else")

    monkeypatch.setattr(chromium, "HOME", tmp_path / "chromium")
    monkeypatch.setattr(chromium, "npm_install", bring_something_else)
    with pytest.raises(ToolError, match="not what was locked"):
        chromium.install()
    assert list(tmp_path.iterdir()) == []


def test_a_browser_that_is_named_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(chromium.OVERRIDE, "/opt/a-browser")
    assert chromium.find_chromium().program == Path("/opt/a-browser")


def test_an_installed_browser_is_taken_where_the_package_has_no_build(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(chromium.OVERRIDE, raising=False)
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert chromium.find_chromium().program == Path("/usr/bin/chromium")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(ToolError, match=f"There is no Chromium.*{chromium.OVERRIDE}"):
        chromium.find_chromium()


@pytest.mark.browser
def test_the_installed_browser_has_its_libraries_and_its_font() -> None:
    found = chromium.find_chromium()
    assert found.program.is_file()
    if "LD_LIBRARY_PATH" in found.environment:
        assert (Path(found.environment["LD_LIBRARY_PATH"]) / "libnss3.so").is_file()
        assert list((found.program.parent / "fonts").rglob("*.ttf"))
    assert "axe" in chromium.axe_script().read_text(encoding="utf-8")[:200]
