"""What an experiment found: text, tables, figures and verdicts on published claims."""

import dataclasses
import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FINDINGS = ("reproduced", "reproduced in a different form", "not reproducible")


@dataclass(frozen=True)
class Verdict:
    """What became of a published claim: where it stands, what was found, our number."""

    source: str
    claim: str
    finding: str
    ours: str

    def __post_init__(self) -> None:
        if self.finding not in FINDINGS:
            raise ValueError(
                f"verdict on {self.source}: finding is {self.finding!r}, expected one "
                f"of: {', '.join(map(repr, FINDINGS))}."
            )


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

    def markdown(self) -> str:
        """The table as text, its columns aligned, under its caption."""
        lines = [self.head, *self.rows]
        cells = [[_escaped(str(x)) for x in line] for line in lines]
        widths = [max(3, *map(len, column)) for column in zip(*cells, strict=True)]
        cells.insert(1, ["-" * width for width in widths])
        lines = [f"| {' | '.join(map(str.ljust, row, widths))} |" for row in cells]
        return "\n".join([f"**{self.caption}**", "", *lines])


@dataclass(frozen=True)
class Figure:
    """A picture in the folder of the report, with a caption."""

    file: str
    caption: str


@dataclass(frozen=True)
class Report:
    """All that an experiment found; `text` has paragraphs with empty lines between."""

    name: str
    title: str
    text: str
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    verdicts: Sequence[Verdict] = ()

    def __post_init__(self) -> None:
        for name in ("tables", "figures", "verdicts"):
            object.__setattr__(self, name, tuple(getattr(self, name)))

    def markdown(self) -> str:
        """The report as Markdown, verdicts last."""
        parts = [f"# {self.title}", self.text.strip()]
        parts += [table.markdown() for table in self.tables]
        parts += [f"![{x.caption}]({x.file})\n\n*{x.caption}*" for x in self.figures]
        if self.verdicts:
            parts += ["## Verdicts", "\n".join(map(_line, self.verdicts))]
        return "\n\n".join(filter(None, parts)) + "\n"

    def to_dict(self) -> dict[str, Any]:
        """The report as plain dictionaries, lists and text, as for JSON."""
        return dataclasses.asdict(self)

    @staticmethod
    def from_dict(data: dict[str, Any]) -> "Report":
        """The report that `to_dict` has written."""
        kinds = {"tables": Table, "figures": Figure, "verdicts": Verdict}
        parts: dict[str, Any] = {
            name: tuple(kind(**part) for part in data[name])
            for name, kind in kinds.items()
        }
        return Report(**(data | parts))


def aligned(rows: Sequence[Sequence[str]], *, indent: str = "") -> str:
    """Rows of cells as lines of text in which columns stand under each other.

    Cells of more than 60 characters are cut.
    """
    cut = [[x if len(x) <= 60 else f"{x[:57]}..." for x in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cut, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)) for row in cut)
    return "\n".join(f"{indent}{line}".rstrip() for line in lines)


def check_figures(folder: str | os.PathLike[str], report: Report) -> None:
    """Raise a `ValueError` if a figure of the report is not in the folder."""
    for figure in report.figures:
        if not (Path(folder) / figure.file).is_file():
            raise ValueError(
                f"report {report.name!r}: figure {figure.file!r} is not in its folder."
            )


def _line(verdict: Verdict) -> str:
    return f"- {verdict.source}: {verdict.claim}: **{verdict.finding}**: {verdict.ours}"


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


def _escaped(cell: str) -> str:
    return " ".join(cell.replace("|", r"\|").split())
