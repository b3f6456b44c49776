import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.io import (
    _drafts,
    load_trajectory,
    new_results,
    save_summary,
    save_trajectory,
)
from tests.models import every_joint


def test_a_result_is_there_when_it_is_complete(tmp_path):
    with new_results(tmp_path / "deep" / "run") as folder:
        (folder / "a").write_text("1")
        assert not (tmp_path / "deep" / "run").exists()
        assert folder.parent == tmp_path / "deep"  # the same disk: renamed, not copied
    assert (tmp_path / "deep" / "run" / "a").read_text() == "1"
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["run"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_nothing_is_left_of_a_run_that_failed(error, tmp_path):
    with pytest.raises(error), new_results(tmp_path / "run") as folder:
        (folder / "a").write_text("1")
        raise error
    assert not list(tmp_path.iterdir())


def write(target, text, force=False):
    with new_results(target, force) as folder:
        (folder / "a").write_text(text)


def test_results_are_replaced_with_force_only(tmp_path):
    target = tmp_path / "run"
    write(target, "1")
    with pytest.raises(ValueError, match="run exists: .* --force"):
        write(target, "2")
    assert (target / "a").read_text() == "1"
    write(target, "3", force=True)
    assert (target / "a").read_text() == "3"
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_old_results_stay_until_the_new_ones_are_complete(tmp_path):
    write(tmp_path / "run", "1")
    with (
        pytest.raises(KeyboardInterrupt),
        new_results(tmp_path / "run", force=True) as folder,
    ):
        (folder / "b").touch()
        raise KeyboardInterrupt
    assert (tmp_path / "run" / "a").read_text() == "1"
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_results_of_another_run_meanwhile_stay(tmp_path):
    with (
        pytest.raises(ValueError, match="run exists"),
        new_results(tmp_path / "run") as folder,
    ):
        (folder / "a").write_text("slow")
        write(tmp_path / "run", "fast")
    assert (tmp_path / "run" / "a").read_text() == "fast"


def test_folders_of_others_are_never_replaced(tmp_path, monkeypatch):
    (tmp_path / "thesis.tex").touch()
    monkeypatch.chdir(tmp_path)
    for target in (".", "thesis.tex"):
        with pytest.raises(ValueError, match="was not written by jaxdyn"):
            write(target, "1", force=True)
    assert (tmp_path / "thesis.tex").exists()
    (tmp_path / "empty").mkdir()
    write(tmp_path / "empty", "1", force=True)


def test_a_folder_behind_a_link_is_replaced_where_it_is(tmp_path):
    write(tmp_path / "run", "1")
    (tmp_path / "link").symlink_to("run")
    write(tmp_path / "link", "2", force=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "run" / "a").read_text() == "2"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_trajectory_is_read_back_with_its_model(dtype, tmp_path, rng):
    model = every_joint().astype(dtype)
    ts = jnp.linspace(0, 1, 3, dtype=dtype)
    q, qd = (jnp.asarray(rng.normal(size=(3, k)), dtype) for k in (model.nq, model.nv))
    trajectory = SimpleNamespace(ts=ts, q=q, qd=qd, kinetic_energy=ts, f_ext=None)
    save_trajectory(tmp_path, model, trajectory, q_wanted=q + 1)
    for path in (tmp_path, tmp_path / "trajectory.npz"):
        again, arrays = load_trajectory(path)
        assert list(arrays) == ["ts", "q", "qd", "kinetic_energy", "q_wanted"]
        assert arrays["q"].dtype == again.dtype == dtype
        np.testing.assert_array_equal(arrays["q_wanted"], q + 1)
        near = partial(
            np.testing.assert_allclose, rtol=0, atol=10 * np.finfo(dtype).eps
        )
        jax.tree.map(near, again, model)


def test_a_file_without_a_trajectory_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"there is no .*trajectory\.npz: expected a"):
        load_trajectory(tmp_path)
    path = tmp_path / "trajectory.npz"
    for content in (b"", b"text", b"PK\x03\x04half"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"trajectory\.npz is not an NPZ file"):
            load_trajectory(path)
    np.save(tmp_path / "a.npy", np.zeros(3))
    with pytest.raises(ValueError, match=r"a\.npy is not an NPZ file"):
        load_trajectory(tmp_path / "a.npy")
    np.savez(path, q=np.zeros(3))
    with pytest.raises(ValueError, match=r"trajectory\.npz does not hold .*no 'model'"):
        load_trajectory(tmp_path)


@pytest.mark.parametrize(
    "change, message",
    [
        (dict(q=np.zeros((3, 2))), r"'q' is float64 of \(3, 2\), expected .* \(3, 1\)"),
        (dict(ts=np.zeros((3, 1))), r"'ts' is float64 of \(3, 1\), expected .* \(3,\)"),
        (
            dict(ts=np.array(1.0)),
            r"'ts' is float64 of \(\)|'q' is .* expected .* \(1,\)",
        ),
        (
            dict(tau=np.zeros((2, 1))),
            r"'tau' is float64 of \(2, 1\), expected .*\(3, 1",
        ),
        (dict(f_ext=np.zeros((3, 6))), r"'f_ext' is .* expected .* \(3, 1, 6\) for ro"),
        (dict(qd=np.zeros((3, 1), int)), "'qd' is int64 of .* float32 or float64"),
        (dict(q=np.array("text")), "'q' is <U4 of"),
        (dict(qd=None), "'qd' is not there, expected float32"),
        (
            dict(dtype=np.array("int8")),
            "not hold a model: dtype is 'int8', expected 'fl",
        ),
        (dict(model=np.array("{")), "does not hold a model: Expecting property name"),
        (dict(model=np.array("[" * 9999)), "does not hold a model: maximum recursion"),
        (dict(model=np.zeros(3)), "does not hold a model: can only convert an array"),
        (dict(model=np.array("{}")), "not hold a model: model has no 'bodies': add it"),
    ],
)
def test_arrays_that_do_not_fit_the_model_are_named(change, message, tmp_path):
    ts, q = np.linspace(0, 1, 3), np.zeros((3, 1))
    trajectory = SimpleNamespace(ts=ts, q=q, qd=q)
    path = save_trajectory(tmp_path, jd.robots.chain(1), trajectory)
    with np.load(path) as stored:
        arrays = {k: x for k, x in {**stored, **change}.items() if x is not None}
    np.savez(path, **arrays)
    with pytest.raises(ValueError, match=rf"trajectory\.npz.*{message}"):
        load_trajectory(path)


def test_the_summary_is_json_without_exceptions(tmp_path):
    statistics = {"steps": np.int32(3), "error": jnp.asarray(np.inf), "q": [np.nan, 1]}
    path = save_summary(
        tmp_path, config={"a": 1}, dtype="float64", statistics=statistics
    )

    def refuse(word):
        raise AssertionError(word)

    found = json.loads(path.read_text(), parse_constant=refuse)
    assert found["statistics"] == {"steps": 3, "error": "inf", "q": ["nan", 1]}
    assert found["versions"].keys() >= {"jaxdyn", "jax", "jaxlib", "diffrax", "python"}
    assert found["device"] and found["platform"] and found["config"] == {"a": 1}


@pytest.fixture
def dead(tmp_path):
    """The folder of a process that was killed while it wrote, a while ago."""
    code = (
        "import os, pathlib, runpy, sys\n"
        "draft = runpy.run_path(sys.argv[1])['draft']\n"
        "with draft(pathlib.Path(sys.argv[2])) as (new, old):\n"
        "    print(new, flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    command = [sys.executable, "-c", code, _drafts.__file__, str(tmp_path / "run")]
    folder = Path(subprocess.run(command, capture_output=True, text=True).stdout[:-1])
    os.utime(folder / ".lock", (0, 0))
    return folder


def test_folders_of_killed_processes_are_swept_and_all_others_stay(dead, tmp_path):
    (tmp_path / ".run.notes.new").mkdir()
    with (
        pytest.raises(ValueError, match="run exists"),
        new_results(tmp_path / "run") as live,
    ):
        assert not dead.exists()
        os.utime(live / ".lock", (0, 0))
        write(tmp_path / "run", "fast")
        assert live.exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == [".run.notes.new", "run"]


def test_earlier_results_come_back_after_a_kill_between_two_names(dead, tmp_path):
    old = dead.with_suffix(".old")
    write(old, "1")
    with pytest.raises(ValueError, match="run exists"):
        write(tmp_path / "run", "2")
    assert (tmp_path / "run" / "a").read_text() == "1"
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
