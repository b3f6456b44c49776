import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.algorithms.kinematics import body_motions
from jaxdyn.algorithms.loops import loop_rows, row_forces, row_rates
from jaxdyn.algorithms.loops import second_rates as rates_of_rates
from jaxdyn.model import CUT_JOINTS
from tests.models import fork, random_rotation, random_state
from tests.reference import cases, relative_error

MECHANISMS = cases("closed_loops", "stewart_gough")


@pytest.fixture(scope="module")
def open_loops():
    """A small tree and every cut joint, none of them closed."""
    rng, model = np.random.default_rng(5), fork()
    for joint in CUT_JOINTS:
        a, b = rng.choice(np.arange(-1, 3), 2, replace=False)
        frames = [(random_rotation(rng), rng.normal(size=3)) for _ in "ab"]
        model = model.with_loop(int(a), frames[0], int(b), frames[1], joint)
    return model, *random_state(model, rng)


def test_a_world_axis_can_be_left_out(open_loops):
    model, q, _, _ = open_loops
    point = model.without_loops().with_loop(0, (1, 2, 3), 2, (0, 0, 1), axes=(2, 0))
    full = model.without_loops().with_loop(0, (1, 2, 3), 2, (0, 0, 1))
    residual = jd.loop_residual(full, q)
    np.testing.assert_allclose(jd.loop_residual(point, q), residual[jnp.array([2, 0])])


def test_the_jacobian_is_the_derivative_of_the_residual(open_loops):
    model, q, _, _ = open_loops
    moved = jax.jit(
        jax.jacfwd(lambda d: jd.loop_residual(model, jd.integrate(model, q, d)))
    )
    Psi = jd.loop_jacobian(model, q)
    np.testing.assert_allclose(Psi, moved(jnp.zeros(model.nv)), atol=1e-14)


def test_rates_and_forces_of_rows_are_products_with_the_jacobian(open_loops):
    model, q, qd, _ = open_loops
    forces, zero = np.random.default_rng(1).normal(size=model.nc), np.zeros(model.nv)

    @jax.jit
    def run(q, qd, forces, zero):
        rows = loop_rows(model, jd.forward_kinematics(model, q))
        moved = jd.body_velocities(model, q, qd)
        f_ext = row_forces(model, rows, forces)
        less = jd.inverse_dynamics(model, q, zero, zero, f_ext=f_ext)
        tau = jd.inverse_dynamics(model, q, zero, zero) - less
        rates = row_rates(model, rows, moved.v, moved.w)
        return rates, tau, jd.loop_jacobian(model, q)

    rates, tau, Psi = run(q, qd, forces, zero)
    np.testing.assert_allclose(rates, Psi @ qd, atol=1e-13)
    np.testing.assert_allclose(tau, Psi.T @ forces, atol=1e-12)


@pytest.mark.slow
def test_second_rates_are_those_of_the_rates(open_loops):
    model, q, qd, qdd = open_loops

    @jax.jit
    def run(q, qd, qdd):
        rate = jd.configuration_rate(model, q, qd)
        along = jax.jvp(
            lambda q, qd: jd.loop_jacobian(model, q) @ qd, (q, qd), (rate, qdd)
        )[1]
        expected = jd.loop_jacobian(model, q) @ qdd - jd.loop_bias(model, q, qd)
        found = rates_of_rates(model, body_motions(model, q, qd, qdd))
        return found, along, expected

    found, along, expected = run(q, qd, qdd)
    np.testing.assert_allclose(found, along, atol=1e-12)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_loop_wrenches_do_the_work_of_the_loop_forces():
    case = MECHANISMS[-1]  # closed, so that both frames are at one place
    model = jd.from_dict(case["model"])
    q, qd, forces = (jnp.asarray(case["states"][0][k]) for k in ("q", "qd", "tau"))
    forces = jnp.resize(forces, model.nc)
    wrench = jd.loop_wrenches(model, q, forces)
    moved, at = jd.body_velocities(model, q, qd), jd.forward_kinematics(model, q)
    power = 0.0
    for k, loop in enumerate(model.loops):
        for body, point, sign in (
            (loop.body_a, loop.p_a, 1),
            (loop.body_b, loop.p_b, -1),
        ):
            v = moved.v[body] + jnp.cross(moved.w[body], at.R[body] @ point)
            power += sign * (wrench[k, :3] @ v + wrench[k, 3:] @ moved.w[body])
    expected = forces @ (jd.loop_jacobian(model, q) @ qd)
    assert float(power) == pytest.approx(float(expected), abs=1e-12)


@pytest.mark.first
@pytest.mark.reference
@pytest.mark.parametrize("case", MECHANISMS, ids=lambda case: case["model"]["name"])
def test_kinematics_of_loops_agree_with_independent_software(case):
    model = jd.from_dict(case["model"])
    for state in case["states"]:
        q, qd = jnp.asarray(state["q"]), jnp.asarray(state["qd"])
        assert relative_error(jd.loop_jacobian(model, q), state["J"]) < 1e-15
        assert relative_error(-jd.loop_bias(model, q, qd), state["Jdot_qd"]) < 2e-15
        np.testing.assert_allclose(jd.loop_residual(model, q), state["phi"], atol=1e-15)
