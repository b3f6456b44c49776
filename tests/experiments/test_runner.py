import json
import os
import runpy
import sys
from multiprocessing import active_children

import pytest

from experiments import runner
from experiments.__main__ import main

SCRIPT = '''"""Does {name} hold?

More words.
"""

from dataclasses import dataclass
from pathlib import Path

from experiments.reports import Report, Verdict
from jaxdyn.io import Figure, Table


@dataclass(frozen=True)
class Config:
    n: int


def run(config: Config, folder: Path) -> Report:
    (folder / "plot.png").write_bytes(b"")
    {action}
    return Report(
        "{name}",
        "About {name}",
        "Text.",
        [Table("T", ["n"], [[config.n]])],
        [Figure("plot.png", "P")],
        [Verdict("[Shah]", "claim of {name}", "reproduced", f"{{config.n + 40}}")],
    )
'''


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout to which experiments can be added; the function that does it."""
    for folder in ("experiments", "configs"):
        (tmp_path / folder).mkdir()
    (tmp_path / "experiments" / "helper.py").touch()
    (tmp_path / "configs" / "simulation.toml").touch()
    monkeypatch.setattr(runner, "TOP", tmp_path)
    monkeypatch.chdir(tmp_path)

    def add(name, action="pass", config="n = 2"):
        script = tmp_path / "experiments" / f"{name}.py"
        script.write_text(SCRIPT.format(name=name, action=action))
        (tmp_path / "configs" / f"{name}.toml").write_text(config)
        return script

    yield add
    for script in (tmp_path / "experiments").glob("*.py"):
        sys.modules.pop(f"experiments.{script.stem}", None)


def results(tmp_path):
    return sorted(p.name for p in (tmp_path / "results").iterdir())


def test_without_a_name_experiments_are_listed_and_not_run(checkout, capsys):
    checkout("falling", action="raise RuntimeError")
    checkout("rising").write_text("1 +")
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert "  falling  Does falling hold?\n" in shown
    assert "  rising   (cannot be read: invalid syntax" in shown
    assert "helper" not in shown and "simulation" not in shown


def test_an_experiment_leaves_its_report_and_the_index(checkout, tmp_path, capsys):
    checkout("falling")
    assert main(["falling", "falling"]) == 0
    shown = capsys.readouterr()
    assert "reproduced: [Shah]: claim of falling\n    42\n" in shown.out
    assert "results/index.html" in shown.out and shown.err == ""
    folder = tmp_path / "results" / "falling"
    assert "# About falling" in (folder / "report.md").read_text()
    assert json.loads((folder / "report.json").read_text())["name"] == "falling"
    assert "claim of falling" in (tmp_path / "results" / "index.html").read_text()


def test_all_goes_on_after_a_failure(checkout, tmp_path, capsys):
    checkout("a", action="raise RuntimeError('broken leg')")
    checkout("b", action="raise ValueError('no such file')")
    checkout("c").write_text("import no_such_module")
    checkout("d")
    assert main(["all", "-o", "results", "--jobs", "1"]) == 1
    error = capsys.readouterr().err
    assert "broken leg" in error and "Traceback" in error  # an error of the program
    assert "jaxdyn: b: no such file\n" in error
    assert "No module named 'no_such_module'" in error
    assert "jaxdyn: failed: c, a, b\n" in error
    assert results(tmp_path) == ["d", "index.html"]


@pytest.mark.slow
def test_what_is_not_timed_runs_side_by_side(checkout, tmp_path, capsys):
    where = "(folder / 'process').write_text(str(__import__('os').getpid()))"
    for name in ("a", "b", "c"):
        checkout(name, action=where)
    script = checkout("timed", action=where)
    script.write_text(script.read_text() + "\n\nTIMED = True\n")
    checkout("broken", action="raise RuntimeError('broken leg')")
    assert main(["all", "--jobs", "2"]) == 1
    shown = capsys.readouterr()
    order = [shown.out.index(f"\n{x}: ") for x in ("timed", "a", "b", "broken", "c")]
    assert order == sorted(order)
    assert "broken leg" in shown.err and "jaxdyn: failed: broken\n" in shown.err
    process = {
        x: (tmp_path / f"results/{x}/process").read_text() for x in ("a", "b", "timed")
    }
    assert process["timed"] == str(os.getpid())
    assert process["timed"] not in (process["a"], process["b"])


def test_results_are_not_overwritten_without_force(checkout, tmp_path, capsys):
    checkout("a")
    checkout("b", action="raise RuntimeError")
    assert main(["a"]) == 0
    assert main(["b", "a"]) == 2  # before b has started
    assert "results/a exists" in capsys.readouterr().err
    (tmp_path / "configs" / "a.toml").write_text("n = 3")
    assert main(["a", "--force"]) == 0
    assert "43" in (tmp_path / "results" / "a" / "report.md").read_text()


@pytest.mark.parametrize(
    "config, name, message",
    [
        ("m = 2", "a", "a.toml: m is not known, expected only: n: "),
        ("n = '2'", "all", "a.toml: n is '2', expected a whole number."),
        ("n = 2", "z", "experiment 'z' is not known, expected all or some of: a."),
    ],
)
def test_wrong_input_stops_before_anything_runs(
    config, name, message, checkout, tmp_path, capsys
):
    checkout("a", config=config)
    assert main([name]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
    assert not (tmp_path / "results").exists()


def test_a_script_of_another_form_is_named(checkout, capsys):
    checkout("a").write_text("'''Is it?'''")
    assert main(["a"]) == 2
    assert "a.py: an experiment has `class Config`" in capsys.readouterr().err


def test_ctrl_c_leaves_no_half_result(checkout, tmp_path):
    checkout("a", action="raise KeyboardInterrupt")
    assert main(["a"]) == 130
    assert results(tmp_path) == []


def test_the_package_is_a_program(checkout, tmp_path, monkeypatch):
    checkout("a")
    monkeypatch.setattr(sys, "argv", ["experiments", "a", "-o", "elsewhere"])
    monkeypatch.delitem(sys.modules, "experiments.__main__")
    with pytest.raises(SystemExit, match="0"):
        runpy.run_module("experiments", run_name="__main__")
    assert (tmp_path / "elsewhere" / "a" / "report.md").exists()


def test_help_teaches(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    shown = capsys.readouterr().out
    taught = ("usage: python -m experiments", "report.md", "index.html", "--force")
    assert all(x in shown for x in (*taught, "  operation_counts  How many operations"))
    assert max(map(len, shown.splitlines())) <= 100


@pytest.mark.slow
def test_a_signal_ends_all_processes_and_nothing_is_left(checkout, tmp_path):
    checkout("a", action="__import__('time').sleep(100)")
    end = "__import__('os').kill(__import__('os').getppid(), 15)"
    checkout("b", action=f"({end}, __import__('time').sleep(100))")
    assert main(["all", "--jobs", "2"]) == 143
    assert not active_children()
    assert not list((tmp_path / "results").iterdir())
