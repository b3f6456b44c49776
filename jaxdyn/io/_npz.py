"""Arrays from NPZ files, none of which is trusted: sizes are checked before reading."""

import math
import os
import zipfile
from io import BytesIO

import numpy as np

from jaxdyn.io._files import content

_ROOM = 2**28  # bytes that the arrays of every file may fill
_SHRINK = 100  # how many times its own size those of a larger file may
_WAYS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # what NumPy writes
_HEADER = 2**14  # bytes, more than NumPy reads of one
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def read_npz(path: str | os.PathLike[str], what: str) -> dict[str, np.ndarray]:
    """The arrays of an NPZ file by name; messages call the file `what`.

    They may fill 256 MB, or 100 times the size of the file if that is more.

    Raises:
        ValueError: the file cannot be read, is no NPZ file or is damaged, an array
            is not of numbers or text, or the arrays would be too large.
    """
    data = content(path, what)
    try:
        archive = zipfile.ZipFile(BytesIO(data))
    except Exception as error:  # zipfile has several for bytes that are wrong
        raise ValueError(f"{what} is not an NPZ file: {error}.") from error
    with archive:
        entries = archive.infolist()
        size, most = sum(x.file_size for x in entries), max(_ROOM, _SHRINK * len(data))
        if size > most:
            raise ValueError(
                f"{what} has {len(data)} bytes, and its arrays would fill {size}, "
                f"expected {most} at most: look at how it was written."
            )
        names = [entry.filename.removesuffix(".npy") for entry in entries]
        pairs = zip(names, entries, strict=True)
        return {name: _array(archive, x, f"{what}: {name!r}") for name, x in pairs}


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, what: str) -> np.ndarray:
    try:
        if entry.compress_type not in _WAYS:
            raise ValueError(f"compression {entry.compress_type} is not NumPy's")
        with archive.open(entry) as file:
            start = BytesIO(file.read(_HEADER))
        _check_header(start, entry.file_size)
        with archive.open(entry) as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    except Exception as error:  # of zlib, zipfile and the parser of the header
        raise ValueError(
            f"{what} is damaged, or not an array of numbers or text: {error}."
        ) from error


def _check_header(file: BytesIO, size: int) -> None:
    """Raise a `ValueError` unless the array that the header describes has this size."""
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"its format is {version}, expected (1, 0) or (2, 0)")
    shape, _, dtype = _HEADERS[version](file)
    if dtype.kind not in "biufU":
        raise ValueError(f"its type is {dtype}")
    needed = file.tell() + math.prod(shape) * dtype.itemsize
    if min(shape, default=0) < 0 or needed != size:
        raise ValueError(f"its shape {shape} wants {needed} bytes, and it has {size}")
