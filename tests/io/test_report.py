import dataclasses
import math
import re

import numpy as np
import pytest

from jaxdyn.io import Figure, Report, Table, aligned, write_page
from tests.pages import PIXEL, read_page

REPORT = Report(
    "gripper",
    "The <gripper> falls",
    "First *short* paragraph with `q < 1`, 2 * 3 * 4.\n\n- one\n- two & three",
    [Table("Times", ["method", "µs"], [["denoc", 1.0 / 3], ["a|b", math.nan]])],
    [Figure("fall.png", "Angles & rates")],
)


def test_cells_are_text():
    row = [1, 2.0, np.float32(0.1), np.int64(7), "3", None, True, 1e-12, math.inf]
    table = Table("", list("abcdefghi"), [row])
    assert table.rows == (("1", "2", "0.1", "7", "3", "", "True", "1e-12", "inf"),)


def test_rows_are_as_long_as_the_head():
    with pytest.raises(ValueError, match="'T': row 1 has 1 cells, expected 2"):
        Table("T", ["a", "b"], [[1, 2], [1]])


def test_a_report_is_one_page(tmp_path):
    (tmp_path / "fall.png").write_bytes(PIXEL)
    (tmp_path / "animation.html").touch()
    text, links = read_page(write_page(tmp_path, REPORT))
    assert "<title>The &lt;gripper&gt; falls</title>" in text
    assert "<td class=number>0.333333</td>" in text and "two &amp; three" in text
    assert links[0] == "animation.html" and links[1].startswith("data:image/png")
    assert not re.search("https?:", text)  # works offline
    assert not list(tmp_path.glob(".report*"))


def test_a_page_without_its_figures_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="figure 'fall.png' is not in its folder"):
        write_page(tmp_path, REPORT)
    assert not (tmp_path / "report.html").exists()


def test_reports_do_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        REPORT.name = "other"  # pyright: ignore


def test_aligned_columns_stand_under_each_other():
    text = aligned([["a", "long", ""], ["longer", "x", "y"]], indent="> ")
    assert text == "> a       long\n> longer  x     y"
    assert aligned([["x" * 61, "y"]]) == f"{'x' * 57}...  y"
