import re
from pathlib import Path

import pytest

from jaxdyn.dynamics import INERTIA
from jaxdyn.model import CUT_JOINTS, JOINT_TYPES, ROWS

PAGE = Path(__file__).parent.parent / "CONTRIBUTING.md"
SECTIONS = {
    title: re.findall(r"```python\n(.*?)```", text, re.S)
    for title, text in re.findall(
        r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"), re.M | re.S
    )
}
EXAMPLES = [title for title, code in SECTIONS.items() if code]


@pytest.fixture
def tables():
    """The tables that examples add to, as they were when the test is over."""
    before = [
        (table, dict(table)) for table in (CUT_JOINTS, INERTIA, JOINT_TYPES, ROWS)
    ]
    yield
    for table, entries in before:
        table.clear()
        table.update(entries)


def test_every_way_to_extend_the_library_has_an_example():
    assert EXAMPLES == [
        "Add a force element",
        "Add a kind of constraint row",
        "Add a joint",
        "Add a friction law",
        "Add a formulation",
    ]


@pytest.mark.parametrize("title", EXAMPLES)
def test_the_example_holds_its_own_identity(title, tables):
    (code,) = SECTIONS[title]
    exec(code, {"__name__": "example"})
