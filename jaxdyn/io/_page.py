"""Reports as pages that need no network."""

import base64
import html
import mimetypes
import os
import re
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path

from jaxdyn.io._drafts import new_file
from jaxdyn.io._report import Figure, Report, Table


def write_page(folder: str | os.PathLike[str], report: Report) -> Path:
    """Writes `report.html`: one report on a page that needs no other file.

    Raises:
        ValueError: a figure of the report is not in the folder.
    """
    report.check_figures(folder)
    page = Path(folder) / "report.html"
    return save_page(page, report.title, [page_section(Path(folder), report)])


def embedded(picture: Path) -> str:
    """The address of a picture that holds the picture itself."""
    kind = mimetypes.guess_type(picture.name)[0] or "application/octet-stream"
    return f"data:{kind};base64,{base64.b64encode(picture.read_bytes()).decode()}"


def save_page(page: Path, title: str, body: Sequence[str], style: str = "") -> Path:
    """Writes a page, complete or not at all; `style` is CSS beyond that of reports."""
    usual = resources.files("jaxdyn.io").joinpath("report.css")
    style = usual.read_text(encoding="utf-8") + style
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{html.escape(title)}</title>",
        f"<style>\n{style}</style>\n</head>\n<body>",
        *body,
        "</body>\n</html>\n",
    ]
    with new_file(page) as draft:
        draft.write_text("\n".join(filter(None, parts)), encoding="utf-8")
    return page


def page_section(
    folder: Path,
    report: Report,
    *,
    inside: str = "",
    more: Sequence[str] = (),
    address: Callable[[Path], str] = embedded,
) -> str:
    """A report in HTML, for `save_page`.

    Args:
        folder: where its figures are.
        inside: leads from the page to the folder, for links.
        more: HTML between the text and the tables.
        address: of a picture.
    """
    parts = [
        f"<section>\n<h2>{html.escape(report.title)}</h2>",
        _paragraphs(report.text),
    ]
    if (folder / "animation.html").exists():
        parts.append(f'<p><a href="{inside}animation.html">Animation</a></p>')
    parts += [*more, *map(_table, report.tables)]
    parts += (_figure(x, address(folder / x.file)) for x in report.figures)
    return "\n".join([*parts, "</section>"])


def _table(table: Table) -> str:
    """A column with a number stands at the right, with its head."""
    rows = [[str(x) for x in row] for row in table.rows]
    is_number = [any(map(_is_number, column)) for column in zip(*rows, strict=True)]
    body = "\n".join(_row("td", row, is_number) for row in rows)
    head = _row("th", list(map(str, table.head)), is_number)
    return (
        f'<div class="wide"><table><caption>{inline_html(table.caption)}</caption>\n'
        f"{head}\n{body}\n</table></div>"
    )


def _row(kind: str, cells: list[str], is_number: list[bool]) -> str:
    ways = [" class=number" if x else "" for x in is_number] or [""] * len(cells)
    made = (
        f"<{kind}{way}>{inline_html(x)}</{kind}>"
        for x, way in zip(cells, ways, strict=True)
    )
    return f"<tr>{''.join(made)}</tr>"


def _is_number(text: str) -> bool:
    return re.fullmatch(r"[-+−]?[\d.][-+−\d., e%]*", text) is not None


def _figure(figure: Figure, source: str) -> str:
    return (
        f'<figure><img src="{source}" alt="{html.escape(figure.caption)}">'
        f"<figcaption>{inline_html(figure.caption)}</figcaption></figure>"
    )


def _paragraphs(text: str) -> str:
    """Paragraphs with empty lines between; those whose lines start with - are lists."""
    parts = []
    for block in re.split(r"\n\s*\n", text.strip()):
        lines = block.strip().splitlines()
        if lines and all(line.startswith(("- ", "  ")) for line in lines):
            items = re.split(r"(?m)^- ", block.strip())[1:]
            inner = "".join(f"<li>{inline_html(item)}</li>" for item in items)
            parts.append(f"<ul>{inner}</ul>")
        elif lines:
            parts.append(f"<p>{inline_html(block)}</p>")
    return "\n".join(parts)


def inline_html(text: str) -> str:
    """Escaped text; what stands between backticks is code, between stars emphasis."""
    text = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text.strip()))
    return re.sub(r"(?<!\w)\*(\w[^*\n]*\w)\*(?!\w)", r"<em>\1</em>", text)
