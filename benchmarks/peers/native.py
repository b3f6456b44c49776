"""Libraries in C and C++: a small loop, compiled on this machine, called by ctypes."""

import ctypes
import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
BUILD = FOLDER.parent.parent / "build" / "benchmarks"


def build(source: str, flags: list[str], limit: float = 900) -> ctypes.CDLL:
    """Compile a source of this folder, unless that was done before; load it.

    Raises:
        OSError: there is no compiler, or it fails.
    """
    text = (FOLDER / source).read_text() + " ".join(flags)
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    library = BUILD / f"{Path(source).stem}_{key}.so"
    if not library.exists():
        name = "gcc" if source.endswith(".c") else "g++"
        compiler = shutil.which(name)
        if compiler is None:
            raise OSError(f"no {name} to compile the loop with")
        BUILD.mkdir(parents=True, exist_ok=True)
        part = library.with_suffix(f".{os.getpid()}")
        command = [compiler, str(FOLDER / source), "-o", str(part)]
        command += ["-O3", "-march=native", "-DNDEBUG", "-fPIC", "-shared", "-pthread"]
        done = subprocess.run(
            command + ["-w"] + flags, capture_output=True, text=True, timeout=limit
        )
        if done.returncode:
            raise OSError(f"{source} does not compile: {done.stderr[-300:]}")
        part.replace(library)
    return ctypes.CDLL(str(library))


def pointer(array: np.ndarray) -> Any:
    """The address of a contiguous array, for a C function."""
    assert array.flags.c_contiguous
    return array.ctypes.data_as(ctypes.c_void_p)
