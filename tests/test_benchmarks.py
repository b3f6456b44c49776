import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from benchmarks.bars import bars
from benchmarks.plan import Case
from benchmarks.problem import Robot
from benchmarks.report import publish, write_report
from benchmarks.robots import arm, humanoid, make, write
from benchmarks.run import Settings, run, run_case
from benchmarks.session import Contestant, Session, known_flags
from tests.reference import DATA


@pytest.fixture
def small_robot(tmp_path) -> Robot:
    return write(make("chain2"), tmp_path / "robots" / "chain2")


def test_robots_have_the_promised_degrees_of_freedom():
    assert (arm().nv, humanoid().nv, humanoid().n) == (7, 35, 30)


def test_urdf_and_mjcf_are_the_same_arm(tmp_path):
    robot = write(arm(), tmp_path / "arm")
    states = robot.states(1, "forward_dynamics")
    state = [jnp.asarray(states[name][0]) for name in ("q", "qd", "tau")]
    expected = jd.forward_dynamics(arm(), *state)
    for model in (jd.load_urdf(robot.urdf), jd.load_mjcf(robot.mjcf)):
        qdd = jd.forward_dynamics(model, *state)
        assert np.allclose(qdd, expected, rtol=1e-10, atol=1e-10)


def test_mjcf_is_the_same_humanoid(tmp_path):
    robot = write(humanoid(), tmp_path / "humanoid")
    read = jd.load_mjcf(robot.mjcf)
    q = jnp.asarray(robot.states(1, "mass_matrix")["q"][0])
    M = jax.jit(jd.mass_matrix)(humanoid(), q)
    assert read.names == humanoid().names
    assert np.allclose(jax.jit(jd.mass_matrix)(read, q), M, rtol=1e-10, atol=1e-10)


def test_small_batches_begin_large_ones(small_robot):
    few, many = (small_robot.states(n, "rollout") for n in (2, 5))
    for name, values in few.items():
        assert np.array_equal(values, many[name][:2])


def ask(session: Session, **request) -> dict:
    answer = session.ask(60.0, **request)
    assert "failed" not in answer, answer
    return answer


def test_a_worker_checks_and_times_jaxdyn(small_robot, tmp_path):
    cores = sorted(os.sched_getaffinity(0))[:1]
    who = Contestant("jaxdyn", "float64")
    session = Session(who, cores, tmp_path / "workers.log")
    row = {"row": "inverse_dynamics"}
    try:
        ask(session, do="load", folder=str(small_robot.folder))
        assert ask(session, do="ways", **row)["ways"] == [""]
        ask(session, do="refer", **row)
        answer = ask(session, do="prepare", **row, way="", batch=4)
        assert answer["error"] == 0 and answer["memory"] > 0
        assert ask(session, do="time", **row, way="", calls=2)["seconds"] > 0
        assert set(ask(session, do="plain_calls")) == {"first", "second"}
        reference = small_robot.reference("inverse_dynamics")
        np.save(small_robot.folder / "inverse_dynamics.npy", reference + 1)
        wrong = session.ask(60.0, do="prepare", **row, way="", batch=4)
        assert "disagrees" in wrong["failed"]
        late = session.ask(1e-9, do="prepare", **row, way="", batch=4)
        assert late["failed"] == "over the limit of 1e-09 s" and session.late == 1
    finally:
        session.stop()


@pytest.mark.slow
def test_a_missing_library_is_reported(tmp_path):
    who = Contestant("no_such_library", "float64", "both")
    settings = Settings(tmp_path, [who])
    settings.say = lambda text: None
    records = run([Case("chain2", "mass_matrix", 4)], settings, lambda records: None)
    assert records == [] and "missing" in settings.missing["no_such_library"]
    (tmp_path / "results.json").write_text(
        json.dumps(synthetic([]) | {"missing": settings.missing})
    )
    assert "no_such_library: missing" in write_report(tmp_path)


def test_a_library_that_gave_up_is_reported_for_every_row(tmp_path):
    settings = Settings(tmp_path, [], say=lambda text: None)
    session = settings.session(Contestant("jaxdyn", "float64"))
    session.given_up = "over the limit"
    (record,) = run_case(Case("arm", "mass_matrix", 4), [session], settings)
    assert record["failed"] == "over the limit" and record["turns"] == []


def record(peer: str, seconds: float, **changes) -> dict:
    case = {"robot": "arm", "row": "forward_dynamics", "batch": 4096}
    who = {"peer": peer, "precision": "float64", "flags": "default", "way": ""}
    case |= {"all_cores": False} | {k: v for k, v in changes.items() if k in case}
    changes = {k: v for k, v in changes.items() if k not in case}
    turns = [seconds, seconds * 1.1, seconds * 0.9]
    return {"case": case, **who, "turns": turns, "error": 1e-15, "memory": 8} | changes


def synthetic(records: list) -> dict:
    machine = {"processor": "p", "cores": 2, "memory_gb": 1.0, "python": "3.11"}
    return {
        "kind": "quick subset",
        "asynchronous": False,
        "machine": machine,
        "versions": {"jaxdyn": "0"},
        "repeats": 3,
        "seconds": 60.0,
        "load_before": [0.0],
        "load_after": [0.0],
        "missing": {},
        "notes": {"pinocchio": "C++ loop"},
        "flags": {"default": "", "both": "--some_flag"},
        "records": records,
        "compile": [],
    }


def test_bars_take_the_best_way_of_the_best_peer(tmp_path):
    records = [
        record("jaxdyn", 1.0),
        record("pinocchio", 3.0, way="bindings"),
        record("pinocchio", 1.4, way="C++ loop"),
        record("frax", 9.0),
        record("frax", 4.0, flags="both"),
        record("adam", 5.0),
        record("brax", 0.1, turns=[], failed="disagrees: relative error 1.0e+00"),
    ]
    found = {bar.what: bar for bar in bars(synthetic(records))}
    start = "FD, 7 dof, batch 4096, one core, float64 / "
    assert found[start + "Pinocchio"].measured == pytest.approx(1.4)
    assert found[start + "Pinocchio"].is_met is False
    assert found[start + "best JAX peer"].measured == pytest.approx(4.0)
    assert found[start + "best JAX peer"].against == "frax (both)"
    assert found[start + "best JAX peer"].is_met is True
    assert found[start + "MuJoCo"].is_met is None


def test_the_report_is_complete_and_published_between_its_markers(tmp_path):
    records = [
        record(peer, n / 1e6, batch=n)
        for peer in ("jaxdyn", "frax")
        for n in (64, 1024, 4096, 16384)
    ]
    records += [record("mjx", 1.0, turns=[], failed="over the limit of 9 s")]
    (tmp_path / "results.json").write_text(json.dumps(synthetic(records)))
    text = write_report(tmp_path)
    assert "| forward dynamics, batch 64 | 1 | – | 1 |" in text
    assert "mjx: over the limit of 9 s" in text and "mjx has no number at all" in text
    assert (tmp_path / "throughput.png").exists()
    page = tmp_path / "docs" / "performance.md"
    page.parent.mkdir()
    page.write_text("mine\n<!-- results -->\nold\n<!-- /results -->\nalso mine\n")
    publish(text, tmp_path, page)
    published = page.read_text()
    assert published.startswith("mine\n") and published.endswith("\nalso mine\n")
    assert "old" not in published and "images/performance_throughput.png" in published
    assert (tmp_path / "docs" / "images" / "performance_throughput.png").exists()


@pytest.mark.parametrize(
    ("peers", "batches"),
    [(["jaxdyn"], (64, 1024, 4096, 16384)), (["jaxdyn", "frax"], (64, 1024, 4096))],
)
def test_a_plot_of_one_library_or_of_three_points_is_not_published(
    tmp_path, peers, batches
):
    records = [record(peer, n / 1e6, batch=n) for peer in peers for n in batches]
    (tmp_path / "results.json").write_text(json.dumps(synthetic(records)))
    (tmp_path / "throughput.png").write_bytes(b"of an earlier run")
    (tmp_path / "docs" / "images").mkdir(parents=True)
    page = tmp_path / "docs" / "performance.md"
    page.write_text("<!-- results --><!-- /results -->")
    published = tmp_path / "docs" / "images" / "performance_throughput.png"
    published.write_bytes(b"of the full run")
    publish(write_report(tmp_path), tmp_path, page)
    assert published.read_bytes() == b"of the full run"
    assert "throughput.png" not in page.read_text()


def recorded_run() -> dict:
    """`python -m benchmarks --bars` with jaxdyn, chain50, compile times: a part."""
    return json.loads((DATA / "benchmark_run" / "results.json").read_text())


def test_a_recorded_run_gives_a_report(tmp_path):
    (tmp_path / "results.json").write_text(json.dumps(recorded_run()))
    text = write_report(tmp_path)
    assert (tmp_path / "report.md").read_text() == text
    for line in (
        "| forward dynamics, batch 64 | 5.47 |",
        "- forward_dynamics of the arm outside of jit: first call",
        "| jaxdyn, forward dynamics | 1.01 | 0.95 |",
        "by the state / FD's, n = 50 | ≤ 2.5 | 2.23 | yes |",
    ):
        assert line in text


def test_a_start_that_failed_is_reported(tmp_path):
    run = recorded_run()
    run["startup"]["plain_calls"] = {"failed": "over the limit of 60 s"}
    (tmp_path / "results.json").write_text(json.dumps(run))
    assert "outside of jit: over the limit of 60 s" in write_report(tmp_path)


def test_flags_that_xla_does_not_know_are_left_out():
    known = "--xla_cpu_multi_thread_eigen=false"
    assert known_flags(f"--xla_no_such_flag=1 {known}") == known


def test_the_parent_does_not_load_jax():
    """Timings of the workers must not share the machine with a second JAX."""
    code = "import sys, benchmarks.__main__; assert 'jax' not in sys.modules"
    root = Path(__file__).parent.parent
    subprocess.run([sys.executable, "-c", code], check=True, cwd=root)
