"""Compiled programs that are kept for the next command."""

import os
import sys
from importlib.metadata import version
from pathlib import Path

import jax

SIZE = 2**30  # bytes; JAX removes what was not used for longest


def cache_folder() -> Path | None:
    """Where programs are kept: JAXDYN_CACHE, or in the user's cache folder.

    None if JAXDYN_CACHE is "off", or if JAX was told a folder of its own.
    """
    chosen = os.environ.get("JAXDYN_CACHE", "")
    if chosen == "off" or jax.config.jax_compilation_cache_dir:  # type: ignore
        return None
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        home = os.environ.get("LOCALAPPDATA", "~/AppData/Local")
    else:
        mac = "~/Library/Caches" if sys.platform == "darwin" else "~/.cache"
        home = os.environ.get("XDG_CACHE_HOME") or mac
    return Path(home).expanduser() / "jaxdyn"


def keep_programs() -> None:
    """Let JAX load programs from the folder that an earlier command has compiled."""
    folder = cache_folder()
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # a home that cannot be written to: compile as ever
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_compilation_cache_max_size", SIZE)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)


def start_quietly() -> None:
    """Start the command again with a log level that JAX reads only when it is loaded.

    jaxlib before 0.11 logs two long lines for each program that it loads from a cache,
    on processors that have features without instructions of their own.
    """
    old = tuple(map(int, version("jaxlib").split(".")[:2])) < (0, 11)
    if os.name == "posix" and old and os.environ.get("TF_CPP_MIN_LOG_LEVEL", "1") < "3":
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
        os.execv(sys.executable, sys.orig_argv)
