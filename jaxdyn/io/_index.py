"""Reports as pages: one by itself, or all of a folder."""

import base64
import html
import json
import mimetypes
import os
import re
from collections import Counter
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from urllib.parse import quote

from jaxdyn.io._drafts import new_file
from jaxdyn.io._report import FINDINGS, Figure, Report, Table, Verdict, check_figures

LARGEST = 20_000_000  # bytes of pictures that one page may carry

_CLASSES: dict[str, str] = dict(zip(FINDINGS, ("yes", "form", "no"), strict=True))


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
    source = _linked if size > LARGEST else _inlined
    sections = [
        _section(at, report, source, f"{quote(at.name)}/")
        for at, report in reports.items()
    ]
    title = "Results of jaxdyn"
    head = [f"<h1>{title}</h1>", _summary(list(reports.values()))]
    folder.mkdir(parents=True, exist_ok=True)
    page = folder / "index.html"
    return _write(page, title, [*head, _simulations(folder), *sections])


def write_page(folder: str | os.PathLike[str], report: Report) -> Path:
    """Writes `report.html`: one report on a page that needs no other file.

    Raises:
        ValueError: a figure of the report is not in the folder.
    """
    check_figures(folder, report)
    section = _section(Path(folder), report, _inlined, "")
    return _write(Path(folder) / "report.html", report.title, [section])


def _write(page: Path, title: str, body: list[str]) -> Path:
    """Writes a page, complete or not at all."""
    style = resources.files("jaxdyn.io").joinpath("report.css")
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{html.escape(title)}</title>",
        f"<style>\n{style.read_text(encoding='utf-8')}</style>\n</head>\n<body>",
        *body,
        "</body>\n</html>\n",
    ]
    with new_file(page) as draft:
        draft.write_text("\n".join(filter(None, parts)), encoding="utf-8")
    return page


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


def _section(
    at: Path, report: Report, source: Callable[[Path], str], inside: str
) -> str:
    """A report; `inside` leads from the page to the folder of the report."""
    parts = [
        f'<section id="{_anchor(report.name)}">\n<h2>{html.escape(report.title)}</h2>',
        _paragraphs(report.text),
    ]
    if (at / "animation.html").exists():
        page = f"{inside}animation.html"
        parts.append(f'<p><a href="{page}">Animation</a></p>')
    if report.verdicts:
        items = "\n".join(map(_verdict, report.verdicts))
        parts.append(f'<ul class="verdicts">\n{items}\n</ul>')
    parts += map(_table, report.tables)
    parts += (_figure(figure, source(at / figure.file)) for figure in report.figures)
    return "\n".join([*parts, "</section>"])


def _verdict(verdict: Verdict) -> str:
    kind = _CLASSES[verdict.finding]
    return (
        f'<li class="{kind}"><span class="source">{html.escape(verdict.source)}:'
        f'</span> {_inline(verdict.claim)}<br><b class="{kind}">{verdict.finding}'
        f"</b>: {_inline(verdict.ours)}</li>"
    )


def _table(table: Table) -> str:
    """A column with a number stands at the right, with its head."""
    rows = [[str(x) for x in row] for row in table.rows]
    is_number = [any(map(_is_number, column)) for column in zip(*rows, strict=True)]
    body = "\n".join(_row("td", row, is_number) for row in rows)
    head = _row("th", list(map(str, table.head)), is_number)
    return (
        f'<div class="wide"><table><caption>{_inline(table.caption)}</caption>\n'
        f"{head}\n{body}\n</table></div>"
    )


def _row(kind: str, cells: list[str], is_number: list[bool]) -> str:
    ways = [" class=number" if x else "" for x in is_number] or [""] * len(cells)
    made = (
        f"<{kind}{way}>{_inline(x)}</{kind}>"
        for x, way in zip(cells, ways, strict=True)
    )
    return f"<tr>{''.join(made)}</tr>"


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[-+−]?[\d.][-+−\d., e%]*", text) is not None


def _figure(figure: Figure, source: str) -> str:
    return (
        f'<figure><img src="{source}" alt="{html.escape(figure.caption)}">'
        f"<figcaption>{_inline(figure.caption)}</figcaption></figure>"
    )


def _inlined(path: Path) -> str:
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def _linked(path: Path) -> str:
    return quote(f"{path.parent.name}/{path.name}")


def _paragraphs(text: str) -> str:
    """Paragraphs with empty lines between; those whose lines start with - are lists."""
    parts = []
    for block in re.split(r"\n\s*\n", text.strip()):
        lines = block.strip().splitlines()
        if lines and all(line.startswith(("- ", "  ")) for line in lines):
            items = re.split(r"(?m)^- ", block.strip())[1:]
            inner = "".join(f"<li>{_inline(item)}</li>" for item in items)
            parts.append(f"<ul>{inner}</ul>")
        elif lines:
            parts.append(f"<p>{_inline(block)}</p>")
    return "\n".join(parts)


def _inline(text: str) -> str:
    """Escaped text; what stands between backticks is code, between stars emphasis."""
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text.strip()))
    return re.sub(r"(?<!\w)\*(\w[^*\n]*\w)\*(?!\w)", r"<em>\1</em>", text)


def _anchor(name: str) -> str:
    return re.sub(r"[^\w-]", "-", name)
