import json
import math
import re

import pytest

from experiments.reports import (
    FINDINGS,
    Report,
    Verdict,
    _index,
    save_report,
    write_index,
)
from jaxdyn.io import Figure, Table, new_results
from tests.pages import PIXEL, read_page

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
