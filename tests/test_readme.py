import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_code_in_the_readme_runs():
    (code,) = re.findall(
        r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S
    )
    names = {}
    exec(code, names)
    assert names["qdd"].shape == names["x"].shape == (6,)
    assert names["A"].shape == (12, 12)
    assert names["by_mass"].shape == (2, 6)
