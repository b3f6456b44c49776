"""Every URDF file of the packages that Pinocchio reads moves as Pinocchio says."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pinocchio
import pytest

import jaxdyn as jd
from tests.collections.files import short, urdf_files

FILES, OBJECTS = urdf_files()


@jax.jit
def found(model, q, qd, qdd):
    poses = jd.forward_kinematics(model, q), jd.frame_poses(model, q)
    return poses, jd.mass_matrix(model, q), jd.inverse_dynamics(model, q, qd, qdd)


def test_the_collection_is_there():
    assert len(FILES) > 150 and len(OBJECTS) == 1000, "run `make test-robots`"


def mimics(path):
    """Of each joint that follows another: that other, multiplier and offset."""
    text = path.read_text(encoding="utf-8").lstrip()  # before the declaration
    found, joints = {}, ElementTree.fromstring(text.encode()).findall("joint")
    names = [joint.get("name") for joint in joints]
    for joint in joints:
        mimic = joint.find("mimic")
        is_moving = mimic is not None and joint.get("type") != "fixed"
        if is_moving and mimic.get("joint") in names:
            numbers = (mimic.get(x, y) for x, y in (("multiplier", 1), ("offset", 0)))
            found[joint.get("name")] = mimic.get("joint"), *map(float, numbers)
    return found


def positions(model, z, follows):
    """The position of each joint by name, as a list, from those of the model."""
    at = {x: z[model.q_slice(i)] for i, x in enumerate(model.joint_names)}

    def of(name):
        if name not in follows:
            return np.asarray(at[name])
        other, multiplier, offset = follows[name]
        return multiplier * of(other) + offset

    return {name: of(name) for name in at}


def projection(model, theirs, follows):
    """The matrix G from the rates of our coordinates to those of Pinocchio's joints."""
    G = np.zeros((theirs.nv, model.nv))
    for name in model.joint_names:
        factor, root = 1.0, name
        while root in follows:
            root, multiplier, _ = follows[root]
            factor *= multiplier
        own = theirs.joints[theirs.getJointId(name)]
        if own.nv:
            rows = range(own.idx_v, own.idx_v + own.nv)
            G[rows, model.v_slice(model.joint_names.index(root))] = factor * np.eye(
                own.nv
            )
    return G


def as_theirs(theirs, at):
    """Pinocchio's configuration for positions by joint."""
    x = pinocchio.neutral(theirs)
    for name, q in at.items():
        joint = theirs.joints[theirs.getJointId(name)]
        if joint.nq == 2 and len(q) == 1:  # cosine and sine
            q = np.cos(q[0]), np.sin(q[0])
        x[joint.idx_q : joint.idx_q + joint.nq] = q
    return x


def assert_close(found, expected):
    scale = np.abs(expected).max(initial=1e-300)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12 * scale)


def assert_poses(model, poses, theirs, x):
    """Every link is where Pinocchio has it."""
    data, (bodies, frames) = theirs.createData(), poses
    pinocchio.framesForwardKinematics(theirs, data, x)
    names = model.names + model.frame_names
    R = np.concatenate([bodies.R, frames.R])
    p = np.concatenate([bodies.p, frames.p])
    expected = [
        data.oMf[theirs.getFrameId(name, pinocchio.FrameType.BODY)] for name in names
    ]
    for found, key in ((R, "rotation"), (p, "translation")):
        assert_close(found, np.array([getattr(place, key) for place in expected]))


def assert_same_object(path, model):
    """A robot in which nothing moves is a free body with the mass of all links."""
    free = pinocchio.JointModelFreeFlyer()
    theirs = pinocchio.buildModelFromUrdf(str(path), free).inertias[1]
    assert model.joints == ("free",)
    np.testing.assert_allclose(model.mass[0], theirs.mass, rtol=1e-15)
    if theirs.mass:
        assert_close(model.com[0], theirs.lever)
    assert_close(model.inertia[0], theirs.inertia)


def read_by_pinocchio(path):
    try:
        return pinocchio.buildModelFromUrdf(str(path))
    except ValueError as error:
        pytest.skip(f"Pinocchio does not read it: {str(error)[:80]}")


def bare(model):
    """The model without damping and friction, which Pinocchio's functions ignore."""
    none = jnp.zeros_like(model.damping)
    model = replace(model, damping=none, friction=none)
    if not model.couplings:
        return model
    less = jnp.zeros_like(model.couplings.damping)
    couplings = replace(model.couplings, damping=less, friction=less)
    return replace(model, couplings=couplings)


@pytest.mark.filterwarnings("ignore:model .* will (not )?move as its file says")
@pytest.mark.parametrize("path", FILES, ids=short)
def test_it_loads_and_moves_as_in_pinocchio(path, rng):
    theirs = read_by_pinocchio(path)
    model = bare(jd.load(path))
    if not theirs.nv:
        assert_same_object(path, model)
        return
    follows = mimics(path)
    d, qd, qdd = rng.normal(size=(3, model.nv))
    q = jd.integrate(model, jd.neutral(model), jnp.array(d))
    poses, M, tau = found(model, q, jnp.array(qd), jnp.array(qdd))
    at = positions(model, np.asarray(q), follows)

    theirs.gravity.linear = np.asarray(model.gravity)
    data, G = theirs.createData(), projection(model, theirs, follows)
    x = as_theirs(theirs, at)
    assert_poses(model, poses, theirs, x)
    whole = np.triu(pinocchio.crba(theirs, data, x))
    expected = G.T @ (whole + np.triu(whole, 1).T) @ G
    forces = G.T @ pinocchio.rnea(theirs, data, x, G @ qd, G @ qdd)
    assert_close(M, expected)
    assert_close(tau, forces)
    if not jd.singular_joints(model):
        found_again = jd.forward_dynamics(model, q, jnp.array(qd), tau)
        scale = np.abs(qdd).max() * np.linalg.cond(expected)
        np.testing.assert_allclose(found_again, qdd, atol=1e-15 * scale + 1e-12)
    if follows:
        assert_follows(path, model, at, follows, qd, qdd, tau)


def assert_follows(path, model, at, follows, qd, qdd, tau):
    """Joint forces are those of Pinocchio with its own couplings."""
    try:
        coupled = pinocchio.buildModelFromUrdf(str(path), mimic=True)
    except ValueError:
        return  # it wants a joint to stand before those that follow it
    coupled.gravity.linear = np.asarray(model.gravity)
    order = [
        k
        for name in model.joint_names
        if name not in follows
        for k in range(coupled.joints[coupled.getJointId(name)].idx_v, coupled.nv)[
            : coupled.joints[coupled.getJointId(name)].nv
        ]
    ]
    x = as_theirs(coupled, {k: v for k, v in at.items() if k not in follows})
    v, a = np.zeros((2, coupled.nv))
    v[order], a[order] = qd, qdd
    assert_close(tau, pinocchio.rnea(coupled, coupled.createData(), x, v, a)[order])


@pytest.mark.filterwarnings("ignore:model .* will (not )?move as its file says")
def test_random_objects_have_the_masses_that_pinocchio_reads():
    for path in OBJECTS:
        assert_same_object(path, jd.load(path))
