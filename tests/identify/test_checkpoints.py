import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import optax
import pytest

import jaxdyn as jd
from jaxdyn.identify import (
    Acceleration,
    Gaussian,
    LevenbergMarquardt,
    Optax,
    Simulated,
    Torque,
    choose,
    fit,
)
from jaxdyn.identify._checkpoints import Checkpoints
from jaxdyn.io import Log

STEPS = 3000


@pytest.fixture(autouse=True)
def usual_types():
    """Optax mixes types of numbers."""
    with jax.numpy_dtype_promotion("standard"):
        yield


def pendulum(joint="revolute"):
    b = jd.ModelBuilder("pendulum")
    rod = jd.Inertial.box(1.0, (0.1, 0.1, 0.5)).moved(np.eye(3), np.array([0, 0, -0.3]))
    effects = dict(damping=0.1, friction=0.2)
    b.add_body("rod", joint=joint, axis=(0, 1, 0), inertial=rod, **effects)
    return b.build()


def problem():
    true, rng = pendulum(), np.random.default_rng(0)
    q, qd, qdd = (rng.normal(size=(50, 1)) for _ in range(3))
    tau = jax.vmap(jd.inverse_dynamics, (None, 0, 0, 0))(true, q, qd, qdd)
    log = Log(
        np.arange(50.0), q, qd, qdd, np.asarray(tau) + 0.1 * rng.normal(size=tau.shape)
    )
    return choose(true, ["*.damping", "*.friction"], start={"*": 0.5}), log


def long_fit(folder):
    chosen, log = problem()
    solver = Optax(optax.adam(1e-3), steps=STEPS, batch=10, every=25)
    return fit(chosen, Torque(), log, solver=solver, checkpoint=folder)


def start(folder):
    code = (
        "import jax; jax.config.update('jax_enable_x64', True)\n"
        "from tests.identify.test_checkpoints import long_fit\n"
        f"found = long_fit({str(folder)!r})\n"
        "print('theta', *(float(x).hex() for x in found.theta))\n"
        "print('losses', *(float(x).hex() for x in found.losses))"
    )
    root = Path(__file__).parents[2]
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=root,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(root)},
    )


@pytest.mark.slow
def test_a_killed_fit_goes_on_and_ends_bit_by_bit_as_if_it_had_not_been(tmp_path):
    rng = np.random.default_rng()  # a random time, as the one who kills does not ask
    broken = start(tmp_path / "broken")
    while not list((tmp_path / "broken/states").glob("[0-9]*")):
        time.sleep(0.01)
        if broken.poll() is not None:
            break
    time.sleep(rng.uniform(0, 1))
    broken.send_signal(signal.SIGKILL)
    broken.communicate()
    assert broken.returncode == -signal.SIGKILL
    assert (tmp_path / "broken").exists()
    again, whole = start(tmp_path / "broken"), start(tmp_path / "whole")
    found, expected = (x.communicate(timeout=300)[0] for x in (again, whole))
    assert found == expected and found.startswith("theta")
    assert not (tmp_path / "broken").exists()


@pytest.mark.first
@pytest.mark.parametrize("solver", [LevenbergMarquardt(every=2), None])
def test_a_search_goes_on_from_its_last_state(tmp_path, solver):
    chosen, log = problem()
    solver = solver or Optax(optax.adam(1e-2), steps=60, every=20)

    class Stop(Exception):
        pass

    def stopping(self, step, state, save=jd.identify._checkpoints.Checkpoints.save):
        save(self, step, state)
        if step >= (2 if isinstance(solver, LevenbergMarquardt) else 40):
            raise Stop

    expected = fit(chosen, Torque(), log, solver=solver)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(Stop):
        patch.setattr(jd.identify._checkpoints.Checkpoints, "save", stopping)
        fit(chosen, Torque(), log, solver=solver, checkpoint=tmp_path / "x")
    found = fit(chosen, Torque(), log, solver=solver, checkpoint=tmp_path / "x")
    np.testing.assert_array_equal(found.theta, expected.theta)
    np.testing.assert_array_equal(found.losses, expected.losses)
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_every_part_of_a_fit_is_seen_in_its_digest(tmp_path, monkeypatch):
    chosen, log = problem()
    model, names = chosen.nominal, ["*.damping", "*.friction"]

    class Seen(Exception):
        pass

    def see(self, folder, problem):
        raise Seen(problem)

    def scaled(factor):
        return jax.jit(lambda model, q, qd: factor * q)

    def rate(factor):
        return lambda step: 0.1 / (step + factor)

    def of(parameters=chosen, residual=None, log=log, solver=None, **options):
        given = parameters, residual or Torque(), log
        with pytest.raises(Seen) as found:
            fit(*given, solver=solver, checkpoint=tmp_path, **options)
        return found.value.args[0]

    monkeypatch.setattr(Checkpoints, "__init__", see)
    moved = Log(log.ts, log.q + 1e-9, log.qd, log.qdd, log.tau)
    prior = Gaussian("*.damping", 0.1)
    others = [lambda k: 0.1 / (k + 2), lambda k: 0.1 / (k + 3)]  # but for a number
    once = dict(solver=Optax(optax.adam(1e-2)))
    fits = [
        of(),
        of(log=moved),
        of(validation=0.3),
        of(choose(model, names)),
        of(choose(pendulum("prismatic"), names)),
        of(choose(model, names[::-1], start={"*": 0.5}, without="*.friction")),
        of(residual=Torque(2.0)),
        of(residual=Torque(method="gibbs_appell")),
        of(residual=Acceleration()),
        of(residual=Simulated(length=5), **once),
        of(residual=Simulated(length=5, free_start=True), **once),
        of(residual=Simulated(length=5, options={"max_steps": 99}), **once),
        *(
            of(residual=Simulated(length=5, measure=scaled(x), y=log.q), **once)
            for x in (2.0, 3.0)
        ),
        of(priors=prior),
        of(priors=Gaussian("*.friction", 0.1)),
        of(priors=Gaussian("*.damping", 0.1, relative=True)),
        of(solver=LevenbergMarquardt(rtol=1e-6)),
        of(solver=LevenbergMarquardt(steps=7)),
        *(of(solver=Optax(optax.adam(x))) for x in (1e-2, 1e-3, rate(9.0), *others)),
        of(solver=Optax(optax.adam(1e-2), seed=1, batch=3)),
        of(solver=Optax(optax.adam(1e-2), patience=3)),
        of(solver=Optax(optax.sgd(1e-2))),
    ]
    assert len(set(fits)) == len(fits)
    assert of() == fits[0] and of(**once) in fits
    assert of(solver=Optax(optax.adam(rate(9.0)))) in fits


def test_folders_of_others_are_left_alone(tmp_path):
    chosen, log = problem()
    solver = Optax(optax.adam(1e-2), steps=20, every=20)
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters/a.txt").write_text("dear")
    with pytest.raises(ValueError, match="is not empty and has no states of a fit"):
        fit(chosen, Torque(), log, solver=solver, checkpoint=tmp_path / "letters")
    assert (tmp_path / "letters/a.txt").read_text() == "dear"
    (tmp_path / "other").mkdir()
    (tmp_path / "other/problem.json").write_text('"another"')
    with pytest.raises(ValueError, match="has the states of another fit"):
        fit(chosen, Torque(), log, solver=solver, checkpoint=tmp_path / "other")
