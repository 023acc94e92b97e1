"""The record of what runs: nothing but its own is ever ended, and what died is cleared away."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from roundsman_console.aws import local_record as state
from roundsman_console.aws.local_record import Instances, LocalFiles, LocalRecord
from roundsman_console.base.errors import ConsoleError
from roundsman_console.base.process import (
    ProcessIdentity,
    command_lines_as_ps_says,
    identify,
    started_as_ps_says,
    wait_until,
)
from roundsman_dev.local.emulator import is_healthy
from roundsman_dev.local.rights import enforcing

SLEEP = "import time; time.sleep(60)"
GONE = ProcessIdentity(2**22 + 1, "never")  # beyond the highest id that Linux gives


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that leads its own group, as the emulator does."""
    with subprocess.Popen([sys.executable, "-c", SLEEP], start_new_session=True) as child:
        yield child
        child.kill()


@pytest.fixture
def instance(tmp_path: Path) -> LocalFiles:
    return Instances(tmp_path).claim(4510)[0]


def identity_of(child: subprocess.Popen[bytes]) -> ProcessIdentity:
    found = identify(child.pid)
    assert found is not None
    return found


def test_a_record_is_read_as_it_was_written(instance: LocalFiles) -> None:
    record = LocalRecord(
        4510, GONE, GONE, "mark", "s", "r", {"A": "1"}, {"mail": "u"}, deployed=True
    )
    instance.write(record)
    assert instance.read() == record


def test_an_instance_that_enforces_iam_speaks_tls_with_a_certificate_that_functions_trust(
    instance: LocalFiles,
) -> None:
    record, variables = enforcing(instance, LocalRecord(4510, GONE))
    assert record.endpoint == "https://127.0.0.1:4510"
    assert variables["AUTH"] == "true"
    assert variables["AWS_CA_BUNDLE"] == record.certificate
    assert Path(record.certificate).is_relative_to(instance.temporary)
    environment = record.client_environment
    assert environment["AWS_CA_BUNDLE"] == record.certificate
    assert not is_healthy(record)  # it has no certificate yet


def test_any_other_instance_speaks_no_tls(instance: LocalFiles) -> None:
    record = LocalRecord(4510, GONE)
    assert record.endpoint == "http://127.0.0.1:4510"
    assert "AWS_CA_BUNDLE" not in record.client_environment


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"port": 1, "owner": 5}', "{half"])
def test_a_record_that_cannot_be_read_is_none(instance: LocalFiles, text: str) -> None:
    (instance.folder / "state.json").write_text(text)
    assert instance.read() is None


def test_removing_ends_the_whole_group(
    instance: LocalFiles, sleeper: subprocess.Popen[bytes]
) -> None:
    instance.write(LocalRecord(4510, GONE, identity_of(sleeper)))
    instance.remove()
    assert sleeper.wait(timeout=10) is not None
    assert not instance.folder.exists()


def test_a_process_that_has_a_dead_ones_id_is_never_ended(
    instance: LocalFiles, sleeper: subprocess.Popen[bytes]
) -> None:
    reused = replace(identity_of(sleeper), started="long ago")
    instance.write(LocalRecord(4510, GONE, reused))
    instance.remove()
    assert sleeper.poll() is None
    assert not instance.folder.exists()


def test_the_files_are_moved_aside_and_another_program_removes_them(
    instance: LocalFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[list[str]] = []
    with monkeypatch.context() as patched:
        patched.setattr(
            "roundsman_console.aws.local_record.subprocess.run",
            lambda command, **_: started.append(command),
        )
        (instance.temporary / "sandbox").touch()
        instance.remove()
    removed = instance.folder.parent.parent / "removed"
    assert not instance.folder.exists()
    assert [path.name for path in removed.glob("*/tmp/*")] == ["sandbox"]  # nobody waited for it
    assert started[0][-1] == str(removed)
    instance.remove()  # and what a remover that was killed has left goes with the next one
    assert wait_until(lambda: not list(removed.iterdir()), 60)


def test_an_emulator_that_saves_nothing_is_given_no_time_to_stop(
    instance: LocalFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[float] = []
    monkeypatch.setattr(state, "end_group", lambda _, patience: given.append(patience))
    instance.write(LocalRecord(4510, GONE, GONE))
    instance.remove()
    assert given == [0.0]


def sandbox(instance: LocalFiles, function: str) -> subprocess.Popen[bytes]:
    folder = instance.temporary / f"ministack-lambda-{function}-ab_12xyz"
    folder.mkdir()
    (folder / "_worker.py").write_text(SLEEP)
    return subprocess.Popen([sys.executable, str(folder / "_worker.py")])


def test_sandboxes_are_found_by_their_functions_whole_name(instance: LocalFiles) -> None:
    with sandbox(instance, "app-Pay") as pay, sandbox(instance, "app-Pay-More") as more:
        assert wait_until(lambda: instance.sandboxes("app-Pay") == [pay.pid], 10)
        assert wait_until(lambda: instance.sandboxes("app-Pay-More") == [more.pid], 10)
        assert instance.sandboxes("app") == []
        instance.remove()


def test_sandboxes_that_outlived_their_emulator_are_ended(instance: LocalFiles) -> None:
    with sandbox(instance, "app-Pay") as orphan:
        wait_until(lambda: bool(instance.sandboxes("app-Pay")), 10)
        instance.write(LocalRecord(4510, GONE, GONE))
        instance.remove()
        assert orphan.wait(timeout=10) < 0


def test_a_program_that_only_looks_at_the_files_is_left_alone(instance: LocalFiles) -> None:
    log = instance.temporary / "ministack-lambda-f-ab_12xyz" / "_worker.py"
    watch = [sys.executable, "-c", SLEEP, "--follow", str(log.parent / "app.py"), "end"]
    with subprocess.Popen(watch) as reader:
        instance.remove()
        assert reader.poll() is None
        reader.kill()


def test_what_a_dead_one_left_is_cleared_away_by_the_next(tmp_path: Path) -> None:
    instances = Instances(tmp_path)
    instance, record = instances.claim(4510)
    instance.write(replace(record, owner=GONE, emulator=GONE, deployed=True))
    (instance.temporary / "old").touch()
    again, fresh = instances.claim(4510)
    assert list(again.temporary.iterdir()) == []
    assert fresh.owner == identify(os.getpid())


def test_one_whose_bringing_up_was_killed_is_cleared_away_with_its_emulator(
    tmp_path: Path, sleeper: subprocess.Popen[bytes]
) -> None:
    instances = Instances(tmp_path)
    instance, record = instances.claim(4510)
    instance.write(replace(record, owner=GONE, emulator=identity_of(sleeper)))
    instances.claim(4510)
    assert sleeper.wait(timeout=10) is not None


def test_one_that_is_being_brought_up_is_not_disturbed(tmp_path: Path) -> None:
    instances = Instances(tmp_path)
    instances.claim(4510)
    with pytest.raises(ConsoleError, match="is already starting a local AWS on port 4510"):
        instances.claim(4510)


def test_the_instances_of_a_project_are_listed_by_port(tmp_path: Path) -> None:
    instances = Instances(tmp_path)
    assert list(instances) == []
    for port in (4511, 4510):
        instances.claim(port)
    assert [instance.port for instance in instances] == [4510, 4511]


@pytest.mark.parametrize(
    ("listed", "started"),
    [
        ("Ss   Sat Nov 21 11:06:29 2026\n", "Sat Nov 21 11:06:29 2026"),
        ("Z    Sat Nov 21 11:06:29 2026\n", None),
        ("", None),
    ],
)
def test_a_process_is_recognised_with_ps_where_there_is_no_proc(
    listed: str, started: str | None
) -> None:
    assert started_as_ps_says(listed) == started


def test_sandboxes_are_found_by_ps_where_there_is_no_proc(instance: LocalFiles) -> None:
    script = instance.temporary / "ministack-lambda-app-Pay-ab_12xyz" / "_worker.py"
    listed = f"    1 /sbin/init\n  812 /usr/bin/python3 {script}\n  813 sh\n"
    found = {pid: instance.sandbox_of(words) for pid, words in command_lines_as_ps_says(listed)}
    assert found == {1: None, 812: "app-Pay", 813: None}


def test_the_cache_is_kept_out_of_git(tmp_path: Path) -> None:
    Instances(tmp_path).claim(4510)
    assert (tmp_path / ".cache" / ".gitignore").read_text() == "*\n"
