"""Reports with verdicts, as Markdown and as JSON."""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxdyn import io

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
class Report(io.Report):
    """All that an experiment found."""

    verdicts: Sequence[Verdict] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "verdicts", tuple(self.verdicts))

    def markdown(self) -> str:
        """The report as Markdown, verdicts last."""
        parts = [f"# {self.title}", self.text.strip()]
        parts += map(_table, self.tables)
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
        kinds = {"tables": io.Table, "figures": io.Figure, "verdicts": Verdict}
        parts: dict[str, Any] = {
            name: tuple(kind(**part) for part in data[name])
            for name, kind in kinds.items()
        }
        return Report(**(data | parts))


def save_report(folder: Path, report: Report) -> None:
    """Writes `report.md` and `report.json`.

    Raises:
        ValueError: a figure of the report is not in the folder.
    """
    report.check_figures(folder)
    (folder / "report.md").write_text(report.markdown(), encoding="utf-8")
    text = json.dumps(report.to_dict(), indent=1, ensure_ascii=False)
    (folder / "report.json").write_text(text + "\n", encoding="utf-8")


def _table(table: io.Table) -> str:
    """The table as Markdown, its columns aligned, under its caption."""
    cells = [[_escaped(str(x)) for x in line] for line in [table.head, *table.rows]]
    widths = [max(3, *map(len, column)) for column in zip(*cells, strict=True)]
    cells.insert(1, ["-" * width for width in widths])
    lines = [f"| {' | '.join(map(str.ljust, row, widths))} |" for row in cells]
    return "\n".join([f"**{table.caption}**", "", *lines])


def _escaped(cell: str) -> str:
    return " ".join(cell.replace("|", r"\|").split())


def _line(verdict: Verdict) -> str:
    return f"- {verdict.source}: {verdict.claim}: **{verdict.finding}**: {verdict.ours}"
