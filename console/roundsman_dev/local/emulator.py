"""Starts the emulator in its own process group, on loopback only, and checks its health."""

import http.client
import json
import os
import secrets
import socket
import ssl
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from roundsman_console.aws.local_record import LocalFiles, LocalRecord
from roundsman_console.base.errors import ConsoleError
from roundsman_console.base.process import ProcessIdentity, identify, last_error, wait_until
from roundsman_dev.local.environment import EmulatorEnvironment

REGION = "us-east-1"
NEVER_GIVEN_AWAY = range(15_000, 32_768)
"""Ports below those that Linux (from 32768) and macOS (from 49152) give to connections and to
programs that ask for any port."""

START_WITHIN = 60.0  # seconds; it needs 1 s to 2 s, and much longer while builds use the processor

# The functions run on the Python of their own environment, not on the emulator's.
# The instance's folder is an argument only so that the process can be identified.
LAUNCH = """
import os, queue, shutil, sys, tempfile, threading

folder, sys.executable = sys.argv.pop(), sys.argv.pop()
import ministack.services.cloudformation.changesets
import ministack.services.cloudformation.handlers
import ministack.services.cloudformation.engine as engine
import ministack.services.cloudformation.provisioners as provisioners
from ministack.core.lambda_runtime import Worker
from ministack.services.cloudformation import _stacks

# The emulator transforms SAM templates, but not those of nested stacks, as AWS does. The modules
# that keep a reference to the function were imported first, so that they keep the original, which
# is called for the root template before it is transformed.
parse = engine._parse_template

# In conditions it knows no Fn::Split; there, Fn::Select takes a text apart at its commas itself.
def without_split(value):
    if isinstance(value, dict):
        if value.get("Fn::Split", [None])[0] == ",":
            return value["Fn::Split"][1]
        return {name: without_split(inner) for name, inner in value.items()}
    return [without_split(inner) for inner in value] if isinstance(value, list) else value

def parse_nested(body, *a, **k):
    template = parse(body, *a, **k)
    if "Conditions" in template:
        template["Conditions"] = without_split(template["Conditions"])
    return engine._apply_transforms(template)

engine._parse_template = parse_nested

# An update of a nested stack forgets the attributes of its resources that do not change.
update = provisioners._update_resource

def update_with_attributes(kind, physical, old, new, stack, logical=None, attributes=None):
    if attributes is None:
        before = _stacks.get(stack, {}).get("_resources", {}).get(logical, {})
        attributes = before.get("Attributes")
    return update(kind, physical, old, new, stack, logical, attributes)

provisioners._update_resource = update_with_attributes

# To remove the files of a sandbox takes seconds if they have reached the disk, and an update of a
# function waits for it. So they are moved aside, and one thread removes them.
aside, waiting = tempfile.mkdtemp(prefix="removed-"), queue.SimpleQueue()

def discard(worker):
    if worker._tmpdir and os.path.exists(worker._tmpdir):
        moved = os.path.join(aside, os.path.basename(worker._tmpdir))
        os.rename(worker._tmpdir, moved)
        waiting.put(moved)

def remove():
    while True:
        shutil.rmtree(waiting.get(), ignore_errors=True)

Worker._discard_tmpdir = discard
threading.Thread(target=remove, daemon=True).start()
from ministack.app import main

main()
"""


def free_port() -> int:
    """Return a loopback port that is free now, and that no system gives away by itself.

    A port that the system chooses could be given to another program before the emulator listens on
    it: between the two, the emulator may have to be installed.
    """
    while True:
        port = secrets.choice(NEVER_GIVEN_AWAY)
        with suppress(ConsoleError):
            check_port(port)
            return port


def check_port(port: int) -> None:
    """Raise ConsoleError if the emulator cannot listen on this loopback port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise ConsoleError(
                f"Port {port} cannot be used: {error.strerror}. Choose another with --port."
            ) from error


def start(
    instance: LocalFiles,
    record: LocalRecord,
    environment: EmulatorEnvironment,
    extra: Mapping[str, str],
) -> tuple[LocalRecord, ProcessIdentity]:
    """Start the emulator, wait until it is healthy, and return its record and its process.

    The returned record contains the process identity. `extra` is added to the environment
    variables of the emulator. Raises ConsoleError with the last error in the
    log if the emulator ends or does not answer in time.
    """
    mark = secrets.token_hex(8)
    log = instance.logs / "emulator.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as out:  # append: a restart keeps the earlier log
        child = subprocess.Popen(
            [
                *(str(environment.emulator_python), "-I", "-c", LAUNCH),
                *(str(environment.functions_python), str(instance.folder)),
            ],
            env=_environment(instance, mark, extra),
            cwd=instance.folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    identity = identify(child.pid)
    record = replace(record, emulator=identity, mark=mark, region=REGION)
    instance.write(record)  # before the wait, so that it can be ended in every case
    wait_until(lambda: child.poll() is not None or is_healthy(record), START_WITHIN, every=0.1)
    if identity is None or not is_healthy(record):
        raise ConsoleError(f"The emulator did not start: {last_error(log)} (full log: {log})")
    return record, identity


def _environment(instance: LocalFiles, mark: str, extra: Mapping[str, str]) -> dict[str, str]:
    """Return all environment variables of the emulator; none of them is of a real AWS account."""
    home = instance.temporary / "home"
    home.mkdir(exist_ok=True)
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "TZ": "UTC",  # as on AWS
        "PYTHONUNBUFFERED": "1",
        "TMPDIR": str(instance.temporary),
        "STATE_DIR": str(instance.temporary / "state"),
        "S3_DATA_DIR": str(instance.temporary / "s3"),
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(instance.port),
        "MINISTACK_HOST": "127.0.0.1",  # in queue URLs; a name could mean an IPv6 address
        "MINISTACK_REGION": REGION,
        "MINISTACK_EDITION": mark,
        # These two services would listen on all addresses. The emulator must not reach the
        # containers of this machine either.
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "DOCKER_HOST": f"unix://{instance.temporary}/none.sock",
        **extra,
    }


def is_healthy(record: LocalRecord) -> bool:
    """Whether the emulator of this record, and no other program, answers on its port."""
    connection = http.client.HTTPConnection("127.0.0.1", record.port, timeout=5)
    try:
        if record.certificate:
            trusted = ssl.create_default_context(cafile=record.certificate)
            connection = http.client.HTTPSConnection(
                "127.0.0.1", record.port, timeout=5, context=trusted
            )
        connection.request("GET", "/_ministack/health")
        answer = json.loads(connection.getresponse().read())
    except (OSError, ValueError, http.client.HTTPException):
        return False  # an OSError also if the emulator has not created its certificate yet
    finally:
        connection.close()
    return isinstance(answer, dict) and answer.get("edition") == record.mark and bool(record.mark)
