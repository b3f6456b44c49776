import _thread
import signal
import threading

import pytest

from jaxdyn.cli._interrupt import Ended, ended_by_signals, interruptible, is_working


def test_results_and_errors_come_back():
    assert interruptible(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 / 0)
    assert not is_working()


@pytest.fixture
def ctrl_c():
    """Ctrl-C as in a terminal: workers of pytest-xdist ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_is_heard_while_the_work_goes_on(ctrl_c):
    started, may_end = threading.Event(), threading.Event()

    def work():
        started.set()
        may_end.wait(timeout=60)

    def interrupt():
        started.wait()
        _thread.interrupt_main()

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        interruptible(work)
    assert is_working()
    may_end.set()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_signals_end_the_work_like_ctrl_c(name):
    number = getattr(signal, name)
    before = signal.getsignal(number)
    with pytest.raises(Ended) as raised, ended_by_signals():
        interruptible(lambda: signal.raise_signal(number))
    assert raised.value.number == number
    assert signal.getsignal(number) is before


def test_what_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ended_by_signals():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
