"""What every public function must survive, from one list."""

import inspect
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from tests.models import (
    every_joint,
    fork_with_massless_body,
    massless_middle,
    random_state,
)


def theta(model):
    """Ten numbers for each body."""
    return jnp.concatenate([model.com, model.inertia[:, 0], model.inertia[:, 1]], 1)[
        :, jnp.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 0])
    ]


def moving(x):
    return jd.BaseMotion(v=x, w=x, dv=x, dw=x)


FUNCTIONS = {  # name: (function of model and arrays, the arrays by name)
    "forward_kinematics": (jd.forward_kinematics, "q"),
    "frame_poses": (jd.frame_poses, "q"),
    "body_velocities": (jd.body_velocities, "q qd"),
    "body_accelerations": (jd.body_accelerations, "q qd qdd"),
    "body_accelerations_on_a_moving_base": (
        lambda m, q, qd, qdd, base: jd.body_accelerations(
            m, q, qd, qdd, base=moving(base)
        ),
        "q qd qdd base",
    ),
    "to_pi": (lambda m: jax.vmap(jd.to_pi)(m.mass, m.com, m.inertia), ""),
    "from_pi": (lambda m: jax.vmap(jd.from_pi)(jd.inertial_parameters(m)), ""),
    "pseudo_inertia": (
        lambda m: jax.vmap(jd.pseudo_inertia)(jd.inertial_parameters(m)),
        "",
    ),
    "from_log_cholesky": (lambda m: jax.vmap(jd.from_log_cholesky)(theta(m)), ""),
    "jacobian": (lambda m, q, point: jd.jacobian(m, q, m.n - 1, point), "q point"),
    "jacobian_dot_qd": (
        lambda m, q, qd, point: jd.jacobian_dot_qd(m, q, qd, m.n - 1, point),
        "q qd point",
    ),
    "center_of_mass": (jd.center_of_mass, "q"),
    "integrate": (jd.integrate, "q d"),
    "difference": (jd.difference, "q0 q1"),
    "configuration_rate": (jd.configuration_rate, "q qd"),
    "neutral": (jd.neutral, ""),
    "inertial_parameters": (jd.inertial_parameters, ""),
    "inverse_dynamics": (jd.inverse_dynamics, "q qd qdd"),
    "inverse_dynamics_by_gibbs_appell": (
        lambda *x: jd.inverse_dynamics(*x, method="gibbs_appell"),
        "q qd qdd",
    ),
    "inverse_dynamics_by_denoc": (
        lambda *x: jd.inverse_dynamics(*x, method="denoc"),
        "q qd qdd",
    ),
    "inverse_dynamics_by_parallel": (
        lambda *x: jd.inverse_dynamics(*x, method="parallel"),
        "q qd qdd",
    ),
    "body_accelerations_by_parallel": (
        lambda *x: jd.body_accelerations(*x, method="parallel"),
        "q qd qdd",
    ),
    "forward_kinematics_by_parallel": (
        lambda m, q: jd.forward_kinematics(m, q, method="parallel"),
        "q",
    ),
    "bias_forces": (jd.bias_forces, "q qd"),
    "gravity_forces": (jd.gravity_forces, "q"),
    "coriolis_matrix": (jd.coriolis_matrix, "q qd"),
    "joint_reactions": (jd.joint_reactions, "q qd qdd"),
    "mass_matrix": (jd.mass_matrix, "q"),
    "mass_matrix_by_gibbs_appell": (
        lambda m, q: jd.mass_matrix(m, q, method="gibbs_appell"),
        "q",
    ),
    "mass_matrix_by_noc": (lambda m, q: jd.mass_matrix(m, q, method="noc"), "q"),
    "mass_matrix_by_denoc": (lambda m, q: jd.mass_matrix(m, q, method="denoc"), "q"),
    "mass_matrix_by_parallel": (
        lambda m, q: jd.mass_matrix(m, q, method="parallel"),
        "q",
    ),
    "factor": (lambda m, q: jd.factor(m, q).log_det(), "q"),
    "forward_dynamics": (jd.forward_dynamics, "q qd tau"),
    "forward_dynamics_by_parallel": (
        lambda *x: jd.forward_dynamics(*x, method="parallel", chunk=1),
        "q qd tau",
    ),
    "forward_dynamics_in_a_wind_on_a_moving_base": (
        lambda m, q, qd, tau, f_ext, base: jd.forward_dynamics(
            m,
            q,
            qd,
            tau,
            f_ext=f_ext,
            base=moving(base),
        ),
        "q qd tau f_ext base",
    ),
    "linearize": (jd.linearize, "q qd tau"),
    "inverse_dynamics_derivatives": (jd.inverse_dynamics_derivatives, "q qd qdd"),
    "rollout": (
        lambda m, q, qd, tau: jd.rollout(m, q, qd, jnp.stack([tau, -tau]), 1e-3),
        "q qd tau",
    ),
    **{
        f"rollout_by_{integrator}": (
            lambda m, q, qd, tau, integrator=integrator: jd.rollout(
                m, q, qd, jnp.stack([tau, -tau]), 1e-3, integrator=integrator
            ),
            "q qd tau",
        )
        for integrator in ("rk4", "implicit_midpoint")
    },
    "regressor": (jd.regressor, "q qd qdd"),
    "dynamic_parameters": (jd.dynamic_parameters, ""),
    "kinetic_energy": (jd.kinetic_energy, "q qd"),
    "potential_energy": (jd.potential_energy, "q"),
    "lagrangian": (jd.lagrangian, "q qd"),
    "gibbs_function": (jd.gibbs_function, "q qd qdd"),
    "power": (
        lambda m, q, qd, tau, f_ext: jd.power(m, q, qd, tau, f_ext=f_ext),
        "q qd tau f_ext",
    ),
    "momentum": (jd.momentum, "q qd"),
    "centroidal_momentum_matrix": (jd.centroidal_momentum_matrix, "q"),
    "natural_complement": (jd.natural_complement, "q"),
    "joint_constraints": (jd.joint_constraints, "q"),
    "denoc_matrices": (jd.denoc_matrices, "q"),
    "to_mujoco": (jd.to_mujoco, "q qd"),
    "from_mujoco": (jd.from_mujoco, "qpos qvel"),
}
ELSEWHERE = {  # not a function of a state: tested where they are built
    "actuate",  # tests/algorithms/forces/test_actuate.py
    "from_mujoco_model",
    "random_configuration",
    "singular_joints",
    "to_dict",
    "to_mjcf",
    "to_urdf",
    "with_inertial_parameters",
    "to_log_cholesky",  # only for bodies with a positive definite pseudo-inertia
    "parameter_names",
    "batched",
    "check_installation",
    "checked_dynamics",  # tests/dynamics/test_refine.py
    "inverse_kinematics",
    "joint_limit_event",
    "power_balance",
    "simulate",
    # of models with loops: tests/dynamics, tests/algorithms/loops
    "check_loops",
    "close_loops",
    "constrained_dynamics",
    "constrained_inverse_dynamics",
    "dependent_rows",
    "loop_bias",
    "loop_complement",
    "loop_condition",
    "loop_iterations",
    "loop_jacobian",
    "loop_residual",
    "loop_wrenches",
    "project_configuration",
    "project_velocity",
    "reduced_mass_matrix",
}
ELSEWHERE |= {"step", "stable_step", "joint_stops", "axes", "randomize"}
ELSEWHERE |= {"frame_pose", "frame_velocity", "frame_acceleration", "point_wrench"}
ELSEWHERE |= {"pose_error", "rotation_vector", "task_space"}
ALIASES = {"aba", "crba", "rnea"}
LARGE = {  # results with a row or a block for every body
    "coriolis_matrix",
    "centroidal_momentum_matrix",
    "denoc_matrices",
    "inverse_dynamics_derivatives",
    "joint_constraints",
    "linearize",
    "mass_matrix",
    "mass_matrix_by_denoc",
    "mass_matrix_by_gibbs_appell",
    "mass_matrix_by_noc",
    "mass_matrix_by_parallel",
    "natural_complement",
    "regressor",
    "rollout_by_implicit_midpoint",
}
# What is in every run; `make test-all` asks everything of every function. Other ways to
# the same quantity, and what is made of the same walks, follow from these.
CURVED = set(
    "forward_dynamics kinetic_energy jacobian integrate difference "
    "forward_kinematics".split()
)
OTHER_WAYS = {"lagrangian", "natural_complement"} | {
    n for n in FUNCTIONS if "_by_" in n
}
IN_EVERY_RUN = {
    "types": FUNCTIONS.keys() - OTHER_WAYS,
    "jit": CURVED,
    "constants": {"forward_dynamics", "regressor"},
    "vmap": CURVED | {"inverse_dynamics", "mass_matrix", "regressor", "linearize"},
    "slopes": CURVED
    | set(
        "body_accelerations_on_a_moving_base to_pi from_pi pseudo_inertia "
        "from_log_cholesky center_of_mass configuration_rate neutral "
        "inertial_parameters inverse_dynamics mass_matrix dynamic_parameters "
        "potential_energy momentum to_mujoco from_mujoco".split()
    ),
    "curvatures": CURVED,
}


def each_function(kind, without=()):
    """All functions; those that are not in every run for this kind of test are slow."""
    return pytest.mark.parametrize(
        "name",
        [
            pytest.param(
                name, marks=[] if name in IN_EVERY_RUN[kind] else [pytest.mark.slow]
            )
            for name in FUNCTIONS
            if name not in without
        ],
        scope="module",  # one function after another: its tests share a program
    )


def arrays(name, model, rng, at_rest=False):
    q, qd, qdd = random_state(model, rng)
    if at_rest:
        q, qd, qdd = jd.neutral(model), jnp.zeros_like(qd), jnp.zeros_like(qdd)
    other, _, _ = random_state(model, rng)
    q1 = q if at_rest else other
    point, base = (jnp.asarray(x) for x in rng.normal(size=(2, 3)))
    f_ext = jnp.asarray(rng.normal(size=(model.n, 6)))
    values = dict(f_ext=f_ext)
    values |= dict(q=q, qd=qd, qdd=qdd, d=qd, q0=q, q1=q1, point=point, base=base)
    values |= dict(qpos=q, qvel=qd, tau=qdd)
    return tuple(values[key] for key in FUNCTIONS[name][1].split())


def scalar(name, model, rng):
    """A random combination of all results, as a function of the model and arrays."""
    function = FUNCTIONS[name][0]
    shapes = jax.eval_shape(function, model, *arrays(name, model, rng))
    weights = [jnp.asarray(rng.normal(size=x.shape)) for x in jax.tree.leaves(shapes)]

    def combination(model, args):
        results = jax.tree.leaves(function(model, *args))
        return sum(jnp.vdot(w, x) for w, x in zip(weights, results, strict=True))

    return combination


def direction(x, rng):
    """A random tangent of (model, arrays), a tenth of the size of each model leaf.

    Zero for infinite leaves (limits).
    """

    def tangent(x, size):
        return np.where(np.isfinite(x), size * rng.normal(size=x.shape), 0)

    def relative(leaf):
        return tangent(leaf, 0.1 * (np.abs(leaf).max(initial=0) or 1.0))

    model, arrays = x
    return jax.tree.map(relative, model), jax.tree.map(
        lambda a: tangent(a, 1.0), arrays
    )


def smooth_joints(joints):
    """A chain with friction that differences can resolve at rest."""
    without = () if joints == "every joint" else REPEATED
    model = every_joint(1, without, branched=False)
    return eqx.tree_at(lambda m: m.friction_speed, model, replace_fn=jnp.ones_like)


def central_difference(f, x, dx, h=2e-3):
    """Sixth-order central difference of f along dx."""

    def at(k):
        return f(*jax.tree.map(lambda a, b: np.asarray(a) + k * h * b, x, dx))

    rows = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))
    return sum(c * (at(k) - at(-k)) for k, c in rows) / h


def assert_close(a, b, **tolerance):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, **tolerance)


def test_the_list_names_every_public_function_that_is_traced():
    public = {
        name
        for name, function in vars(jd).items()
        if inspect.isroutine(inspect.unwrap(function))
        and not name.startswith(("_", "load", "from_d"))
    }
    recipes = FUNCTIONS.keys() - vars(jd).keys()  # public functions used another way
    assert public == (FUNCTIONS.keys() - recipes) | ELSEWHERE | ALIASES


@cache
def compiled(name):
    return jax.jit(FUNCTIONS[name][0])


def small_model(name):
    """A tree; a chain, which compiles four times as fast, for matrices of slopes."""
    is_long = name in ("linearize", "inverse_dynamics_derivatives")
    return massless_middle() if is_long else fork_with_massless_body()


@each_function("jit")
def test_jit_changes_nothing(name, rng):
    model, function = fork_with_massless_body(), FUNCTIONS[name][0]
    args = arrays(name, model, rng)
    with jax.disable_jit():
        expected = function(model, *args)
    assert_close(compiled(name)(model, *args), expected, atol=1e-13)


@each_function("constants")
def test_a_model_may_be_closed_over(name, rng):
    model, function = small_model(name), FUNCTIONS[name][0]
    args = arrays(name, model, rng)
    constant = jax.jit(lambda *args: function(model, *args))
    assert_close(constant(*args), compiled(name)(model, *args), atol=1e-14)


@each_function("vmap")
def test_vmap_over_states_and_models_is_the_loop(name, rng):
    model = small_model(name)
    models = [model, jax.tree.map(lambda x: x * 1.1, model)]
    args = [arrays(name, model, rng) for model in models]

    def stack(*xs):
        return np.stack(xs)

    batch = jax.jit(jax.vmap(FUNCTIONS[name][0]))(
        jax.tree.map(stack, *models), *map(stack, *args)
    )
    expected = [compiled(name)(m, *a) for m, a in zip(models, args, strict=True)]
    assert_close(batch, jax.tree.map(stack, *expected), atol=1e-13)


# joints that are sequences of screws, as the helical one
REPEATED = ("revolute", "prismatic", "universal", "cylindrical", "planar")
each_chain = pytest.mark.parametrize(
    "joints",
    ["few joints", pytest.param("every joint", marks=pytest.mark.slow)],
    scope="module",
)


@cache
def differentiated(name, joints):
    """A number that depends on all results, and programs for it and its slope."""
    f = scalar(name, smooth_joints(joints), np.random.default_rng(0))
    # the value by itself: rules for derivatives must not change it
    return f, jax.jit(f), jax.jit(lambda x, dx: jax.jvp(f, x, dx)[1])


@each_chain
@each_function("slopes", ["linearize"])
def test_derivatives_agree_in_both_modes_and_with_differences(name, joints, rng):
    model = smooth_joints(joints)
    f, value, jvp = differentiated(name, joints)
    gradient = jax.jit(jax.grad(f, (0, 1)))
    for at_rest in (False, True):
        x = (model, arrays(name, model, rng, at_rest))
        dx = direction(x, rng)
        forward = jvp(x, dx)
        pairs = zip(jax.tree.leaves(gradient(*x)), jax.tree.leaves(dx), strict=True)
        reverse = sum(np.vdot(g, d) for g, d in pairs)
        difference = central_difference(value, x, dx)
        scale = max(1.0, abs(float(forward)))
        np.testing.assert_allclose(reverse, forward, atol=1e-12 * scale)
        np.testing.assert_allclose(difference, forward, atol=1e-9 * scale)


@each_chain
@each_function("curvatures", ["linearize"])
def test_second_derivatives_are_right_at_rest(name, joints, rng):
    model = smooth_joints(joints)
    f, _, jvp = differentiated(name, joints)
    x = (model, arrays(name, model, rng, at_rest=True))
    dx = direction(x, rng)

    def slope(*x):
        return jax.jvp(f, x, dx)[1]

    curvature = jax.jit(lambda *x: jax.jvp(slope, x, dx)[1])(*x)
    difference = central_difference(lambda *x: jvp(x, dx), x, dx)
    scale = max(1.0, abs(float(curvature)))
    np.testing.assert_allclose(curvature, difference, atol=1e-8 * scale)


@each_function("types")
def test_float32_stays_float32(name, rng):
    model, args = every_joint().astype(jnp.float32), arrays(name, every_joint(), rng)
    args = jax.tree.map(lambda x: x.astype(jnp.float32), args)
    shapes = jax.eval_shape(FUNCTIONS[name][0], model, *args)
    assert {leaf.dtype for leaf in jax.tree.leaves(shapes)} == {jnp.dtype("float32")}


@each_function("types")
def test_new_values_do_not_retrace(name, rng):
    traces = []

    @jax.jit
    def traced(model, *args):
        traces.append(name)
        return FUNCTIONS[name][0](model, *args)

    for mass in (1.0, 2.0):
        b = jd.ModelBuilder("one")
        b.add_body(
            "ball", joint="free", inertial=jd.Inertial.ellipsoid(mass, (1, 1, 1))
        )
        jax.eval_shape(traced, b.build(), *arrays(name, b.build(), rng))
    assert len(traces) == 1


def shaped(name, shape):
    is_often = name == "forward_dynamics" and shape == "still"
    return pytest.param(name, shape, marks=[] if is_often else [pytest.mark.slow])


SHAPES = ("one", "large", "long", "still")


def large(n):
    """A hub with fifty arms and a chain of n bodies, the second without mass."""
    b = jd.ModelBuilder("large")
    rod = jd.Inertial.rod(1.0, (0, 0, 0), (1, 0, 0))
    b.add_body("hub", inertial=rod)
    for i in range(50):
        b.add_body(f"arm{i}", "hub", p=(i, 0, 0), inertial=rod)
    parent = "hub"
    for i in range(n):
        axis, inertial = ((0, 1, 0), None) if i == 1 else ((0, 0, 1), rod)
        b.add_body(f"link{i}", parent, axis=axis, p=(1, 0, 0), inertial=inertial)
        parent = f"link{i}"
    return b.build()


@pytest.mark.parametrize(
    "name, shape", [shaped(n, s) for n in FUNCTIONS for s in SHAPES]
)
def test_results_and_gradients_are_finite_for_any_shape(name, shape, rng):
    models = {
        "one": lambda: jd.robots.random_tree(0, 1),
        "large": lambda: large(100 if name in LARGE else 1000),
        "long": lambda: jd.robots.chain(100 if name in LARGE else 1000),
        "still": lambda: jd.robots.random_tree(0, 3, joints=("fixed",)),
    }
    model = models[shape]()
    x = (model, arrays(name, model, rng))
    f = scalar(name, model, rng)
    if name != "linearize":
        f = jax.value_and_grad(f, (0, 1))
    values = jax.jit(f)(*x)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(values))


WRONG = [(name, key) for name, (_, keys) in FUNCTIONS.items() for key in keys.split()]


@pytest.mark.parametrize("name, key", WRONG)
@pytest.mark.parametrize("shape", [(3, 4), (99,), ()])
def test_a_wrong_shape_is_an_error_that_names_it(
    name, key, shape, rng, without_type_checker
):
    model, (function, keys) = jd.robots.gripper(), FUNCTIONS[name]
    args = dict(zip(keys.split(), arrays(name, model, rng), strict=True))
    args[key] = jnp.ones(shape)
    numbers = ", ?".join(map(str, shape))
    named = "control" if name.startswith("rollout") and key == "tau" else key
    message = rf"{named}[\w.]* has shape \((2, ?)?{numbers},?\), expected \("
    with pytest.raises(ValueError, match=message):
        function(model, *args.values())
