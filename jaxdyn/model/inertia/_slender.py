"""Links made of bent slender rods, [Mohan] section 3.2."""

from dataclasses import asdict, dataclass

import numpy as np

from jaxdyn.model._check import as_numbers
from jaxdyn.model.inertia._inertial import Inertial


@dataclass(frozen=True)
class SlenderRods:
    """A link of two slender rods, with a payload at its end and a hub at its joint.

    One rod of length b runs from the origin along the joint axis z, the other of length
    a from its end along x; both have the line density mass / (a + b), [Mohan] eq. 9.

    Attributes:
        mass: of both rods together.
        payload: point mass at the end (a, 0, b).
        hub: inertia about the joint axis that turns with the link (gears, rotor).
    """

    mass: float
    payload: float = 0.0
    hub: float = 0.0

    def __post_init__(self):
        for key, value in asdict(self).items():
            number = as_numbers(value)
            if number is None or number.shape or not 0 <= number < np.inf:
                raise ValueError(
                    f"slender link: {key} is {value!r}, expected a finite number, zero "
                    "or more."
                )

    def inertial(self, a: float, b: float) -> Inertial:
        """Inertial data in the frame of the link, [Mohan] eq. 17a.

        [Mohan] writes the integrals out in section 4.1, step 3, where C5 must read
        rho a² b / 2. Lengths may be negative; what counts for the mass is their size.
        """
        length = abs(a) + abs(b)
        if length == 0 and self.mass > 0:
            raise ValueError(
                "slender link: a and b are both 0, but the mass of its rods is "
                f"{self.mass}: a rod needs a length; use payload for a point mass."
            )
        rho = self.mass / length if length else 0.0
        bend, end = (0.0, 0.0, b), (a, 0.0, b)
        rods = Inertial.rod(rho * abs(b), (0.0, 0.0, 0.0), bend)
        rods += Inertial.rod(rho * abs(a), bend, end)
        hub = Inertial(inertia=np.diag([0.0, 0.0, self.hub]))
        return rods + Inertial.point(self.payload, end) + hub
