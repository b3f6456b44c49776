import _thread
import threading

import pytest

from jaxdyn.cli._interrupt import interruptible, is_working


def test_results_and_errors_come_back():
    assert interruptible(lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        interruptible(lambda: 1 / 0)
    assert not is_working()


def test_ctrl_c_is_heard_while_the_work_goes_on():
    started, may_end = threading.Event(), threading.Event()

    def work():
        started.set()
        may_end.wait()

    def interrupt():
        started.wait()
        _thread.interrupt_main()

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        interruptible(work)
    assert is_working()
    may_end.set()
