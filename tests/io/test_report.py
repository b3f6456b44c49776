import dataclasses
import json
import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from jaxdyn.io import (
    FINDINGS,
    Figure,
    Report,
    Table,
    Verdict,
    _index,
    aligned,
    new_results,
    save_report,
    write_index,
    write_page,
)

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)
REPORT = Report(
    "gripper",
    "The <gripper> falls",
    "First *short* paragraph with `q < 1`, 2 * 3 * 4.\n\n- one\n- two & three",
    [Table("Times", ["method", "µs"], [["denoc", 1.0 / 3], ["a|b", math.nan]])],
    [Figure("fall.png", "Angles & rates")],
    [Verdict("[Shah] Fig. 5", "it falls", FINDINGS[0], "it fell in `0.5 s`")],
)


@pytest.fixture
def results(tmp_path):
    """A folder of results with the report in it."""
    with new_results(tmp_path / "results" / "gripper") as folder:
        (folder / "fall.png").write_bytes(PIXEL)
        save_report(folder, REPORT)
    return tmp_path / "results"


def test_findings_are_one_of_three():
    with pytest.raises(ValueError, match=r"\[Shah\]: finding is 'yes', expected one"):
        Verdict("[Shah]", "claim", "yes", "1")


def test_cells_are_text():
    row = [1, 2.0, np.float32(0.1), np.int64(7), "3", None, True, 1e-12, math.inf]
    table = Table("", list("abcdefghi"), [row])
    assert table.rows == (("1", "2", "0.1", "7", "3", "", "True", "1e-12", "inf"),)


def test_rows_are_as_long_as_the_head():
    with pytest.raises(ValueError, match="'T': row 1 has 1 cells, expected 2"):
        Table("T", ["a", "b"], [[1, 2], [1]])


def test_markdown_has_all_parts():
    text = REPORT.markdown()
    assert text.startswith("# The <gripper> falls\n\nFirst *short* paragraph")
    assert "| denoc  | 0.333333  |\n| a\\|b   | no result |" in text
    assert "![Angles & rates](fall.png)" in text
    assert "- [Shah] Fig. 5: it falls: **reproduced**: it fell in `0.5 s`\n" in text


def test_a_report_is_read_back_from_json():
    assert Report.from_dict(json.loads(json.dumps(REPORT.to_dict()))) == REPORT


def test_figures_must_be_in_the_folder(tmp_path):
    with pytest.raises(ValueError, match=r"'gripper': figure 'fall\.png' is not in"):
        save_report(tmp_path, REPORT)


class Page(HTMLParser):
    """Which tags are open, and what the page refers to."""

    def __init__(self):
        super().__init__()
        self.open, self.links = [], []

    def handle_starttag(self, tag, attrs):
        self.links += [value for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def read_page(path):
    page = Page()
    text = path.read_text(encoding="utf-8")
    page.feed(text)
    assert not page.open
    return text, page.links


def test_the_index_is_one_page_with_everything(results):
    (results / "gripper" / "animation.html").touch()
    (results / ".gripper.1.new").mkdir()
    (results / ".gripper.1.new" / "report.json").write_text("half")
    text, links = read_page(write_index(results))
    assert "The &lt;gripper&gt; falls" in text and "<gripper>" not in text
    assert "First <em>short</em> paragraph" in text and "2 * 3 * 4" in text
    assert "<code>q &lt; 1</code>" in text
    assert "<th>method</th><th class=number>µs</th>" in text
    assert "<td class=number>no result</td>" in text
    assert "<ul><li>one</li><li>two &amp; three</li></ul>" in text
    assert "<td class=number>0.333333</td>" in text and "<td>a|b</td>" in text
    assert '<b class="yes">reproduced</b>: it fell' in text
    assert "#gripper" in links and "gripper/animation.html" in links
    assert any(x.startswith("data:image/png;base64,iVBOR") for x in links)
    assert not re.search("https?:", text)  # works offline
    assert [p.name for p in results.iterdir() if p.is_file()] == ["index.html"]


def test_a_report_by_itself_is_one_page(results):
    folder = results / "gripper"
    (folder / "animation.html").touch()
    text, links = read_page(write_page(folder, REPORT))
    assert "<title>The &lt;gripper&gt; falls</title>" in text
    assert "<td class=number>0.333333</td>" in text and "it fell in" in text
    assert links[0] == "animation.html" and links[1].startswith("data:image/png")
    assert not re.search("https?:", text)  # works offline
    assert not list(folder.glob(".report*"))


def test_a_page_without_its_figures_is_not_written(results, tmp_path):
    with pytest.raises(ValueError, match="figure 'fall.png' is not in its folder"):
        write_page(tmp_path, REPORT)
    assert not (tmp_path / "report.html").exists()


def test_large_pictures_stay_beside_the_index(results, monkeypatch):
    monkeypatch.setattr(_index, "LARGEST", 10)
    _, links = read_page(write_index(results))
    assert "gripper/fall.png" in links


def test_the_index_lists_simulations(results):
    (results / "my run").mkdir()
    for name in ("summary.json", "animation.html"):
        (results / "my run" / name).touch()
    _, links = read_page(write_index(results))
    assert "my%20run/animation.html" in links


def test_a_report_that_is_none_is_named(results):
    (results / "gripper" / "report.json").write_text('{"name": "gripper"}')
    with pytest.raises(ValueError, match=r"gripper/report\.json is not a report"):
        write_index(results)


def test_reports_do_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        REPORT.name = "other"  # pyright: ignore


def test_aligned_columns_stand_under_each_other():
    text = aligned([["a", "long", ""], ["longer", "x", "y"]], indent="> ")
    assert text == "> a       long\n> longer  x     y"
    assert aligned([["x" * 61, "y"]]) == f"{'x' * 57}...  y"
