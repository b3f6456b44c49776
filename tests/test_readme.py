import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_code_in_the_readme_runs():
    (code,) = re.findall(
        r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S
    )
    names = {}
    exec(code, names)
    assert names["J"].shape == (6, 6)
    assert names["by_offset"].shape == (2, 6, 3)
