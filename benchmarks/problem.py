"""What is computed: robots as plain numbers, random states, rows and their agreement.

Nothing here needs JAX: workers of libraries without it import this module too.
"""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

STEPS, DT = 100, 1e-3  # of a rollout
CHECKED = 16  # states whose results are compared before any timing
INPUTS = {
    "inverse_dynamics": ("q", "qd", "qdd"),
    "mass_matrix": ("q",),
    "forward_dynamics": ("q", "qd", "tau"),
    "jacobian": ("q", "qd", "tau"),
    "rollout": ("q", "qd", "taus"),
    "rollout_gradient": ("q", "qd", "taus"),
}
ROWS = tuple(INPUTS)
INPUTS |= {  # rows whose compile time alone is measured
    "forward_gradient": ("q", "qd", "tau"),
    "parameter_gradient": ("q", "qd", "tau"),
    "forward_kinematics": ("q",),
    "body_velocities": ("q", "qd"),
    "body_accelerations": ("q", "qd", "qdd"),
}
TOLERANCE = {"float64": 1e-8, "float32": 5e-3}  # of the relative error


@dataclass(frozen=True)
class Robot:
    """A robot in a folder: robot.json (jaxdyn's dictionary), robot.urdf, robot.xml."""

    folder: Path

    @cached_property
    def description(self) -> dict[str, Any]:
        """The dictionary of the model, as `jaxdyn.from_dict` reads it."""
        return json.loads((self.folder / "robot.json").read_text())

    @property
    def urdf(self) -> Path:
        """The robot as URDF; a floating base is its root link."""
        return self.folder / "robot.urdf"

    @property
    def mjcf(self) -> Path:
        """The robot as a MuJoCo file."""
        return self.folder / "robot.xml"

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The bodies of the dictionary."""
        return self.description["bodies"]

    @property
    def nq(self) -> int:
        """The number of position coordinates."""
        return self.description["nq"]

    @property
    def nv(self) -> int:
        """The number of degrees of freedom."""
        return self.description["nv"]

    @property
    def is_floating(self) -> bool:
        """Whether the first body is free; all other joints are revolute."""
        return self.bodies[0]["joint"]["type"] == "free"

    @property
    def joint_names(self) -> list[str]:
        """The names of the revolute joints, in the order of q."""
        return [f"j_{b['name']}" for b in self.bodies if b["joint"]["type"] != "free"]

    def states(self, batch: int, row: str) -> dict[str, np.ndarray]:
        """The inputs of a row for a batch; small batches begin large ones."""
        shapes = {name: (batch, self.nv) for name in ("q", "qd", "qdd", "tau")}
        shapes |= {"q": (batch, self.nq), "taus": (batch, STEPS, self.nv)}
        draws = {
            name: np.random.default_rng([2025, k]).normal(size=shapes[name])
            for k, name in enumerate(shapes)
            if name in INPUTS[row]
        }
        if self.is_floating:
            draws["q"][:, 3:7] /= np.linalg.norm(draws["q"][:, 3:7], axis=1)[:, None]
        return draws

    def reference(self, row: str) -> np.ndarray:
        """The results of jaxdyn in double precision for the first states."""
        return np.load(self.folder / f"{row}.npy")


def relative_error(got: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference within the first states, over the largest entry."""
    got = np.asarray(got, float).reshape(-1, *expected.shape[1:])
    expected = expected[: len(got)]
    got = got[: len(expected)]
    error = np.abs(got - expected).max() / np.abs(expected).max()
    return float(error) if np.isfinite(error) else float("inf")
