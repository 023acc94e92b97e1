"""Signals: each that ends a command is like Ctrl-C, and none of them ends its cleanup."""

import signal
from collections.abc import Iterator

import pytest

from roundsman_console.base.process import stopped_by_signals, uninterrupted

HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in HANDLED}
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup, under which the tests may run, ignores it
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", HANDLED)
def test_each_signal_is_like_ctrl_c_and_says_so(
    number: signal.Signals, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), stopped_by_signals():
        signal.raise_signal(number)
    assert capsys.readouterr().err == "Stopped; nothing is left running.\n"
    assert signal.getsignal(number) == before


def test_a_hangup_that_nohup_ignores_stays_ignored() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with stopped_by_signals():
        signal.raise_signal(signal.SIGHUP)
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def test_an_interrupt_that_the_shell_ignores_in_the_background_is_heeded() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with pytest.raises(KeyboardInterrupt), stopped_by_signals():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_does_not_end_the_cleanup(number: signal.Signals) -> None:
    done = False
    with stopped_by_signals(), uninterrupted():
        signal.raise_signal(number)
        done = True
    assert done
