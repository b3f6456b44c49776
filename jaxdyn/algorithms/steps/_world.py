"""One elementary step in world axes."""

from jaxdyn.algorithms.steps._local import LocalStep
from jaxdyn.spatial import Mat3, Scalar, Twist, Vec3, Wrench, dot, pytree, turn_z


@pytree
class WorldStep:
    """One elementary step in world axes, at its own origin.

    Attributes:
        e: axis.
        turn, slide: angular and linear velocity along `e` per unit rate.
        a: offset from the parent's origin.
    """

    e: Vec3
    turn: Scalar
    slide: Scalar
    a: Vec3

    @staticmethod
    def of(local: LocalStep, R: Mat3, a: Vec3) -> "WorldStep":
        """The step with the axes `R` and the offset `a` in the world."""
        return WorldStep(R.z, local.turn, local.slide, a)

    def column(self, s: Scalar) -> Twist:
        """The twist p s of the step."""
        return Twist(self.e * (self.slide * s), self.e * (self.turn * s))

    def along(self, wrench: Wrench) -> Scalar:
        """The part pᵀ w of a wrench that acts along the step."""
        return self.slide * dot(self.e, wrench.f) + self.turn * dot(self.e, wrench.n)

    def to_child(self, twist: Twist) -> Twist:
        """A_{i,p} t: the parent's twist, taken at this origin."""
        return twist.shift(self.a)

    def to_parent(self, wrench: Wrench) -> Wrench:
        """A_{i,p}ᵀ w: a wrench at this origin, about the parent's."""
        return wrench.shift(self.a)


def move(R0: Mat3, local: LocalStep) -> tuple[Mat3, WorldStep]:
    """Axes of a step from those of its parent, and the step, in the world."""
    R = turn_z(R0 @ Mat3.of(local.C), local.c, local.s)
    return R, WorldStep.of(local, R, R0 @ Vec3.of(local.b) + R.z * local.d)
