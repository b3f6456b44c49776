"""What stands in files: bytes, and the numbers in texts."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np


def content(path: str | os.PathLike[str], what: str) -> bytes:
    """The bytes of a file, which messages call `what`.

    Raises:
        ValueError: it cannot be read: it is not there, is a folder, is forbidden.
    """
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        reason = getattr(error, "strerror", None) or error
        raise ValueError(
            f"{what}: cannot be read: {reason}: expected the path of a file."
        ) from None


def numbers(words: Sequence[str]) -> np.ndarray:
    """The words of a file as numbers in double precision.

    Python's `float` also takes 1_000 and the digits of every script: here they are
    words, as in other programs that read such files.

    Raises:
        ValueError: a word is not a number.
    """
    text = "".join(words)
    if "_" in text or not text.isascii():
        raise ValueError("expected numbers in ASCII digits, without underscores.")
    return np.array([float(word) for word in words], float)
