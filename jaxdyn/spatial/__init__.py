"""Three-dimensional algebra in components: vectors, rotations, inertia."""

from jaxdyn.spatial._inertia import ArticulatedInertia as ArticulatedInertia
from jaxdyn.spatial._inertia import RigidInertia as RigidInertia
from jaxdyn.spatial._rotations import Quaternion as Quaternion
from jaxdyn.spatial._rotations import axis_angle as axis_angle
from jaxdyn.spatial._rotations import cos_sin as cos_sin
from jaxdyn.spatial._rotations import exp as exp
from jaxdyn.spatial._rotations import frame_along as frame_along
from jaxdyn.spatial._rotations import log as log
from jaxdyn.spatial._rotations import turn_z as turn_z
from jaxdyn.spatial._scalars import Scalar as Scalar
from jaxdyn.spatial._vec3 import Mat3 as Mat3
from jaxdyn.spatial._vec3 import Sym3 as Sym3
from jaxdyn.spatial._vec3 import Vec3 as Vec3
from jaxdyn.spatial._vec3 import cross as cross
from jaxdyn.spatial._vec3 import cross_columns as cross_columns
from jaxdyn.spatial._vec3 import dot as dot
from jaxdyn.spatial._vec3 import inverse as inverse
from jaxdyn.spatial._vec3 import outer as outer
from jaxdyn.spatial._vec3 import similarity as similarity
from jaxdyn.spatial._vec3 import similarity_x as similarity_x
from jaxdyn.spatial._vec3 import similarity_z as similarity_z
from jaxdyn.spatial._vec3 import skew as skew
from jaxdyn.spatial._vec3 import skew_square as skew_square
from jaxdyn.spatial._vec3 import square as square
from jaxdyn.spatial._vec3 import symmetric as symmetric
from jaxdyn.spatial._vec3 import upper as upper
