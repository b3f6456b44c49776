"""Mass, centre of mass and inertia of one body, on the host: solids, sums, checks."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from jaxdyn.model._check import as_numbers, check_finite

Vector = Sequence[float | int] | np.ndarray

_ROUNDING = 1e-6  # of single precision, with a margin


@dataclass(frozen=True, eq=False)
class Inertial:
    """Inertial data of a body: mass, centre of mass, inertia about that centre.

    Adding two of them joins the bodies rigidly.
    """

    mass: float | int = 0.0
    com: np.ndarray = field(default_factory=lambda: np.zeros(3))
    inertia: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))

    def __post_init__(self) -> None:
        for name in ("com", "inertia"):
            numbers = as_numbers(getattr(self, name))
            if numbers is not None:  # what are none is told by `check`
                object.__setattr__(self, name, numbers)

    def __add__(self, other: "Inertial") -> "Inertial":
        mass = self.mass + other.mass
        com = np.zeros(3)
        if mass:
            com = self.mass / mass * self.com + other.mass / mass * other.com
        inertia = np.zeros((3, 3))
        for part in (self, other):
            inertia += part.inertia + point_inertia(part.mass, part.com - com)
        return Inertial(mass, com, inertia)

    def moved(self, R: np.ndarray, p: np.ndarray) -> "Inertial":
        """The same body seen from a frame in which its own has the pose (R, p)."""
        return Inertial(self.mass, p + R @ self.com, R @ self.inertia @ R.T)

    def scaled(self, mass: float | int) -> "Inertial":
        """The same shape with another total mass."""
        if self.mass == 0:
            raise ValueError(f"a body without mass has no shape to scale to {mass} kg.")
        return Inertial(mass, self.com, self.inertia * (mass / self.mass))

    @staticmethod
    def point(mass: float | int, com: Vector) -> "Inertial":
        """A point mass."""
        return Inertial(mass, np.asarray(com, float), np.zeros((3, 3)))

    @staticmethod
    def rod(mass: float | int, start: Vector, end: Vector) -> "Inertial":
        """A slender uniform rod between two points, without inertia about its line."""
        start, end = np.asarray(start, float), np.asarray(end, float)
        return Inertial(mass, (start + end) / 2, point_inertia(mass / 12, end - start))

    @staticmethod
    def box(mass: float | int, size: Vector) -> "Inertial":
        """A uniform box with full edge lengths `size`, centred at the origin."""
        x, y, z = np.square(np.asarray(size, float))
        return Inertial(mass, np.zeros(3), mass / 12 * np.diag([y + z, x + z, x + y]))

    @staticmethod
    def ellipsoid(mass: float | int, radii: Vector) -> "Inertial":
        """A uniform ellipsoid with the given half axes; a ball if they are equal."""
        x, y, z = np.square(np.asarray(radii, float))
        return Inertial(mass, np.zeros(3), mass / 5 * np.diag([y + z, x + z, x + y]))

    @staticmethod
    def cylinder(
        mass: float | int, radius: float | int, length: float | int
    ) -> "Inertial":
        """A uniform cylinder along z, centred at the origin."""
        side = mass * (3 * radius**2 + length**2) / 12
        return Inertial(mass, np.zeros(3), np.diag([side, side, mass * radius**2 / 2]))

    @staticmethod
    def capsule(
        mass: float | int, radius: float | int, length: float | int
    ) -> "Inertial":
        """A uniform capsule along z: a cylinder of `length` between two half balls."""
        cylinder = mass * length / (length + 4 / 3 * radius)
        ball = mass - cylinder
        axial = cylinder * radius**2 / 2 + ball * 2 / 5 * radius**2
        # half ball: 83/320 m r^2 about its own centre, which lies 3/8 r beyond the disc
        side = cylinder * (3 * radius**2 + length**2) / 12
        side += ball * (83 / 320 * radius**2 + (length / 2 + 3 / 8 * radius) ** 2)
        return Inertial(mass, np.zeros(3), np.diag([side, side, axial]))

    def check(
        self, body: str, triangle: bool = True, positive: bool = True
    ) -> "Inertial":
        """The same data as arrays, or a `ValueError` naming `body` if it cannot exist.

        Without `positive`, negative principal inertias are accepted, and without
        `triangle` those that violate the triangle inequality. A body without mass may
        still carry inertia, such as a hub that turns about its own axis only: for it
        the triangle inequality is not asked.
        """
        mass = float(check_finite(body, "mass", self.mass, ()))
        com = check_finite(body, "com", self.com, (3,))
        I = check_finite(body, "inertia", self.inertia, (3, 3))
        if mass < 0:
            raise ValueError(
                f"body {body!r}: mass is {mass}, expected zero or more: give the mass "
                "in kg."
            )
        scale = np.abs(I).max()
        checked = Inertial(mass, com, I)
        if np.abs(I - I.T).max() > _ROUNDING * scale:
            raise ValueError(
                f"body {body!r}: inertia {I.tolist()} is not symmetric: give the full "
                "tensor, products of inertia with their minus sign on both sides."
            )
        low = np.linalg.eigvalsh(I)[0]
        if positive and low < -checked._rounding():
            raise ValueError(
                f"body {body!r}: inertia has the negative principal value {low:g}, "
                "expected zero or more: it must be about the centre of mass, in body "
                "axes."
            )
        doubt = checked.doubt()
        if triangle and doubt:
            raise ValueError(
                f"body {body!r}: {doubt}: correct the inertia, or accept it with "
                "check_inertia=False."
            )
        return checked

    def doubt(self) -> str:
        """What no rigid body with such principal inertias has, empty if there is none.

        One is negative, or they violate the triangle inequality, as published data may,
        and those that were estimated part by part.
        """
        low, middle, high = np.linalg.eigvalsh(self.inertia)
        if low < -self._rounding():
            return f"principal inertia {low:g} is negative"
        if self.mass == 0 or low + middle >= high - self._rounding():
            return ""
        return (
            f"principal inertias {low:g}, {middle:g}, {high:g} violate the triangle "
            "inequality (no principal value may exceed the sum of the other two)"
        )

    def without_rounding(self) -> "Inertial":
        """The same without principal inertias that are negative by rounding only.

        It is this object if there are none.
        """
        low = np.linalg.eigvalsh(self.inertia)[0]
        exact = 16 * np.finfo(float).eps * np.abs(self.inertia).max()
        if not -self._rounding() <= low < -exact:
            return self
        return Inertial(self.mass, self.com, _positive(self.inertia))

    def nearest(self) -> "Inertial":
        """The nearest data that a body of this mass and centre of mass can have.

        Negative principal values of the second moments tr(I)/2 1 - I become zero: of
        all possible second moments these differ least in the Frobenius norm. For a body
        without mass these are negative principal values of the inertia itself.
        """
        if self.mass == 0:
            return Inertial(self.mass, self.com, _positive(self.inertia))
        S = _positive(np.trace(self.inertia) / 2 * np.eye(3) - self.inertia)
        return Inertial(self.mass, self.com, np.trace(S) * np.eye(3) - S)

    def _rounding(self) -> float:
        """By how much the inertia may be off, also if it was moved from the origin."""
        return float(
            _ROUNDING * np.abs(self.inertia).max()
            + 4 * np.finfo(float).eps * self.mass * self.com @ self.com
        )


def point_inertia(mass: float | int, c: np.ndarray) -> np.ndarray:
    """The inertia mass (c.c 1 - c cᵀ) of a point mass at `c` about the origin."""
    return mass * (c @ c * np.eye(3) - np.outer(c, c))


def _positive(A: np.ndarray) -> np.ndarray:
    """The symmetric matrix with zeros for its negative eigenvalues."""
    values, axes = np.linalg.eigh(A)
    return (axes * np.maximum(values, 0)) @ axes.T
