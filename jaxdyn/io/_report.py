"""Reports: text, tables and figures; rows of text in columns."""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Table:
    """A table with a caption; cells become text, numbers with six digits."""

    caption: str
    head: Sequence[object]
    rows: Sequence[Sequence[object]]

    def __post_init__(self) -> None:
        head = tuple(map(_cell, self.head))
        rows = tuple(tuple(map(_cell, row)) for row in self.rows)
        for i, row in enumerate(rows):
            if len(row) != len(head):
                raise ValueError(
                    f"table {self.caption!r}: row {i} has {len(row)} cells, expected "
                    f"{len(head)} as in the head."
                )
        object.__setattr__(self, "head", head)
        object.__setattr__(self, "rows", rows)


@dataclass(frozen=True)
class Figure:
    """A picture in the folder of the report, with a caption."""

    file: str
    caption: str


@dataclass(frozen=True)
class Report:
    """What was found; `text` has paragraphs with empty lines between."""

    name: str
    title: str
    text: str
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()

    def __post_init__(self) -> None:
        for name in ("tables", "figures"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    def check_figures(self, folder: str | os.PathLike[str]) -> None:
        """Raise a `ValueError` if a figure of the report is not in the folder."""
        for figure in self.figures:
            if not (Path(folder) / figure.file).is_file():
                raise ValueError(
                    f"report {self.name!r}: figure {figure.file!r} is not in its "
                    "folder."
                )


def aligned(rows: Sequence[Sequence[str]], *, indent: str = "") -> str:
    """Rows of cells as lines of text in which columns stand under each other.

    Cells of more than 60 characters are cut.
    """
    cut = [[x if len(x) <= 60 else f"{x[:57]}..." for x in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cut, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)) for row in cut)
    return "\n".join(f"{indent}{line}".rstrip() for line in lines)


def _cell(value: Any) -> str:
    """A number in six digits, anything else as it prints."""
    try:
        number = float(value) if not isinstance(value, str | bool) else None
    except (TypeError, ValueError):
        number = None
    if number is None or isinstance(value, int):
        return "" if value is None else str(value)
    if math.isnan(number):
        return "no result"
    return f"{number:.6g}"
