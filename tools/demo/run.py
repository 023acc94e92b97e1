"""Runs the demo: starts the local AWS, sends the orders, waits for their ends, and checks them."""

import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import boto3
from rich.console import Console

from roundsman_console.base.errors import ConsoleError
from roundsman_console.base.process import on_stderr
from roundsman_console.base.project_folder import cache_folder, find_project
from roundsman_dev.local import LocalAws
from roundsman_testing.remote_services import RemoteServices
from tools.demo.observe import Bench
from tools.demo.progress import Snapshot, all_settled, may_follow, still_open
from tools.demo.scenario import CASES, SentOrder, fault_rules, read_events
from tools.demo.served_console import explore, served_console
from tools.demo.summary import Summary, summarise
from tools.demo.watch import RunWatch

LOOK_EVERY = 0.25  # seconds
QUIET_FOR = 1.0  # seconds that all queues must stay empty before the run is over

# A short interval, so that the demo waits seconds and not a minute for the supervisor.
PARAMETERS = {"SupervisorIntervalSeconds": "5"}


def run_demo(
    console: Console,
    timeout: float,
    *,
    enforce_iam: bool = False,
    ui: bool = False,
    ended: Callable[[Summary], None] = lambda _: None,
) -> Summary:
    """Run the whole demo. In every case, everything that it started is stopped.

    `timeout` limits the wait for the orders, in seconds. With `enforce_iam`, each function has only
    the permissions of its role. With `ui`, the console in the browser shows the orders, and all
    stays up until Ctrl-C. `ended` is called with the summary before that. Raises ConsoleError if
    the local AWS cannot be started or the orders cannot be read.
    """
    project = find_project(Path.cwd()).resolve()
    sent = _events(project / "events")
    with RemoteServices(port=0) as services:
        local = LocalAws.up(
            port=0,
            services=services.url,
            parameters=PARAMETERS,
            project=project,
            enforce_iam=enforce_iam,
            progress=on_stderr,
        )
        with local, pointed_at(local.environment), ExitStack() as shown:
            page = shown.enter_context(served_console(console, local.stack)) if ui else None
            bench = Bench(local.outputs, services)
            services.application.set_faults({"rules": fault_rules(CASES)})
            summary = send_and_watch(bench, sent, RunWatch(console, sent), timeout)
            if not summary.ok:
                _keep_log(project, local, console)
            ended(summary)
            if page is not None:
                explore(console, page)
    return summary


def _events(folder: Path) -> list[SentOrder]:
    try:
        return read_events(folder, CASES)
    except (OSError, UnicodeDecodeError) as error:
        raise ConsoleError(f"The orders of the demo cannot be read: {error}.") from error


def send_and_watch(
    bench: Bench, sent: Sequence[SentOrder], watch: RunWatch, timeout: float
) -> Summary:
    """Send the orders, then those that repeat or cancel others, and wait until all are settled.

    The run is over when the queues have been empty for `QUIET_FOR` seconds, or after `timeout`
    seconds.
    """
    started = time.monotonic()
    quiet_since: float | None = None
    for one in sent:
        if not one.case.follows:
            bench.send(one.body)
    followers_sent = False
    while True:
        seen = _look(bench, sent, watch, followers_sent=followers_sent)
        elapsed = time.monotonic() - started
        if not followers_sent and may_follow(sent, seen):
            bench.remember_rows()
            for one in sent:
                if one.case.follows:
                    bench.send(one.body)
            followers_sent = True
        elif all_settled(sent, seen) and _is_quiet(bench):
            quiet_since = quiet_since if quiet_since is not None else elapsed
            if elapsed - quiet_since >= QUIET_FOR:
                return summarise(sent, bench.facts(), seconds=elapsed)
        else:
            quiet_since = None
        if elapsed >= timeout:
            late = [f"after {elapsed:.0f} s {sentence}" for sentence in still_open(sent, seen)]
            return summarise(sent, bench.facts(), seconds=elapsed, still_open=late)
        time.sleep(LOOK_EVERY)


def _look(
    bench: Bench, sent: Sequence[SentOrder], watch: RunWatch, *, followers_sent: bool
) -> Snapshot:
    # Counted before the rejections are read. A rejected message is deleted from the SubmissionQueue
    # only after it was sent to the RejectedQueue, so one of the two reads finds it.
    waiting = bench.submissions_waiting()
    for rejection in bench.new_rejections():
        events = [one.case.event for one in sent if one.body == rejection.body]
        watch.rejected(rejection, events[0] if events else "a message that this demo did not send")
    for alert in bench.new_alerts():
        watch.alert(alert)
    seen = Snapshot(
        tasks=bench.tasks(),
        rejections=bench.rejections,
        waiting=waiting,
        hanging=bench.hanging(),
        followers_sent=followers_sent,
    )
    watch.show(seen)
    return seen


def _is_quiet(bench: Bench) -> bool:
    """Whether no call hangs and all queues are empty.

    Dead-letter queues are ignored, because dead letters stay in them.
    """
    if bench.hanging():
        return False
    return not any(depth.messages for depth in bench.queues() if not depth.dead_letters)


def _keep_log(project: Path, local: LocalAws, console: Console) -> None:
    """Copy the emulator's log, which is removed with the emulator."""
    kept = cache_folder(project) / "logs" / "demo-emulator.log"
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(local.log, kept)
        sentence = f"The logs of the functions are in {kept}"
    except OSError as error:
        sentence = f"The logs of the functions cannot be stored in {kept}: {error.strerror}"
    console.print(sentence, markup=False, soft_wrap=True)


@contextmanager
def pointed_at(variables: Mapping[str, str]) -> Iterator[None]:
    """Replace all `AWS_` variables inside the context, so that new clients use the emulator.

    boto3's default session, which keeps credentials, is a new one inside. Both are restored
    afterwards: they may be those of the user's own AWS account.
    """
    before, session = dict(os.environ), boto3.DEFAULT_SESSION
    for name in before:
        if name.startswith("AWS_"):
            del os.environ[name]
    os.environ.update(variables)
    boto3.DEFAULT_SESSION = None
    try:
        yield
    finally:
        boto3.DEFAULT_SESSION = session
        os.environ.clear()
        os.environ.update(before)
