"""Hidden files and folders that hold results until these are complete."""

import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows has other locks: there nothing is swept
    fcntl = None

_LOCK = ".lock"
_YOUNG = 60.0  # seconds; a process may be about to lock its folder


@contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """A path to write to, which becomes `target` when all went well."""
    draft = target.with_name(f".{target.stem}.{secrets.token_hex(4)}{target.suffix}")
    try:
        yield draft
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def draft(target: Path) -> Iterator[tuple[Path, Path]]:
    """A new folder beside `target`, and a name for what it replaces.

    The new folder is locked as long as this process lives. It must be renamed or is
    removed.
    """
    name = f".{target.name}.{secrets.token_hex(4)}"
    new, old = target.with_name(f"{name}.new"), target.with_name(f"{name}.old")
    try:
        new.mkdir()
        with open(new / _LOCK, "w") as lock:
            _is_locked_now(lock)
            yield new, old
        (target / _LOCK).unlink(missing_ok=True)
    finally:
        shutil.rmtree(new, ignore_errors=True)
        _settle(old, target)


def sweep(target: Path) -> None:
    """Remove what killed processes have left beside `target`."""
    pattern = rf"\.{re.escape(target.name)}\.[0-9a-f]{{8}}\.(new|old)"
    found = [x for x in target.parent.iterdir() if re.fullmatch(pattern, x.name)]
    for folder in sorted(found):  # .new before .old
        new = folder.with_suffix(".new")
        if new.exists() and _is_abandoned(new / _LOCK):
            shutil.rmtree(new, ignore_errors=True)
        if not new.exists():
            _settle(folder.with_suffix(".old"), target)


def _settle(old: Path, target: Path) -> None:
    """Earlier results go back where there are no new ones, and away where there are."""
    if old.exists() and not target.exists():
        old.rename(target)
    elif old.exists():
        shutil.rmtree(old, ignore_errors=True)


def _is_abandoned(lock: Path) -> bool:
    """Whether the process that has locked a folder is dead."""
    with suppress(OSError), open(lock, "r+") as file:
        return time.time() - lock.stat().st_mtime > _YOUNG and _is_locked_now(file)
    return False


def _is_locked_now(file: IO) -> bool:
    if fcntl is None:
        return False
    with suppress(OSError):  # another process has it, or the disk knows no locks
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False
