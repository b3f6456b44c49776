"""The command line: arguments to calls."""

import argparse
import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax.numpy as jnp

from jaxdyn import robots
from jaxdyn.algorithms import forward_kinematics, frame_poses, neutral
from jaxdyn.dynamics import gravity_forces, mass_matrix
from jaxdyn.io import from_dict, load_mjcf, load_urdf
from jaxdyn.model import Model


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="jaxdyn", description="Differentiable rigid multibody dynamics on JAX."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    info = commands.add_parser(
        "info",
        help="show what a robot is made of, and draw it",
        epilog="example: "
        "jaxdyn info puma_560 --degrees --q 0 45 180 0 45 0 -o puma.png",
    )
    info.add_argument(
        "robot",
        help="a robot that comes with jaxdyn (such as puma_560, rope, stewart_gough) "
        "or a file: .urdf, .xml or .mjcf (MJCF), .json (dictionary)",
    )
    info.add_argument("--q", nargs="+", type=float, help="the pose (default: neutral)")
    info.add_argument(
        "--degrees", action="store_true", help="angles in --q are in degrees"
    )
    info.add_argument("-o", "--output", type=Path, help="where to save the picture")
    # argparse takes -1e-3 for an option; with a space before it, for a value
    words = sys.argv[1:] if argv is None else argv
    arguments = parser.parse_args([f" {w}" if _is_negative(w) else w for w in words])
    try:
        return _info(arguments)
    except (ValueError, OSError) as error:
        print(f"jaxdyn: {error}", file=sys.stderr)
        return 2


def _info(arguments: argparse.Namespace) -> int:
    model = load(arguments.robot)
    q = arguments.q
    if q is None:
        q = neutral(model).tolist()
    if len(q) != model.nq:
        raise ValueError(
            f"--q has {len(q)} numbers, expected {model.nq}: {model.name!r}."
        )
    if arguments.degrees:
        q = _radians(model, q)
    print(model)
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
        draw(model, pose, arguments.output)
        print(f"picture saved in {arguments.output}")
    return 0


def _print_loads(model: Model, pose: Any) -> None:
    """For each joint coordinate the force that holds it and the inertia it feels."""
    forces, inertia = (
        gravity_forces(model, pose),
        jnp.diagonal(mass_matrix(model, pose)),
    )
    print("\nat rest: joint force against gravity, diagonal of the inertia matrix")
    for i, joint in enumerate(model.joint_names):
        at = model.v_slice(i)
        for tau, m in zip(forces[at].tolist(), inertia[at].tolist(), strict=True):
            print(f"  {joint:<16} {tau + 0.0:12.6f} {m:12.6f}")


def _is_negative(word: str) -> bool:
    try:
        return math.copysign(1.0, float(word)) < 0
    except ValueError:
        return False


def _radians(model: Model, q: list[float]) -> list[float]:
    """The pose with its angles turned from degrees; displacements stay as they are."""
    steps = model.topology.steps
    angles = set(steps.q[steps.turn == 1].tolist())
    return [math.radians(x) if i in angles else x for i, x in enumerate(q)]


def load(robot: str) -> Model:
    """The robot with this name, or the one in this file."""
    suffix = Path(robot).suffix.lower()
    if suffix == ".urdf":
        return load_urdf(Path(robot))
    if suffix in (".xml", ".mjcf"):
        return load_mjcf(Path(robot))
    if suffix == ".json":
        return from_dict(json.loads(Path(robot).read_text(encoding="utf-8")))
    known = [name for name in vars(robots) if not name.startswith("_")]
    if robot not in known:
        raise ValueError(
            f"robot {robot!r} is not known, expected a file ending in .urdf, .xml, "
            f".mjcf or .json, or one of: {', '.join(known)}."
        )
    sized = {"chain": 7, "random_tree": 1}
    make = getattr(robots, robot)
    return make(sized[robot]) if robot in sized else make()


if __name__ == "__main__":
    raise SystemExit(main())
