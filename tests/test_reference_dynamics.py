"""Every record of the reference files that is an open system, by every method."""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from jaxdyn.dynamics import FORWARD, INERTIA, INVERSE
from tests.reference import AS_USERS_DO, cases, load, relative_error

FILES = (
    "random_serial_chains",
    "random_trees",
    "random_multidof_joints",
    "lecture_tree",
    "gripper",
    "puma_mohan_saha",
    "mata_puma_line",
    "rope",
)
CASES = {case["model"]["name"]: case for case in cases(*FILES) if "states" in case}
RECURSIVE = ("denoc", "articulated", "parallel")


def often(*names):
    """All cases; those that repeat `names` at another size are for `make test-all`."""
    return [
        pytest.param(name, marks=[] if name in names else [pytest.mark.slow])
        for name in CASES
    ]


pytestmark = [
    pytest.mark.reference,
    # inertias of the PUMA are kept as published
    pytest.mark.filterwarnings("ignore:model '(puma|forest).* will move as its"),
]


def everything(model, q, qd, qdd, tau, f_ext):
    """Each quantity of the reference files, by all methods, with few walks."""
    found = by_methods(model, q, qd, qdd, tau, f_ext, INVERSE, FORWARD, INERTIA)
    udu = jd.factor(model, q)
    found["M", "factor"], found["Minv", "factor"] = udu.matrix(), udu.inverse()
    C = jd.coriolis_matrix(model, q, qd)
    found["coriolis", "matrix"] = jnp.matmul(C, qd, precision="highest")
    found["kinetic_energy", ""] = jd.kinetic_energy(model, q, qd)
    found["potential_energy", ""] = jd.potential_energy(model, q)
    found["tau_id", "regressor"] = jd.regressor(model, q, qd, qdd) @ (
        jd.dynamic_parameters(model)
    )
    return found


def defaults(*state):
    """The same by the methods that users get."""
    return by_methods(*state, ["newton_euler"], ["denoc"], ["composite"])


def by_methods(model, q, qd, qdd, tau, f_ext, inverses, forwards, inertias):
    rest, none = jnp.zeros_like(qd), jnp.zeros_like(f_ext)
    runs = {
        "tau_id": (qd, qdd, none),
        "tau_id_fext": (qd, qdd, f_ext),
        "bias": (qd, rest, none),
        "gravity_torque": (rest, rest, none),
    }
    found = {}

    def inverse(method):
        def forces(qd, qdd, f):
            return jd.inverse_dynamics(model, q, qd, qdd, f_ext=f, method=method)

        return jax.vmap(forces)(*map(jnp.stack, zip(*runs.values(), strict=True)))

    def forward(method):
        def accelerations(f):
            return jd.forward_dynamics(model, q, qd, tau, f_ext=f, method=method)

        return jax.vmap(accelerations)(jnp.stack([none, f_ext]))

    for method in inverses:
        for key, tau_found in zip(runs, inverse(method), strict=True):
            found[key, method] = tau_found
    for method in forwards:
        found["qdd_fd", method], found["qdd_fd_fext", method] = forward(method)
    for method in inertias:
        found["M", method] = jd.mass_matrix(model, q, method=method)
    return found


def assert_states_agree(case, run):
    model = jd.from_dict(case["model"])
    for s in case["states"]:
        inputs = [jnp.asarray(s[key]) for key in ("q", "qd", "qdd", "tau")]
        f_ext = jnp.asarray(s.get("fext_world", np.zeros((model.n, 6))))
        for (key, method), value in run(model, *inputs, f_ext).items():
            formed = key.startswith("qdd") and method not in RECURSIVE
            bar = max(1e-12, 1e-15 * s["cond_M"]) if formed else 1e-12
            if key in s:
                error = relative_error(value, s[key])
                assert error < bar, (key, method, error)


@pytest.mark.slow
@pytest.mark.parametrize("name", often("random_spherical_chain"))
def test_all_methods_agree_with_independent_software(name):
    assert_states_agree(CASES[name], jax.jit(everything))


def forest(names):
    """The trees of several cases side by side, on one base."""
    bodies = []
    for name in names:
        first = len(bodies)
        for body in CASES[name]["model"]["bodies"]:
            parent = body["parent"] + first if body["parent"] >= 0 else -1
            copy = body | {"name": f"{name}: {body['name']}", "parent": parent}
            copy.pop("idx_q"), copy.pop("idx_v")
            bodies.append(copy)
    model = {"name": "forest", "bodies": bodies}
    gravity = CASES[names[0]]["model"]["gravity"]
    return jd.from_dict(model | {"gravity": gravity})


@pytest.fixture(scope="module")
def by_default():
    """What the default methods find for each state of each case.

    One program for all cases under the same gravity: their trees do not meet.
    """
    groups, found = {}, {name: [] for name in CASES}
    for name, case in CASES.items():
        groups.setdefault(tuple(case["model"]["gravity"]), []).append(name)
    run = jax.jit(defaults)
    for names in groups.values():
        model, cases = forest(names), [CASES[name] for name in names]
        ends = np.cumsum([case["model"]["nv"] for case in cases])
        for k in range(max(len(case["states"]) for case in cases)):
            states = [case["states"][k % len(case["states"])] for case in cases]
            inputs = [
                np.concatenate([s[key] for s in states])
                for key in ("q", "qd", "qdd", "tau")
            ]
            f_ext = [
                s.get("fext_world", np.zeros((len(case["model"]["bodies"]), 6)))
                for s, case in zip(states, cases, strict=True)
            ]
            values = jax.tree.map(
                np.asarray, run(model, *inputs, np.concatenate(f_ext))
            )
            for name, end in zip(names, ends, strict=True):
                own = slice(end - CASES[name]["model"]["nv"], end)
                found[name].append(
                    {key: x[(own,) * x.ndim] for key, x in values.items()}
                )
    return found


@pytest.mark.parametrize("name", CASES)
def test_default_methods_agree_with_independent_software(name, by_default):
    for s, found in zip(CASES[name]["states"], by_default[name], strict=False):
        errors = {
            key: relative_error(value, s[key])
            for (key, _), value in found.items()
            if key in s
        }
        assert errors and max(errors.values()) < 1e-12, errors


@pytest.mark.parametrize(
    "methods", [defaults, pytest.param(everything, marks=pytest.mark.slow)]
)
def test_they_agree_as_users_compile_them(methods):
    run = jax.jit(methods, compiler_options=AS_USERS_DO)
    assert_states_agree(CASES["random_serial_n7"], run)


@pytest.mark.first
@pytest.mark.parametrize("name", often("random_tree_n5", "random_spherical_chain"))
def test_derivatives_along_tangent_steps_agree_with_independent_software(name):
    case = CASES[name]
    model = jd.from_dict(case["model"])
    nv, bar = model.nv, 1e-8 if model.nv >= 30 else 1e-9

    @jax.jit
    def slopes(model, q, qd, qdd, tau):
        def forces(d, qd):
            return jd.inverse_dynamics(model, jd.integrate(model, q, d), qd, qdd)

        A, B = jd.linearize(model, q, qd, tau)
        found = dict(dqdd_dq=A[nv:, :nv], dqdd_dqd=A[nv:, nv:], Minv=B[nv:])
        by = jax.jacfwd(forces, (0, 1))(jnp.zeros(nv), qd)
        return found | dict(zip(("dtau_dq", "dtau_dqd"), by, strict=True))

    for s in case["states"]:
        inputs = (jnp.asarray(s[key]) for key in ("q", "qd", "qdd", "tau"))
        errors = {
            key: relative_error(value, s[key])
            for key, value in slopes(model, *inputs).items()
            if key in s
        }
        assert max(errors.values(), default=0) < bar, errors


@pytest.mark.parametrize(
    "case, bar",
    [
        pytest.param(0, 1e-13, marks=pytest.mark.slow),
        pytest.param(1, 5e-13, marks=pytest.mark.slow),
        (2, 1e-12),
    ],
)
@pytest.mark.first
@pytest.mark.parametrize("method", RECURSIVE)
def test_recursive_methods_stay_accurate_on_long_chains(case, bar, method):
    case = load("protein_chain")["cases"][case]
    model = jd.from_dict(case["model"])
    options = dict(method=method, refine=int(method == "parallel"))
    run = jax.jit(lambda *x: jd.forward_dynamics(model, *x, **options))
    for s in case["states"]:
        qdd = run(*(jnp.asarray(s[key]) for key in ("q", "qd", "tau")))
        assert relative_error(qdd, s["qdd_fd"]) < bar


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2))]
)
@pytest.mark.parametrize("method", sorted(FORWARD.keys() - set(RECURSIVE)))
def test_a_formed_matrix_loses_digits_on_long_chains_as_its_condition_says(
    case, method
):
    case = load("protein_chain")["cases"][case]
    model = jd.from_dict(case["model"])
    run = jax.jit(lambda *x: jd.forward_dynamics(model, *x, method=method))
    for s in case["states"]:
        qdd = run(*(jnp.asarray(s[key]) for key in ("q", "qd", "tau")))
        assert relative_error(qdd, s["qdd_fd"]) < 1e-15 * s["cond_M"]


@pytest.mark.slow
def test_a_bias_formed_apart_loses_digits_that_denoc_keeps():
    case = load("protein_chain")["cases"][2]
    model, s = jd.from_dict(case["model"]), case["states"][0]
    q, qd, tau = (jnp.asarray(s[key]) for key in ("q", "qd", "tau"))
    apart = jd.factor(model, q).solve(tau - jd.bias_forces(model, q, qd))
    together = jd.forward_dynamics(model, q, qd, tau, method="denoc")
    lost = relative_error(apart, s["qdd_fd"]) / relative_error(together, s["qdd_fd"])
    assert lost > 100


@pytest.mark.parametrize(
    "case", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in (1, 2))]
)
def test_long_chains_agree_with_50_digits(case):
    case = load("protein_chain")["cases"][case]
    model = jd.from_dict(case["model"])

    @jax.jit
    def run(q, qd, qdd, x):
        tau = [jd.inverse_dynamics(model, q, qd, qdd, method=m) for m in INVERSE]
        M = [jd.mass_matrix(model, q, method=m) for m in INERTIA]
        Mx = [jnp.matmul(A, x, precision="highest") for A in M]
        return tau, M, Mx, jd.kinetic_energy(model, q, qd)

    for s in case["states"]:
        tau, M, Mx, T = run(*(jnp.asarray(s[key]) for key in ("q", "qd", "qdd", "x")))
        rows = {"M_row_0": 0, "M_row_middle": model.nv // 2, "M_row_last": -1}
        errors = [relative_error(value, s["tau_id"]) for value in tau]
        errors += [relative_error(value, s["M_times_x"]) for value in Mx]
        errors.append(relative_error(T, s["kinetic_energy"]))
        errors += [relative_error(A[i], s[key]) for A in M for key, i in rows.items()]
        assert max(errors) < 1e-12, errors


@pytest.mark.first
@pytest.mark.parametrize("method", RECURSIVE)
@pytest.mark.parametrize("dtype, bar", [("float32", 1e-3), ("float64", 1e-10)])
@pytest.mark.parametrize("case", [0, 1])
def test_recursive_methods_need_no_double_precision_on_the_two_link_arm(
    case, method, dtype, bar
):
    data = load("mata_two_link")["cases"][case]
    model = jd.from_dict(data["model"], dtype=jnp.dtype(dtype))
    q = np.stack([np.zeros(180), data["q2"]], axis=1)
    rest = jnp.zeros(2, dtype)
    run = jax.vmap(lambda q: jd.forward_dynamics(model, q, rest, rest, method=method))
    found = np.asarray(jax.jit(run)(jnp.asarray(q, dtype)), float)
    assert np.abs(found - np.array(data["qdd"])).max() < bar  # rad/s²


@pytest.mark.first
@pytest.mark.parametrize(
    "name, model_key, path, tau_key",
    [
        ("puma_mohan_saha", "model", "trajectory", "tau"),
        ("mata_puma_line", "model", "samples", "tau"),
        ("mata_puma_line", "model", "samples", "tau_with_rotor_inertia"),
        ("mata_puma_line_0p1mps", "model", "samples", "tau"),
        ("gripper", "model", "inverse_dynamics", "tau"),
    ],
)
def test_torques_along_the_motions_of_the_papers(name, model_key, path, tau_key):
    data = load(name) if "cases" not in load(name) else load(name)["cases"][0]
    models = load("mata_puma_line") if model_key not in data else data
    model = jd.from_dict(models[model_key])
    if "rotor" in tau_key:
        rotors = jnp.asarray(data["model_with_rotor_inertia_armature"])
        model = eqx.tree_at(lambda m: m.armature, model, rotors)
    states = [jnp.asarray(data[path][key]) for key in ("q", "qd", "qdd")]

    @jax.jit
    @jax.vmap
    def run(*state):
        return {m: jd.inverse_dynamics(model, *state, method=m) for m in INVERSE}

    for method, found in run(*states).items():
        error = relative_error(found, data[path][tau_key])
        assert error < 1e-12, (method, error)


def test_momentum_and_energy_of_a_floating_tree():
    data = load("floating_momentum")
    model = jd.from_dict(data["model"])
    q, qd = jnp.asarray(data["q"]), jnp.asarray(data["qd"])

    @jax.jit
    @jax.vmap
    def run(q, qd):
        h, c = jd.momentum(model, q, qd), jd.center_of_mass(model, q)
        about_origin = h.angular + jnp.cross(c, h.linear)
        found = jnp.concatenate([h.linear, about_origin])
        return jd.kinetic_energy(model, q, qd), found

    energy, momentum = run(q, qd)
    key = "momentum_linear_and_angular_about_world_origin"
    bar = data["max_diff_between_tolerances"]
    assert relative_error(energy, data["kinetic_energy"]) < bar
    assert relative_error(momentum, data[key]) < bar
    assert relative_error(momentum[0], data[key][0]) < 1e-12


def test_two_sliders_accelerate_as_in_closed_form():
    data = load("featherstone_2p")
    model = jd.from_dict(data["model"])

    @jax.jit
    def accelerations(*x, f_ext):
        run = partial(jd.forward_dynamics, model, *x, f_ext=f_ext)
        return [run(method=method) for method in RECURSIVE]

    np.testing.assert_allclose(jd.mass_matrix(model, jnp.zeros(2)), data["M"])
    for s in data["states"]:
        state = [jnp.asarray(s[key], float) for key in ("q", "qd", "tau")]
        f_ext = jnp.asarray(s["fext_local"], float)  # no rotations: local is world
        for qdd in accelerations(*state, f_ext=f_ext):
            assert relative_error(qdd, s["qdd_fd_fext"]) < 1e-15


def test_gravity_loads_the_puma_560_as_published():
    data = load("mata_puma_line")["gravity_torque_at_qn"]
    found = jd.gravity_forces(jd.robots.puma_560(), jnp.asarray(data["q"]))
    assert relative_error(found, data["tau"]) < 1e-14
