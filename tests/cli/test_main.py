import re
import runpy
import shlex
import signal
import sys

import pytest

import jaxdyn
from jaxdyn.cli import _main, main
from jaxdyn.cli._robots import load


def test_the_package_is_a_program(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["jaxdyn", "info", "pumo_560"])
    with pytest.raises(SystemExit, match="2"):
        runpy.run_module("jaxdyn.cli", run_name="__main__")
    error = capsys.readouterr().err
    assert "'pumo_560' is not known" in error and "Did you mean puma_560?" in error


@pytest.mark.parametrize(
    "words, taught",
    [
        ([], ("jaxdyn simulate configs/puma.toml", "jaxdyn view results/puma")),
        (["info"], ("--degrees", "stewart_gough", ".urdf")),
        (["simulate"], ("results/NAME/", "trajectory.npz", "--force", "computed_t")),
        (["identify"], ("report.html", "JOINT.tau", "model.urdf", "checkpoint")),
        (["excite"], ("motion.csv", "results/NAME/", "jaxdyn identify")),
        (["view"], ("--page", "trajectory.npz")),
    ],
)
def test_help_teaches(words, taught, capsys):
    with pytest.raises(SystemExit, match="0"):
        main([*words, "--help"])
    shown = capsys.readouterr().out
    assert all(x in shown for x in taught)
    assert max(map(len, shown.splitlines())) <= 100


def test_no_words_at_all_show_the_first_steps(capsys):
    assert main([]) == 2
    assert "first steps:" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["fly"], ["simulate"], ["view"]])
def test_wrong_words_show_the_usage(words, capsys):
    with pytest.raises(SystemExit, match="2"):
        main(words)
    assert capsys.readouterr().err.startswith("usage: jaxdyn")


def test_numbers_are_those_of_files(capsys):
    with pytest.raises(SystemExit, match="2"):
        main(["info", "chain", "--q", "1_0"])
    assert "argument --q: invalid number value: '1_0'" in capsys.readouterr().err


BROKEN = {
    "damaged.npz": b"PK\x03\x04half",
    "encoded.urdf": b"<?xml version='1.0' encoding='none'?><robot name='r'/>",
    "deep.json": b"[" * 100_000,
    "latin.json": b"\xff",
    "latin.toml": b"robot = '\xff'",
    "deep.toml": b"a = " + b"[" * 5000,
}
WORDS = [
    *(f"info {name}" for name in ("folder.urdf", "encoded.urdf", "deep.json")),
    *("info latin.json", "info ''", "view damaged.npz", "view --page damaged.npz"),
    *("view folder.json", "view ''", "view folder.urdf", "simulate latin.toml"),
    *("simulate folder.toml", "simulate ''", "simulate deep.toml", "simulate none"),
    *("identify folder.toml", "excite folder.toml"),
]


@pytest.mark.parametrize("words", WORDS)
def test_files_that_cannot_be_read_are_one_sentence(
    words, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    for name, content in BROKEN.items():
        (tmp_path / name).write_bytes(content)
    for ending in ("json", "toml", "urdf"):
        (tmp_path / f"folder.{ending}").mkdir()
    assert main(shlex.split(words)) == 2
    shown = capsys.readouterr()
    assert re.fullmatch(r"jaxdyn: [^\n]{20,}\.\n", shown.err) and not shown.out


@pytest.mark.filterwarnings("default")
def test_doubts_about_a_robot_are_one_warning(tmp_path, capsys):
    file = tmp_path / "puma.urdf"
    jaxdyn.to_urdf(jaxdyn.robots.puma_560(), file)
    assert load(str(file)).n == 6
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith(f"jaxdyn: {file}: model 'puma560' will move as its file")
    assert second.startswith("  inertia link3: kept as given: principal inertias ")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_is_its_exit_code(number, monkeypatch, capsys):
    monkeypatch.setattr(_main, "view", lambda arguments: signal.raise_signal(number))
    assert main(["view", "somewhere"]) == 128 + number
    assert "interrupted" in capsys.readouterr().err


def test_ctrl_c_is_exit_code_130(monkeypatch, capsys):
    def interrupt(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(_main, "view", interrupt)
    assert main(["view", "somewhere"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_a_reader_that_has_seen_enough_is_no_error(monkeypatch):
    def leave(arguments):
        raise BrokenPipeError

    monkeypatch.setattr(_main, "view", leave)
    monkeypatch.setattr(_main, "silence", lambda: None)
    assert main(["view", "somewhere"]) == 0
