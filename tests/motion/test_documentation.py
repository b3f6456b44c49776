import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "motion.md"


def test_the_code_of_the_page_runs():
    names = {}
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    exec("\n".join(code), names)
    assert names["reference"].qdd.shape == (5, 6)
    assert names["tau"].shape == names["best"].shape == (6,)
    assert names["tries"].error.min() < 1e-9
