import re
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
README = TOP / "README.md"
PAGES = [README, TOP / "CONTRIBUTING.md", TOP / "experiments" / "README.md"]
PAGES += sorted(TOP.glob("docs/*.md"))


def test_the_code_in_the_readme_runs():
    (code,) = re.findall(
        r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.S
    )
    names = {}
    exec(code, names)
    assert names["qdd"].shape == names["x"].shape == (6,)
    assert names["A"].shape == (12, 12)
    assert names["by_mass"].shape == (2, 6)


def test_the_code_on_couplings_runs():
    page = TOP / "docs" / "couplings.md"
    (code,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    names = {}
    exec(code, names)
    assert names["tau"].tolist() == pytest.approx([0.0, 0.2])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(TOP)))
def test_commands_on_a_page_exist(page):
    text = page.read_text(encoding="utf-8")
    makefile = (TOP / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.M))
    assert set(re.findall(r"(?:`|^)make ([a-z-]+)", text, re.M)) <= targets
    for module in re.findall(r"python -m (benchmarks[.\w]*)", text):
        assert (TOP / f"{module.replace('.', '/')}.py").exists(), module
    for name in re.findall(r"python -m experiments (\w+)", text):
        known = name in ("all", "NAME")
        assert known or (TOP / "experiments" / f"{name}.py").exists(), name


def test_the_code_on_rollouts_and_many_models_runs(capsys):
    page = TOP / "docs" / "simulation.md"
    codes = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.S)
    for code in codes[-2:]:
        exec(code, {})
    assert capsys.readouterr().out == "(64, 12)\n(1000, 51, 6)\n"
