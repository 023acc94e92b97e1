"""Starts stand-ins for the services of an application's agents, which end with the local AWS."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from roundsman_console.aws.local_record import LocalFiles, LocalRecord
from roundsman_console.base.errors import ConsoleError
from roundsman_console.base.process import (
    identify,
    last_error,
    plain_environment,
    wait_until,
)
from roundsman_dev.local.emulator import check_port, free_port
from roundsman_testing.remote_services.server import DEFAULT_PORT, HOST

START_WITHIN = 60.0  # seconds; it needs one, and much longer while builds use the processor

# `roundsman services` of this very installation. The instance's folder is an argument only so that
# the process can be identified.
LAUNCH = """
import sys

sys.argv.pop()
from roundsman_console.main import app

app()
"""


def stand_ins_url(record: LocalRecord | None = None) -> str:
    """Return the base URL of the stand-ins that a record says run, or of those to be started.

    The latter has the usual port of `roundsman services`, or a free one if that port is in use.
    """
    if record is not None and _run(record):
        return record.stand_ins_url
    try:
        check_port(DEFAULT_PORT)
    except ConsoleError:
        return f"http://{HOST}:{free_port()}"
    return f"http://{HOST}:{DEFAULT_PORT}"


def with_stand_ins(
    project: Path, instance: LocalFiles, record: LocalRecord, url: str
) -> LocalRecord:
    """Return the record, with stand-ins at this URL if the address of a service is this URL.

    They are started if they do not run, and the record is then stored. None are started if an
    address of all services was asked for. Raises ConsoleError if they do not start.
    """
    if record.services_url or url not in record.services.values() or _run(record):
        return record
    log = instance.logs / "services.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    port = url.rpartition(":")[2]
    with log.open("w") as out:
        child = subprocess.Popen(
            [
                *(sys.executable, "-c", LAUNCH, "services", "--port", port, "--json"),
                str(instance.folder),
            ],
            env=_environment(),
            cwd=project,  # its agents are those that the services are for
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    identity = identify(child.pid)
    record = replace(record, stand_ins=identity, stand_ins_url=url)
    instance.write(record)  # before the wait, so that they can be ended in every case
    wait_until(lambda: child.poll() is not None or _listen(log, url), START_WITHIN)
    if identity is None or child.poll() is not None or not _listen(log, url):
        raise ConsoleError(
            f"The stand-ins of the services did not start: {last_error(log)} (full log: {log})"
        )
    return record


def _run(record: LocalRecord) -> bool:
    return record.stand_ins is not None and record.stand_ins.is_alive()


def _listen(log: Path, url: str) -> bool:
    """Whether they have said that they listen at this URL."""
    with suppress(OSError, ValueError):
        return bool(json.loads(log.read_text()) == {"url": url})
    return False


def _environment() -> Mapping[str, str]:
    where = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    return {**plain_environment(), **where}
