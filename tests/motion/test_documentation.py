import re
from pathlib import Path

import numpy as np
import pytest

DOCS = Path(__file__).parents[2] / "docs"


def run(page):
    """The names that the code of a page defines."""
    names = {}
    text = (DOCS / page).read_text(encoding="utf-8")
    exec("\n".join(re.findall(r"```python\n(.*?)```", text, re.S)), names)
    return names


def test_the_code_of_the_page_runs():
    names = run("motion.md")
    assert names["reference"].qdd.shape == (5, 6)
    assert names["tau"].shape == names["best"].shape == (6,)
    assert names["tries"].error.min() < 1e-9


@pytest.mark.slow
def test_the_code_on_loops_runs():
    names = run("loops.md")
    assert names["turns"].converged.all()
    drive, shared = names["drive"], names["shared"]
    np.testing.assert_allclose(drive.tau, [5, 0, 0], atol=1e-13)
    assert drive.tau_is_determinate.all() and not shared.tau_is_determinate.any()
    assert np.linalg.norm(shared.tau) < 5
