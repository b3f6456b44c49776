"""`jaxdyn info`: what a robot is made of."""

import argparse
from typing import Any

import jax
import jax.numpy as jnp

from jaxdyn.algorithms.kinematics import forward_kinematics, frame_poses, neutral
from jaxdyn.analysis import check_installation
from jaxdyn.cli._bench_gpu import BATCHES, measured
from jaxdyn.cli._robots import load, warnings_printed
from jaxdyn.dynamics import gravity_forces, mass_matrix
from jaxdyn.io import radians
from jaxdyn.model import Model


def info(arguments: argparse.Namespace) -> int:
    """Prints a robot with its pose and loads, and may draw it; or the installation."""
    if arguments.check:
        return _check(arguments)
    if arguments.robot is None:
        raise ValueError(
            "jaxdyn info needs a ROBOT, or --check: jaxdyn info --help lists robots."
        )
    model = load(arguments.robot)
    q = neutral(model).tolist() if arguments.q is None else arguments.q
    if len(q) != model.nq:
        raise ValueError(
            f"--q has {len(q)} numbers, expected {model.nq}: {model.name!r}."
        )
    if arguments.degrees and arguments.q is not None:
        q = radians(model, "q", q).tolist()
    print(model)
    if model.report:
        print(f"\nreport\n{model.report}")
    print(f"\nmodules\n{model.modules}\n\npose q = {[round(x, 6) for x in q]}")
    pose = jnp.asarray(q, model.dtype)
    bodies, frames = forward_kinematics(model, pose), frame_poses(model, pose)
    for names, places in ((model.names, bodies.p), (model.frame_names, frames.p)):
        for name, p in zip(names, places.tolist(), strict=True):
            print(f"  {name:<16} at ({', '.join(f'{x + 0.0:8.4f}' for x in p)}) m")
    _print_loads(model, pose)
    if arguments.output is not None:
        from jaxdyn.view import draw  # matplotlib only where a picture is wanted

        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        with warnings_printed(arguments.robot):
            draw(model, pose, arguments.output)
        print(f"picture saved in {arguments.output}")
    return 0


def _print_loads(model: Model, pose: Any) -> None:
    """For each joint coordinate the force that holds it and the inertia it feels."""
    forces = gravity_forces(model, pose)
    inertia = jnp.diagonal(mass_matrix(model, pose))
    print("\nat rest: joint force against gravity, diagonal of the inertia matrix")
    for i, joint in enumerate(model.joint_names):
        at = model.v_slice(i)
        for tau, m in zip(forces[at].tolist(), inertia[at].tolist(), strict=True):
            print(f"  {joint:<16} {tau + 0.0:12.6f} {m:12.6f}")


def _check(arguments: argparse.Namespace) -> int:
    if arguments.robot is not None:
        raise ValueError(
            f"--check is for the installation, not for {arguments.robot!r}: give one "
            "of the two."
        )
    found = check_installation()
    folder = jax.config.jax_compilation_cache_dir  # type: ignore
    print(f"{found}\nprograms are kept in {folder or 'no folder'}")
    gpus = [d for d in jax.devices() if d.platform == "gpu"]
    for row in measured(gpus[0], batches=BATCHES[1:2]) if gpus else ():
        print(row, flush=True)
    return 1 if found.problems else 0
