"""Damaged URDF files: what Pinocchio reads too is the same robot to both."""

import warnings

import numpy as np
import pinocchio

import jaxdyn as jd
from tests.io.test_fuzz import mutant, seeds

COUNT = 5000


def theirs(path):
    """Pinocchio's model of a file, if it can read it."""
    try:
        return pinocchio.buildModelFromUrdf(str(path))
    except (ValueError, RuntimeError, IndexError, UnicodeDecodeError):
        return None


def differences(model, other):
    """What is not the same in both, in words; empty if nothing is."""
    tree = model.tree
    if not other.nv:  # nothing moves: a free body here
        return [] if tree.joints == ("free",) else ["moving joints"]
    if tree.nv != other.nv:
        return [f"{tree.nv} and {other.nv} freedoms"]
    found = []
    for i, name in enumerate(tree.joint_names):
        # a joint without a name gets one here
        j = other.getJointId(name if other.existJointName(name) else "")
        if j >= len(other.names):
            return [f"joint {name}"]
        place, inertia = other.jointPlacements[j], other.inertias[j]
        pairs = {
            "rotation": (tree.R[i], place.rotation),
            "origin": (tree.p[i], place.translation),
            "mass": (tree.mass[i], inertia.mass),
            "inertia": (tree.inertia[i], inertia.inertia),
            # the mass centre of a denormal mass is lost in Pinocchio
            "first moment": (tree.mass[i] * tree.com[i], inertia.mass * inertia.lever),
        }
        for what, (a, b) in pairs.items():
            scale = np.abs(b).max(initial=1e-300)
            if not np.allclose(a, b, rtol=0, atol=1e-12 * scale):
                found.append(f"{what} of {name}: {a} and {b}")
    return found


def test_what_pinocchio_reads_too_is_the_same_robot(tmp_path):
    texts, path, both = seeds()["urdf"], tmp_path / "robot.urdf", 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for k in range(COUNT):
            data = mutant("urdf", k, texts)
            path.write_bytes(data)
            try:
                model = jd.load(path)
            except ValueError:
                continue
            other = theirs(path)
            if other is None:
                continue
            both += 1
            wrong = differences(model, other)
            assert not wrong, f"mutant {k}: {wrong}:\n{data}"
    print(f"{both} of {COUNT} damaged files are read by both")
    assert both > 0.2 * COUNT
