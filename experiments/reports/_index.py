"""One page of all reports of a folder."""

import html
import json
import os
import re
from collections import Counter
from pathlib import Path
from urllib.parse import quote

from experiments.reports._report import FINDINGS, Report, Verdict
from jaxdyn.io import embedded, inline_html, page_section, save_page

LARGEST = 20_000_000  # bytes of pictures that one page may carry

_CLASSES: dict[str, str] = dict(zip(FINDINGS, ("yes", "form", "no"), strict=True))
_STYLE = Path(__file__).with_name("verdicts.css")


def write_index(results: str | os.PathLike[str]) -> Path:
    """Writes `index.html`: every report below this folder on one page.

    The page needs no network and no other file, unless its pictures together are larger
    than 20 MB: then it shows those in the folders beside it.

    Raises:
        ValueError: a `report.json` is not one that `save_report` has written.
    """
    folder = Path(results)
    reports = {path.parent: _read(path) for path in _found(folder, "report.json")}
    size = sum(
        (at / x.file).stat().st_size for at, r in reports.items() for x in r.figures
    )
    sections = [_section(*x, is_linked=size > LARGEST) for x in reports.items()]
    title = "Results of jaxdyn"
    head = [f"<h1>{title}</h1>", _summary(list(reports.values()))]
    folder.mkdir(parents=True, exist_ok=True)
    body = [*head, _simulations(folder), *sections]
    style = _STYLE.read_text(encoding="utf-8")
    return save_page(folder / "index.html", title, body, style)


def _found(folder: Path, name: str) -> list[Path]:
    """Files with this name one level below, but not in folders still being written."""
    return sorted(p for p in folder.glob(f"*/{name}") if p.parent.name[0] != ".")


def _read(path: Path) -> Report:
    try:
        return Report.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ValueError(f"{path} is not a report: {error}.") from None


def _summary(reports: list[Report]) -> str:
    """The contents, with the number of verdicts of each kind."""
    rows, total = [], Counter()
    for report in reports:
        counts = Counter(verdict.finding for verdict in report.verdicts)
        total += counts
        link = f'<a href="#{_anchor(report.name)}">{html.escape(report.title)}</a>'
        rows.append(_counts(link, counts))
    rows.append(_counts("<b>all</b>", total))
    numbers = "".join(f'<th class="number">{x}</th>' for x in FINDINGS)
    head = f"<th>experiment</th>{numbers}"
    return (
        '<div class="wide"><table><caption>Published claims and what became of them'
        f"</caption>\n<tr>{head}</tr>\n" + "\n".join(rows) + "\n</table></div>"
    )


def _counts(label: str, counts: Counter) -> str:
    cells = (
        f'<td class="number"><b class="{_CLASSES[x]}">{counts[x] or ""}</b></td>'
        for x in FINDINGS
    )
    return f"<tr><td>{label}</td>{''.join(cells)}</tr>"


def _simulations(folder: Path) -> str:
    """Links to the animations of simulations that stand beside the experiments."""
    pages = [p for p in _found(folder, "animation.html")]
    links = [p.parent.name for p in pages if (p.parent / "summary.json").exists()]
    if not links:
        return ""
    items = (
        f'<li><a href="{quote(x)}/animation.html">{html.escape(x)}</a></li>'
        for x in links
    )
    return f"<p>Simulations, animated:</p>\n<ul>{''.join(items)}</ul>"


def _section(at: Path, report: Report, is_linked: bool) -> str:
    """A report with its verdicts, to which the summary links."""
    items = "\n".join(map(_verdict, report.verdicts))
    made = page_section(
        at,
        report,
        inside=f"{quote(at.name)}/",
        more=[f'<ul class="verdicts">\n{items}\n</ul>'] if items else [],
        address=_linked if is_linked else embedded,
    )
    return f'<div id="{_anchor(report.name)}">\n{made}\n</div>'


def _verdict(verdict: Verdict) -> str:
    kind = _CLASSES[verdict.finding]
    return (
        f'<li class="{kind}"><span class="source">{html.escape(verdict.source)}:'
        f'</span> {inline_html(verdict.claim)}<br><b class="{kind}">{verdict.finding}'
        f"</b>: {inline_html(verdict.ours)}</li>"
    )


def _linked(path: Path) -> str:
    return quote(f"{path.parent.name}/{path.name}")


def _anchor(name: str) -> str:
    return re.sub(r"[^\w-]", "-", name)
