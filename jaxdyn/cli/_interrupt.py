"""Long calls that Ctrl-C can end, and signals that end a process like it."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

_PAUSE = 0.1  # seconds between looks at the thread
_SIGNALS = [getattr(signal, x) for x in ("SIGTERM", "SIGHUP") if hasattr(signal, x)]


class Ended(BaseException):
    """The process was asked to end, by the signal `number`."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Within it SIGTERM and SIGHUP raise `Ended`, as Ctrl-C raises KeyboardInterrupt.

    In the main thread only. What is ignored, as SIGHUP under nohup, stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {x: signal.getsignal(x) for x in _SIGNALS}
    before = {x: y for x, y in before.items() if y is not signal.SIG_IGN}

    def end(number: int, frame: FrameType | None) -> None:
        for x in before:
            signal.signal(x, signal.SIG_IGN)  # nothing disturbs the way out
        raise Ended(number)

    for x in before:
        signal.signal(x, end)
    try:
        yield
    finally:
        for x, handler in before.items():
            signal.signal(x, handler)


def interruptible(work: Callable[[], Any]) -> Any:
    """The result of `work`, in a thread: compiled code by itself hears no signal."""
    outcome: dict[str, Any] = {}

    def run() -> None:
        try:
            outcome["result"] = work()
        except BaseException as error:  # raised again below, where it is awaited
            outcome["error"] = error

    thread = threading.Thread(target=run, daemon=True, name="jaxdyn work")
    thread.start()
    while thread.is_alive():
        thread.join(_PAUSE)
    if "error" in outcome:
        raise outcome["error"]
    return outcome["result"]


def is_working() -> bool:
    """Whether a call that was interrupted still runs."""
    return any(thread.name == "jaxdyn work" for thread in threading.enumerate())
