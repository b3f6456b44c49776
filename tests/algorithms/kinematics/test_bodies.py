import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxdyn as jd
from tests.models import every_joint, random_state
from tests.reference import AS_USERS_DO, cases, load, relative_error

FILES = (
    "random_serial_chains",
    "random_trees",
    "random_multidof_joints",
    "lecture_tree",
    "gripper",
    "puma_mohan_saha",
    "mata_puma_line",
)
CASES = {case["model"]["name"]: case for case in cases(*FILES)}
PRECISION = {"float64": 1e-14, "float32": 2e-6}  # 1e-12 and 1e-5 are asked for
OFTEN = ("random_serial_n7", "random_tree_n20", "random_mixed_all_floating", "gripper")


def is_often(name, dtype):
    """The others repeat these at another size: for `make test-all`."""
    return name in OFTEN and (dtype == "float64" or name == "random_mixed_all_floating")


EACH = [
    pytest.param(name, dtype, marks=[] if is_often(name, dtype) else [pytest.mark.slow])
    for name in CASES
    for dtype in PRECISION
]

forward_kinematics = jax.jit(jd.forward_kinematics)
body_velocities = jax.jit(jd.body_velocities)
body_accelerations = jax.jit(jd.body_accelerations)
jacobian = jax.jit(jd.jacobian, static_argnums=2)
jacobian_dot_qd = jax.jit(jd.jacobian_dot_qd, static_argnums=3)


def everything(model, q, qd, bodies):
    poses, moving = jd.forward_kinematics(model, q), jd.body_velocities(model, q, qd)
    J = jnp.stack([jd.jacobian(model, q, i) for i in bodies])
    bias = jnp.stack([jd.jacobian_dot_qd(model, q, qd, i) for i in bodies])
    return poses.R, poses.p, moving.v, moving.w, J, bias


@pytest.mark.first
@pytest.mark.reference
@pytest.mark.parametrize("name, dtype", EACH)
def test_kinematics_agree_with_independent_software(name, dtype):
    case = CASES[name]
    model = jd.from_dict(case["model"], dtype=dtype)
    groups = {}
    for s in case["states"]:
        groups.setdefault(tuple(j["body"] for j in s["jacobians"]), []).append(s)
    for bodies, states in groups.items():
        q, qd = (jnp.asarray([s[key] for s in states], dtype) for key in ("q", "qd"))
        batch = jax.jit(jax.vmap(lambda q, qd, b=bodies: everything(model, q, qd, b)))
        for values, s in zip(zip(*batch(q, qd), strict=True), states, strict=True):
            expected = [s[f"body_{key}"] for key in ("R", "p", "v", "w")]
            expected += [[j[key] for j in s["jacobians"]] for key in ("J", "Jdot_qd")]
            errors = list(map(relative_error, values, expected))
            assert max(errors) < PRECISION[dtype], errors


@pytest.mark.reference
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_placements_that_are_no_rotations_are_used_as_they_are(dtype):
    model = jd.robots.chain(2).astype(dtype)
    wide = eqx.tree_at(lambda m: m.R, model, 1.05 * model.R)
    R = jd.forward_kinematics(model, jnp.zeros(2, dtype)).R
    found = jd.forward_kinematics(wide, jnp.zeros(2, dtype)).R
    np.testing.assert_allclose(found[1], 1.05**2 * R[1], atol=1e-6)


@pytest.mark.parametrize("dtype, tolerance", [("float64", 5e-15), ("float32", 1e-5)])
@pytest.mark.parametrize("case", range(3))
def test_last_body_of_a_protein_chain_is_where_50_digits_put_it(case, dtype, tolerance):
    case = load("protein_chain")["cases"][case]
    model = jd.from_dict(case["model"], dtype=dtype)
    run = jax.jit(forward_kinematics, compiler_options=AS_USERS_DO)
    for s in case["states"]:
        p = run(model, jnp.asarray(s["q"], dtype)).p[-1]
        assert relative_error(p, s["last_body_p"]) < tolerance


@pytest.mark.reference
@pytest.mark.parametrize("dtype, tolerance", [("float64", 1e-14), ("float32", 1e-5)])
def test_rope_has_its_tip_where_the_reference_simulation_saw_it(dtype, tolerance):
    data = load("rope")
    model = jd.from_dict(data["model"], dtype=dtype)
    for run in data["runs"]:
        for q, tip in zip(run["q_every_10"], run["tip"][::10], strict=False):
            poses = forward_kinematics(model, jnp.asarray(q, dtype))
            value = poses.p[-1] + 0.05 * poses.R[-1, :, 0]
            assert relative_error(value, tip) < tolerance


@pytest.mark.slow
@pytest.mark.reference
@pytest.mark.parametrize(
    "dtype, tolerance",
    [("float64", 1e-14), pytest.param("float32", 1e-5, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize(
    "case",
    [
        # test_loops.py has the rows of all of them
        pytest.param(case, marks=[pytest.mark.slow] if k else [])
        for k, case in enumerate(cases("closed_loops", "stewart_gough"))
    ],
)
def test_loop_points_and_their_jacobians_agree_with_independent_software(
    case, dtype, tolerance
):
    model = jd.from_dict(case["model"], dtype=dtype)

    def rows(q, qd):
        J, bias = [], []
        for loop in model.loops:
            ends = ((loop.body_a, loop.p_a), (loop.body_b, loop.p_b))
            axes = np.array(loop.axes or (0, 1, 2))
            a, b = (jd.jacobian(model, q, *end)[axes] for end in ends)
            c, d = (jd.jacobian_dot_qd(model, q, qd, *end)[axes] for end in ends)
            J.append(a - b)
            bias.append(c - d)
        return jnp.concatenate(J), jnp.concatenate(bias)

    states = case["states"]
    args = (jnp.asarray([s[key] for s in states], dtype) for key in ("q", "qd"))
    with jax.disable_jit():  # many bodies, each would be compiled
        found = jax.vmap(rows)(*args)
    for s, J, bias in zip(states, *found, strict=True):
        assert relative_error(J, s["J"]) < tolerance
        assert relative_error(bias, s["Jdot_qd"]) < tolerance


@pytest.mark.first
@pytest.mark.parametrize("seed", range(2))
def test_velocities_are_the_rates_of_poses_for_every_joint(seed, rng):
    model = every_joint(seed)
    q, qd, _ = random_state(model, rng)

    def poses(t):
        return jd.forward_kinematics(model, jd.integrate(model, q, t * qd))

    here, rates = jax.jit(lambda t: jax.jvp(poses, (t,), (jnp.ones(()),)))(
        jnp.zeros(())
    )
    moving = body_velocities(model, q, qd)
    turning = jnp.cross(moving.w[:, None, :], jnp.swapaxes(here.R, -1, -2))
    np.testing.assert_allclose(rates.p, moving.v, atol=1e-13)
    np.testing.assert_allclose(rates.R, jnp.swapaxes(turning, -1, -2), atol=1e-13)


@pytest.mark.first
@pytest.mark.parametrize("seed", range(2))
def test_accelerations_are_the_rates_of_velocities_for_every_joint(seed, rng):
    model = every_joint(seed)
    q, qd, qdd = random_state(model, rng)

    def velocities(t):
        return jd.body_velocities(model, jd.integrate(model, q, t * qd), qd + t * qdd)

    _, rates = jax.jit(lambda t: jax.jvp(velocities, (t,), (jnp.ones(()),)))(
        jnp.zeros(())
    )
    a = body_accelerations(model, q, qd, qdd)
    np.testing.assert_allclose(rates.v, a.dv, atol=1e-12)
    np.testing.assert_allclose(rates.w, a.dw, atol=1e-12)


@pytest.mark.slow
def test_jacobian_times_rates_is_the_velocity_of_every_body(rng):
    model = every_joint()
    q, qd, _ = random_state(model, rng)
    moving = body_velocities(model, q, qd)
    jacobians = jax.jit(
        lambda q: jnp.stack([jd.jacobian(model, q, i) for i in range(model.n)])
    )
    expected = jnp.concatenate([moving.v, moving.w], axis=1)
    np.testing.assert_allclose(jacobians(q) @ qd, expected, atol=1e-13)


def test_jacobian_at_a_point_and_its_bias_give_the_acceleration_of_the_point(rng):
    model = every_joint(1, without=("free",))
    q, qd, qdd = random_state(model, rng)
    point, i = jnp.asarray(rng.normal(size=3)), model.n - 1

    def place(t):
        poses = jd.forward_kinematics(
            model, jd.integrate(model, q, t * qd + t**2 / 2 * qdd)
        )
        return poses.p[i] + poses.R[i] @ point

    def rate(t):
        return jax.jvp(place, (t,), (jnp.ones(()),))[1]

    bend = jax.jit(lambda t: jax.jvp(rate, (t,), (jnp.ones(()),))[1])
    acceleration = bend(jnp.zeros(()))
    J = jacobian(model, q, i, point)
    value = (J @ qdd + jacobian_dot_qd(model, q, qd, i, point))[:3]
    # for joints that are not free, the step t qd + t²/2 qdd is the motion with qdd
    np.testing.assert_allclose(value, acceleration, atol=1e-11)


@pytest.mark.filterwarnings("ignore:model .* will move as its file says")
def test_a_moving_base_carries_all_bodies(rng):
    model = every_joint(1)
    fixed = random_state(model, rng)
    carried = jd.ModelBuilder("carrier")
    carried.add_body("base_body", joint="free")
    spec = jd.to_dict(model)
    spec["bodies"] = jd.to_dict(carried.build())["bodies"] + [
        body | {"parent": body["parent"] + 1} for body in spec["bodies"]
    ]
    for body in spec["bodies"]:
        for key in ("idx_q", "idx_v"):
            body.pop(key)
    spec.pop("nq"), spec.pop("nv")
    whole = jd.from_dict(spec)  # the carrier has no mass
    v, w, dv, dw = (jnp.asarray(x) for x in rng.normal(size=(4, 3)))
    base = jd.BaseMotion(v=v, w=w, dv=dv, dw=dw)
    q = jnp.concatenate([jd.neutral(whole)[:7], fixed[0]])
    qd = jnp.concatenate([v, w, fixed[1]])
    # in body axes, which turn, the rate of the linear velocity lacks w x v
    qdd = jnp.concatenate([dv - jnp.cross(w, v), dw, fixed[2]])
    expected = body_accelerations(whole, q, qd, qdd)
    value = body_accelerations(model, *fixed, base=base)
    np.testing.assert_allclose(value.dv, expected.dv[1:], atol=1e-12)
    np.testing.assert_allclose(value.dw, expected.dw[1:], atol=1e-12)
    moving = body_velocities(model, *fixed[:2], base=base)
    np.testing.assert_allclose(
        moving.v, body_velocities(whole, q, qd).v[1:], atol=1e-13
    )


def test_frames_are_carried_by_their_bodies(rng):
    b = jd.ModelBuilder("arm")
    b.add_body("link", joint="universal", axis=(0, 0, 1), axis2=(0, 1, 0))
    b.add_frame("tool", "link", p=(1.0, 2.0, 3.0))
    b.add_frame("post", None, p=(0.0, 1.0, 0.0))
    model = b.build()
    q = jnp.asarray(rng.normal(size=2))
    bodies, frames = forward_kinematics(model, q), jd.frame_poses(model, q)
    expected = bodies.p[0] + bodies.R[0] @ model.frame_p[0]
    np.testing.assert_allclose(
        frames.p, jnp.stack([expected, model.frame_p[1]]), atol=1e-15
    )
    point = jacobian(model, q, "link", model.frame_p[0])
    np.testing.assert_allclose(jacobian(model, q, "tool"), point, atol=1e-15)


def test_the_jacobian_of_a_world_frame_is_an_error():
    b = jd.ModelBuilder("arm")
    b.add_body("link")
    b.add_frame("post", None)
    with pytest.raises(ValueError, match="'post' is fixed to the world"):
        jd.jacobian(b.build(), jnp.zeros(1), "post")


@pytest.mark.parametrize("body", ["elbow", 6, -1])
def test_an_unknown_body_is_an_error_that_names_it(body):
    with pytest.raises(ValueError, match=f"no .*body {body!r}, expected"):
        jd.jacobian(jd.robots.puma_560(), jnp.zeros(6), body)


def test_center_of_mass_of_two_equal_points_is_halfway():
    b = jd.ModelBuilder("two")
    for name, x in (("left", -1.0), ("right", 3.0)):
        b.add_body(name, inertial=jd.Inertial.point(2.0, (x, 0, 0)))
    np.testing.assert_allclose(jd.center_of_mass(b.build(), jnp.zeros(2)), [1.0, 0, 0])


def test_a_quaternion_of_any_length_means_its_direction(rng):
    model = jd.robots.random_tree(2, 3, joints=("spherical",), floating_base=True)
    q = jd.random_configuration(model, jax.random.key(0))
    scaled = q.at[model.topology.quaternion_q].multiply(3.0)
    poses, same = forward_kinematics(model, q), forward_kinematics(model, scaled)
    np.testing.assert_allclose(same.R, poses.R, atol=1e-15)


def test_motion_of_the_base_is_given_by_name():
    with pytest.raises(TypeError, match="positional"):
        jd.BaseMotion(jnp.ones(3))
    base = jd.BaseMotion(dw=jnp.ones(3))
    assert [x.sum() for x in (base.v, base.w, base.dv, base.dw)] == [0, 0, 0, 3]


def test_names_on_other_bodies_stay_right_in_shared_programs():
    def arm(first, second):
        b = jd.ModelBuilder("arm")
        rod = jd.Inertial.rod(1.0, (0, 0, 0), (1, 0, 0))
        b.add_body(first, inertial=rod)
        b.add_body(second, first, p=(1.0, 0, 0), inertial=rod)
        b.add_frame(f"on {first}", first, p=(0.5, 0, 0))
        b.add_frame(f"on {second}", second, p=(0.5, 0, 0))
        return b.build()

    one, other, q = arm("upper", "tool"), arm("tool", "upper"), jnp.array([0.3, 0.4])
    assert one.topology == other.topology
    jitted = jax.jit(jd.jacobian, static_argnums=2)
    for suffix, get in (("", jd.jacobian), ("on ", jitted)):
        outer = get(one, q, f"{suffix}tool")
        inner = get(one, q, f"{suffix}upper")
        assert outer[:, 1].any() and not inner[:, 1].any()
        np.testing.assert_array_equal(get(other, q, f"{suffix}upper"), outer)
        np.testing.assert_array_equal(get(other, q, f"{suffix}tool"), inner)
