"""Tables of numbers in CSV files, with the names of the columns in the first line."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxdyn.io._files import content, numbers


class Place(NamedTuple):
    """A table in words: its name, and where its rows stand, if they stand in lines."""

    name: str
    lines: Sequence[int] | None = None

    def row(self, k: int) -> str:
        """Where the k-th row stands."""
        if self.lines is None:
            return f"{self.name}, row {k}"
        return f"{self.name}, line {self.lines[k]}"


def read_csv(file: Path, place: Place) -> tuple[dict[str, np.ndarray], Place]:
    """The columns of a CSV file by name, as numbers or, where they are none, as text.

    Commas, semicolons or tabs part them: that which is most frequent in the first line.
    Empty lines and those that start with # are skipped. If the first other line is one
    of numbers, the last one with # before it has the names, as `numpy.savetxt` writes.

    Raises:
        ValueError: it is empty or not text, a name is there twice, or a line has too
            few or too many cells.
    """
    try:
        lines = content(file, place.name).decode("utf-8-sig").splitlines()
        return _table(lines, place)
    except UnicodeDecodeError:
        raise ValueError(f"{place.name} is not text in UTF-8.") from None
    except csv.Error as error:  # such as a cell beyond its limit
        raise ValueError(f"{place.name} is not a table: {error}.") from None


def _table(lines: list[str], place: Place) -> tuple[dict[str, np.ndarray], Place]:
    skipped = [not line.strip() or line.lstrip().startswith("#") for line in lines]
    start = skipped.index(False) if False in skipped else len(lines)
    marked = [line.lstrip("# ") for line in lines[:start] if line.strip(" #")]
    if marked and all(map(_is_numbers, lines[start : start + 1])):
        head = marked[-1]
    elif start < len(lines):
        head, start = lines[start], start + 1
    else:
        raise ValueError(f"{place.name} is empty, expected names in its first line.")
    mark = _mark(head)
    names = _cells(head, mark)
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{place.name}: the column {name!r} is there twice.")
    rows = {
        k: _cells(line, mark)
        for k, line in enumerate(lines[start:], start + 1)
        if not skipped[k - 1]
    }
    for k, row in rows.items():
        if len(row) != len(names):
            raise ValueError(
                f"{place.name}, line {k} has {len(row)} cells, expected {len(names)}, "
                "one for each name in the first line."
            )
    columns = zip(*rows.values(), strict=True) if rows else [()] * len(names)
    table = {name: _column(x) for name, x in zip(names, columns, strict=True)}
    return table, Place(place.name, list(rows))


def write_csv(file: Path, names: Sequence[str], rows: Any) -> None:
    """Writes rows of numbers and text below the names, with every digit."""
    with open(file, "w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(names)
        writer.writerows(rows)


def floats(place: Place, name: str, values: Any) -> np.ndarray:
    """The values as a floating-point array, float32 as it is.

    Raises:
        ValueError: one of them is not a number.
    """
    array = np.asarray(values)
    if array.dtype.kind == "U" and array.ndim == 1:
        for k, text in enumerate(array.tolist()):
            if _column([text]).dtype.kind == "U":
                raise ValueError(
                    f"{place.row(k)}: {name} is {text!r}, expected a number."
                )
    if array.dtype.kind not in "iuf":
        raise ValueError(
            f"{place.name}: {name} is of type {array.dtype}, expected numbers."
        )
    return array.astype(float) if array.dtype.kind in "iu" else array


def _mark(line: str) -> str:
    return max(",;\t", key=line.count)


def _is_numbers(line: str) -> bool:
    return _column(_cells(line, _mark(line))).dtype.kind == "f"


def _cells(line: str, mark: str) -> list[str]:
    return [x.strip() for x in next(csv.reader([line], delimiter=mark))]


def _column(cells: Sequence[str]) -> np.ndarray:
    try:
        return numbers(cells)
    except ValueError:
        return np.array(cells)
