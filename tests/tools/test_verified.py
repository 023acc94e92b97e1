"""The account of `make verify`: written when all of it passed, and of the sources it passed on."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools import verified as tool
from tools.sources import hash_here, hash_of, since
from tools.verified import ACCOUNT, NARROWING, PARTS, REPORTS, main

ENGINE = "layers/core/roundsman/engine/machine.py"
FILES = {
    ENGINE: "STATES = 3\n",
    "functions/scheduler/app.py": "",
    "testing/roundsman_testing/world/world.py": "A kit\n",
    "template.yaml": "Resources: {}\n",
    "stacks/agent.yaml": "Resources: {}\n",
    "docs/page.md": "A page\n",
    "tests/test_machine.py": "A test\n",
}
XML = (
    '<testsuites><testsuite tests="3" failures="{failed}" errors="0" skipped="{skipped}">'
    '<testcase><properties><property name="states" value="40"/></properties></testcase>'
    '<testcase><properties><property name="states" value="2"/>'
    '<property name="text" value="2 runs"/></properties></testcase>'
    "</testsuite></testsuites>"
)


@pytest.fixture(autouse=True)
def _whole_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NARROWING:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that git knows nothing of."""
    return written(tmp_path / "project")


def written(folder: Path) -> Path:
    for name, text in {**FILES, str(ACCOUNT.with_name("index.md")): ""}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def git(folder: Path, *arguments: str) -> str:
    who = [
        "-c",
        "user.name=Ann",
        "-c",
        "user.email=ann@example.com",
        "-c",
        "init.defaultBranch=main",
    ]
    return subprocess.run(
        ["git", *who, *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def checkout(project: Path) -> Path:
    """The same as a git checkout of one commit."""
    git(project, "init", "-q")
    commit(project)
    return project


def commit(folder: Path, path: str = "", text: str = "") -> None:
    if path:
        (folder / path).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", "A change")


def part(project: Path, name: str, report: str, code: int = 0) -> int:
    """Run a part that writes this report and ends with this exit code."""
    file = REPORTS / f"{name}.{'xml' if report.startswith('<') else 'json'}"
    script = (
        f"import pathlib, sys; pathlib.Path({str(file)!r}).write_text({report!r}); sys.exit({code})"
    )
    return main(["part", name, str(file), "--", sys.executable, "-S", "-c", script], project)


def xml(failed: int = 0, skipped: int = 0) -> str:
    return XML.format(failed=failed, skipped=skipped)


def run(project: Path, *, but: str = "", smaller: str = "") -> None:
    """All parts, each with its report; without one of them."""
    assert main(["begin", "--smaller", smaller], project) == 0
    for name in PARTS:
        if name != but:
            assert part(project, name, xml() if name != "soak" else '{"orders": 7}') == 0


def verify(project: Path) -> None:
    run(project)
    assert main(["finish"], project) == 0


def account(project: Path) -> dict[str, object]:
    found = json.loads((project / ACCOUNT).read_text())
    assert isinstance(found, dict)
    return found


def case(name: str, *, failed: bool = False, states: int = 1) -> str:
    """A test of a report; it records how many states it has seen."""
    return (
        f'<testcase file="tests/test_a.py" name="{name}"><properties><property name="states" '
        f'value="{states}"/></properties>{"<failure/>" if failed else ""}</testcase>'
    )


def suite(*cases: str) -> str:
    failed = sum("<failure/>" in each for each in cases)
    head = f'<testsuite tests="{len(cases)}" failures="{failed}" errors="0" skipped="0">'
    return f"<testsuites>{head}{''.join(cases)}</testsuite></testsuites>"


def again(project: Path, report: str, code: int = 0) -> int:
    """Run of the proof what has not passed; what it is asked to run is in the file `asked`."""
    file = REPORTS / "proof.xml"
    script = (
        "import pathlib, sys; pathlib.Path('asked').write_text(' '.join(sys.argv[1:])); "
        f"pathlib.Path({str(file)!r}).write_text({report!r}); sys.exit({code})"
    )
    command = [sys.executable, "-S", "-c", script]
    return main(["part", "--again", "proof", str(file), "--", *command], project)


# --- The account ---------------------------------------------------------------------------------


def test_when_all_parts_have_passed_the_account_has_the_sources_and_each_parts_counts(
    project: Path,
) -> None:
    verify(project)
    found = account(project)
    assert found["sources"] == hash_here(project)
    assert found["before"] == {}
    parts = found["parts"]
    assert isinstance(parts, list)
    assert [each["name"] for each in parts] == list(PARTS)
    assert parts[0]["counts"] == {"passed": 3, "failed": 0, "skipped": 0, "states": 42}
    assert parts[-1]["counts"] == {"orders": 7}
    assert all(each["seconds"] >= 0 for each in parts)


@pytest.mark.parametrize(
    "name",
    [
        "proof",
        *(pytest.param(part, marks=pytest.mark.exhaustive) for part in PARTS if part != "proof"),
    ],
)
def test_without_one_of_its_parts_nothing_is_written_and_it_is_named(
    project: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    run(project, but=name)
    assert main(["finish"], project) == 1
    assert f"nothing is written: not run: {name}" in capsys.readouterr().out
    assert not (project / ACCOUNT).exists()


@pytest.mark.parametrize(
    ("report", "code"),
    [
        (xml(), 1),
        (xml(failed=1), 0),
        *(
            pytest.param(report, 0, marks=pytest.mark.exhaustive)
            for report in (xml(skipped=1), "{}", "<broken off", "{")
        ),
    ],
)
def test_a_part_that_failed_or_reports_no_success_is_named_and_nothing_is_written(
    project: Path, capsys: pytest.CaptureFixture[str], report: str, code: int
) -> None:
    run(project, but="proof")
    assert part(project, "proof", report, code) == 1
    assert main(["finish"], project) == 1
    assert "nothing is written: failed: proof" in capsys.readouterr().out
    assert not (project / ACCOUNT).exists()


def test_a_part_keeps_the_exit_code_of_its_command(project: Path) -> None:
    main(["begin"], project)
    assert part(project, "mutants", '{"killed": 3}', code=5) == 5


def test_a_part_that_writes_no_report_is_not_helped_by_an_old_one(project: Path) -> None:
    main(["begin"], project)
    report = REPORTS / "soak.json"
    (project / report).write_text('{"orders": 7}')
    assert main(["part", "soak", str(report), "--", sys.executable, "-c", ""], project) == 1


def test_a_run_that_was_begun_again_has_no_parts_of_the_one_before(project: Path) -> None:
    run(project)
    assert main(["begin"], project) == 0
    assert main(["finish"], project) == 1
    assert not (project / ACCOUNT).exists()


def test_what_was_never_begun_is_not_finished(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["finish"], project) == 1
    assert "no run was begun" in capsys.readouterr().out


def test_sources_that_change_during_the_run_are_not_verified_by_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(project)
    (project / ENGINE).write_text("STATES = 4\n")
    assert main(["finish"], project) == 1
    assert "have changed while it ran" in capsys.readouterr().out
    assert not (project / ACCOUNT).exists()


def test_a_smaller_run_may_pass_but_verifies_nothing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(project, smaller="TEST_ARGS")
    assert main(["finish"], project) == 0
    assert "Nothing is written: this run was a smaller one (TEST_ARGS)" in capsys.readouterr().out
    assert not (project / ACCOUNT).exists()


@pytest.mark.parametrize(
    "name",
    [NARROWING[0], *(pytest.param(name, marks=pytest.mark.exhaustive) for name in NARROWING[1:])],
)
def test_a_run_whose_environment_leaves_tests_out_is_a_smaller_one(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "-k claim")
    run(project)
    assert main(["finish"], project) == 0
    assert not (project / ACCOUNT).exists()


@pytest.mark.exhaustive
def test_what_was_verified_before_stays_known_with_its_date(project: Path) -> None:
    verify(project)
    first, date = hash_here(project), account(project)["date"]
    (project / ENGINE).write_text("STATES = 4\n")
    verify(project)
    second = hash_here(project)
    assert account(project)["before"] == {first: date}
    assert set(tool.verified(project)) == {first, second}
    (project / ENGINE).write_text(FILES[ENGINE])
    verify(project)
    assert (account(project)["sources"], list(tool.verified(project))) == (first, [second, first])


def test_the_makefile_runs_each_part_once_and_says_in_check_what_is_unverified() -> None:
    makefile = (tool.PROJECT / "Makefile").read_text()
    assert sorted(re.findall(r"\$\(PART\) (\S+) ", makefile)) == sorted(PARTS)
    check = makefile.partition("\ncheck: ")[2].partition("\n\n")[0]
    assert "$(VERIFIED) status" in check


# --- The hash ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", [ENGINE, "functions/scheduler/app.py", "stacks/agent.yaml", "template.yaml"]
)
def test_a_change_of_what_is_deployed_is_other_sources(project: Path, path: str) -> None:
    before = hash_here(project)
    (project / path).write_text("Another\n")
    assert hash_here(project) != before


def test_a_file_that_is_new_gone_or_moved_is_other_sources(project: Path) -> None:
    found = {hash_here(project)}
    (project / ENGINE).rename(project / ENGINE.replace("machine", "engine"))
    found.add(hash_here(project))
    (project / ENGINE).write_text("")
    found.add(hash_here(project))
    (project / "functions/scheduler/app.py").unlink()
    found.add(hash_here(project))
    assert len(found) == 4


@pytest.mark.parametrize(
    "path",
    ["docs/page.md", "tests/test_machine.py", "testing/roundsman_testing/world/world.py"],
)
def test_what_is_not_deployed_is_no_part_of_the_sources(project: Path, path: str) -> None:
    before = hash_here(project)
    (project / path).write_text("Another\n")
    assert hash_here(project) == before


def test_a_checkout_a_commit_and_a_copy_without_git_have_one_hash(
    checkout: Path, tmp_path: Path
) -> None:
    (checkout / "functions/notes.txt").write_text("not committed")
    copy = written(tmp_path / "copy")
    made = copy / "layers/core/roundsman/__pycache__/machine.pyc"
    made.parent.mkdir()
    made.write_text("")
    assert hash_here(checkout) == hash_of(checkout, "HEAD") == hash_here(copy)


def test_a_copy_inside_of_another_checkout_has_the_hash_of_its_own_files(checkout: Path) -> None:
    inner = written(checkout / "inner")
    (inner / ENGINE).write_text("STATES = 5\n")
    assert hash_here(inner) != hash_here(checkout)
    (inner / ENGINE).write_text(FILES[ENGINE])
    assert hash_here(inner) == hash_here(checkout)


def test_the_hash_of_this_project_is_that_of_its_own_files() -> None:
    assert len(hash_here(tool.PROJECT)) == 64


# --- What is unverified --------------------------------------------------------------------------


def status(project: Path, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert main(["status"], project) == 0
    return capsys.readouterr().out


def test_sources_that_were_verified_are_reported_as_verified(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verify(checkout)
    commit(checkout)
    commit(checkout, "docs/page.md", "Another page\n")
    assert status(checkout, capsys).startswith("Verified: these sources were verified on 20")


@pytest.mark.exhaustive
def test_the_commits_since_then_are_counted_that_touch_the_sources(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verify(checkout)
    commit(checkout)
    commit(checkout, ENGINE, "STATES = 4\n")
    commit(checkout, "docs/page.md", "Another page\n")
    commit(checkout, "testing/roundsman_testing/world/world.py", "Another kit\n")
    assert "unverified: 1 commit that touch" in status(checkout, capsys)
    commit(checkout, "template.yaml", "Resources: {A: {}}\n")
    output = status(checkout, capsys)
    assert "unverified: 2 commits that touch the engine's sources" in output
    assert "not committed" not in output
    (checkout / ENGINE).write_text("STATES = 5\n")
    assert "2 commits that touch the engine's sources, and changes that are not" in status(
        checkout, capsys
    )


def test_commits_of_a_branch_that_was_merged_count_too(checkout: Path) -> None:
    known = hash_here(checkout)
    git(checkout, "checkout", "-q", "-b", "branch")
    commit(checkout, ENGINE, "STATES = 4\n")
    git(checkout, "checkout", "-q", "main")
    commit(checkout, "template.yaml", "Resources: {A: {}}\n")
    git(checkout, "merge", "-q", "--no-edit", "branch")
    found = since(checkout, known)
    assert (found.commits, found.found, found.edited) == (3, True, False)


def test_before_the_first_verification_all_commits_are_unverified(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commit(checkout, ENGINE, "STATES = 4\n")
    output = status(checkout, capsys)
    assert "make verify has never passed whole; unverified: 2 commits" in output


@pytest.mark.exhaustive
def test_a_shallow_clone_says_that_it_does_not_know_more(
    checkout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verify(checkout)
    commit(checkout)
    for states in (4, 5, 6):
        commit(checkout, ENGINE, f"STATES = {states}\n")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth", "2", checkout.as_uri(), str(clone))
    assert "2 commits that touch the engine's sources at least, in this" in status(clone, capsys)
    assert "unverified: 3 commits that touch the engine's sources." in status(checkout, capsys)


def test_outside_of_git_the_number_of_commits_is_not_known(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    verify(project)
    assert "these sources were verified on" in status(project, capsys)
    (project / ENGINE).write_text("STATES = 4\n")
    assert "is not known: this is no git checkout" in status(project, capsys)


def test_where_git_is_not_installed_the_number_is_not_known_either(
    checkout: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert "is not known: this is no git checkout" in status(checkout, capsys)


# --- What runs again ------------------------------------------------------------------------------


def test_only_the_failed_tests_run_again_and_the_report_has_their_new_results(
    project: Path,
) -> None:
    run(project, but="proof")
    part(project, "proof", suite(case("quiet"), case("test_b[x y]", failed=True)), code=1)
    assert again(project, suite(case("test_b[x y]", states=7))) == 0
    assert (project / "asked").read_text() == "tests/test_a.py::test_b[x y]"
    assert main(["finish"], project) == 0
    parts = account(project)["parts"]
    assert isinstance(parts, list)
    [proof] = [each for each in parts if each["name"] == "proof"]
    assert proof["counts"] == {"passed": 2, "failed": 0, "skipped": 0, "states": 8}


def test_a_test_that_fails_again_fails_the_part(project: Path) -> None:
    run(project, but="proof")
    part(project, "proof", suite(case("quiet"), case("loud", failed=True)), code=1)
    assert again(project, suite(case("loud", failed=True)), code=1) == 1
    assert main(["finish"], project) == 1


def test_a_part_whose_failed_test_did_not_run_again_is_not_recorded(project: Path) -> None:
    run(project, but="proof")
    part(project, "proof", suite(case("quiet"), case("loud", failed=True)), code=1)
    with pytest.raises(LookupError, match="loud"):
        again(project, suite(case("quiet")))
    assert main(["finish"], project) == 1


def test_a_part_that_has_passed_does_not_run_again(project: Path) -> None:
    run(project)
    assert again(project, "not a report") == 0
    assert not (project / "asked").exists()


def test_a_part_that_did_not_run_is_run_whole(project: Path) -> None:
    run(project, but="proof")
    assert again(project, suite(case("quiet"))) == 0
    assert (project / "asked").read_text() == ""


def test_a_part_that_failed_without_a_report_is_run_whole(project: Path) -> None:
    run(project, but="proof")
    part(project, "proof", suite(case("loud", failed=True)), code=1)
    (project / REPORTS / "proof.xml").unlink()
    assert again(project, suite(case("loud"))) == 0
    assert (project / "asked").read_text() == ""


def test_a_variable_that_lets_tests_pass_is_refused(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(project, but="proof")
    monkeypatch.setenv("EXPLORATION_RECORD", "1")
    assert again(project, suite(case("quiet"))) == 1
    assert "EXPLORATION_RECORD must not be set" in capsys.readouterr().out
