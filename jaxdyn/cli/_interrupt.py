"""Long calls that Ctrl-C can end."""

import threading
from collections.abc import Callable
from typing import Any

_PAUSE = 0.1  # seconds between looks at the thread


def interruptible(work: Callable[[], Any]) -> Any:
    """The result of `work`, in a thread: compiled code by itself hears no Ctrl-C."""
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
