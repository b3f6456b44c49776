import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.dynamics import (
    bias_forces,
    factor,
    forward_dynamics,
    gravity_forces,
    inverse_dynamics,
    mass_matrix,
)
from tests.models import every_joint, random_state
from tests.reference import cases, load, relative_error

FILES = ("random_serial_chains", "random_trees", "random_multidof_joints", "gripper")
CASES = {case["model"]["name"]: case for case in cases(*FILES)}
SHOWN = (
    "random_serial_n7",
    "random_spherical_chain",
    "random_floating_chain_revolute",
    "gripper",
)
RECURSIVE = ("denoc", "articulated")


def everything(model, q, qd, qdd, tau, f_ext):
    """Each quantity of the reference files, by all methods, with few walks."""
    rest, none = jnp.zeros_like(qd), jnp.zeros_like(f_ext)
    runs = {
        "tau_id": (qd, qdd, none),
        "tau_id_fext": (qd, qdd, f_ext),
        "bias": (qd, rest, none),
        "gravity_torque": (rest, rest, none),
    }

    def inverse(qd, qdd, f):
        return inverse_dynamics(model, q, qd, qdd, f_ext=f)

    def forward(method):
        def accelerations(f):
            return forward_dynamics(model, q, qd, tau, f_ext=f, method=method)

        return jax.vmap(accelerations)(jnp.stack([none, f_ext]))

    forces = jax.vmap(inverse)(*map(jnp.stack, zip(*runs.values(), strict=True)))
    found = {key: [force] for key, force in zip(runs, forces, strict=True)}
    udu = factor(model, q)
    found["coriolis"] = [found["bias"][0] - found["gravity_torque"][0]]
    found["M"] = [mass_matrix(model, q), udu.matrix()]
    found["Minv"] = [udu.inverse()]
    accelerations = [forward(method) for method in (*RECURSIVE, "composite")]
    found["qdd_fd"] = [both[0] for both in accelerations]
    found["qdd_fd_fext"] = [both[1] for both in accelerations]
    return found


@pytest.mark.reference
@pytest.mark.parametrize("name", SHOWN)
def test_dynamics_agree_with_independent_software(name):
    case = CASES[name]
    model = jd.from_dict(case["model"], check_inertia=False)
    run = jax.jit(everything)
    for s in case["states"]:
        inputs = [jnp.asarray(s[key]) for key in ("q", "qd", "qdd", "tau")]
        f_ext = jnp.asarray(s.get("fext_world", np.zeros((model.n, 6))))
        errors = {
            key: max(relative_error(value, s[key]) for value in values)
            for key, values in run(model, *inputs, f_ext).items()
            if key in s
        }
        assert max(errors.values()) < max(1e-12, 1e-15 * s["cond_M"]), errors


@pytest.mark.reference
@pytest.mark.parametrize("case, tolerance", [(0, 1e-12), (1, 1e-11), (2, 5e-11)])
def test_articulated_bodies_stay_accurate_on_long_chains(case, tolerance):
    case = load("protein_chain")["cases"][case]
    model = jd.from_dict(case["model"])
    run = jax.jit(lambda *state: forward_dynamics(model, *state, method="articulated"))
    for s in case["states"]:
        qdd = run(*(jnp.asarray(s[key]) for key in ("q", "qd", "tau")))
        assert relative_error(qdd, s["qdd_fd"]) < tolerance


@pytest.mark.reference
@pytest.mark.parametrize("name", ["random_spherical_chain"])
def test_derivatives_along_tangent_steps_agree_with_independent_software(name):
    case = CASES[name]
    model, s = jd.from_dict(case["model"]), case["states"][0]
    q, qd, tau = (jnp.asarray(s[key]) for key in ("q", "qd", "tau"))

    def accelerations(d, qd):
        return forward_dynamics(model, jd.integrate(model, q, d), qd, tau)

    by_q, by_qd = jax.jit(jax.jacfwd(accelerations, (0, 1)))(jnp.zeros(model.nv), qd)
    assert relative_error(by_q, s["dqdd_dq"]) < 1e-9
    assert relative_error(by_qd, s["dqdd_dqd"]) < 1e-9


@pytest.mark.reference
def test_gravity_loads_the_puma_560_as_published():
    data = load("mata_puma_line")["gravity_torque_at_qn"]
    found = gravity_forces(jd.robots.puma_560(), jnp.asarray(data["q"]))
    assert relative_error(found, data["tau"]) < 1e-14


def with_effects(model, rng):
    """The same model with springs, friction and armature in every joint."""
    names = ("armature", "damping", "friction", "stiffness")
    values = [jnp.asarray(rng.uniform(0.1, 1.0, model.nv)) for _ in names]
    return eqx.tree_at(lambda m: [getattr(m, name) for name in names], model, values)


def test_forward_inverts_inverse_dynamics_for_every_joint_and_effect(rng):
    model = with_effects(every_joint(2), rng)
    q, qd, qdd = random_state(model, rng)
    f_ext = jnp.asarray(rng.normal(size=(model.n, 6)))
    base = jd.BaseMotion(*(jnp.asarray(x) for x in rng.normal(size=(4, 3))))

    @jax.jit
    def there_and_back(q, qd, qdd):
        options = dict(f_ext=f_ext, base=base)
        tau = inverse_dynamics(model, q, qd, qdd, **options)
        return [
            forward_dynamics(model, q, qd, tau, method=method, **options)
            for method in RECURSIVE
        ]

    for found in there_and_back(q, qd, qdd):
        np.testing.assert_allclose(found, qdd, atol=1e-10)


def test_the_factor_is_unit_upper_triangular_with_positive_pivots(rng):
    model = with_effects(jd.robots.random_tree(4, 12, floating_base=True), rng)
    q, _, _ = random_state(model, rng)
    f = jax.jit(factor)(model, q)
    U, M = f.U, mass_matrix(model, q)
    np.testing.assert_array_equal(U, np.triu(U))
    np.testing.assert_array_equal(np.diagonal(U), 1.0)
    assert f.D.min() > 0
    np.testing.assert_allclose(f.log_det(), np.linalg.slogdet(M)[1], rtol=1e-13)


def test_the_factor_solves_many_right_hand_sides(rng):
    model = jd.robots.puma_560()
    q, b = jnp.asarray(rng.normal(size=6)), jnp.asarray(rng.normal(size=(6, 4)))
    x = factor(model, q).solve(b)
    np.testing.assert_allclose(mass_matrix(model, q) @ x, b, atol=1e-12)


def test_a_right_hand_side_of_the_wrong_length_is_an_error():
    with pytest.raises(ValueError, match=r"b has shape \(5,\), expected \(6,\)"):
        factor(jd.robots.puma_560(), jnp.zeros(6)).solve(jnp.zeros(5))


def test_an_unknown_method_is_an_error_that_names_the_known_ones():
    model, zero = jd.robots.puma_560(), jnp.zeros(6)
    with pytest.raises(ValueError, match="'fast', expected one of: denoc, articulated"):
        forward_dynamics(model, zero, zero, zero, method="fast")


def test_friction_opposes_motion_and_a_spring_pulls_to_its_rest():
    b = jd.ModelBuilder("joint", gravity=(0, 0, 0))
    disc = jd.Inertial.cylinder(1.0, 0.1, 0.1)
    b.add_body("disc", inertial=disc, friction=2.0, stiffness=3.0, rest=0.5)
    tau = bias_forces(b.build(), jnp.array([1.5]), jnp.array([10.0]))
    np.testing.assert_allclose(tau, [2.0 + 3.0], rtol=1e-7)  # smooth sign: 1 - 5e-9
