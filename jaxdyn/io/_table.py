"""Tables of numbers in CSV files, with the names of the columns in the first line."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np


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
    Empty lines and those that start with # are skipped; before the names # is allowed.

    Raises:
        ValueError: it is empty or not text, a name is there twice, or a line has too
            few or too many cells.
    """
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{place.name} is not text in UTF-8.") from None
    start = next((k for k, line in enumerate(lines) if line.strip(" #")), None)
    if start is None:
        raise ValueError(f"{place.name} is empty, expected names in its first line.")
    head = lines[start].lstrip("# ")
    mark = max(",;\t", key=head.count)
    names = _cells(head, mark)
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{place.name}: the column {name!r} is there twice.")
    rows = {
        k: _cells(line, mark)
        for k, line in enumerate(lines[start + 1 :], start + 2)
        if line.strip() and not line.lstrip().startswith("#")
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
        bad = next(k for k, x in enumerate(array) if _column([x]).dtype.kind == "U")
        text = str(array[bad])
        raise ValueError(f"{place.row(bad)}: {name} is {text!r}, expected a number.")
    if array.dtype.kind not in "iuf":
        raise ValueError(
            f"{place.name}: {name} is of type {array.dtype}, expected numbers."
        )
    return array.astype(float) if array.dtype.kind in "iu" else array


def _cells(line: str, mark: str) -> list[str]:
    return [x.strip() for x in next(csv.reader([line], delimiter=mark))]


def _column(cells: Sequence[str]) -> np.ndarray:
    try:
        return np.array(cells, float)
    except ValueError:
        return np.array(cells)
