"""The elements of a model: joints, cut joints and rows, force elements, visuals."""

from jaxdyn.model.elements._actuators import Actuators as Actuators
from jaxdyn.model.elements._couplings import POSITION_LEAVES as POSITION_LEAVES
from jaxdyn.model.elements._couplings import RATE_LEAVES as RATE_LEAVES
from jaxdyn.model.elements._couplings import Couplings as Couplings
from jaxdyn.model.elements._couplings import Relation as Relation
from jaxdyn.model.elements._couplings import check_relation as check_relation
from jaxdyn.model.elements._couplings import resolved as resolved
from jaxdyn.model.elements._cut_joints import Loop as Loop
from jaxdyn.model.elements._cut_joints import Placement as Placement
from jaxdyn.model.elements._cut_joints import check_loop as check_loop
from jaxdyn.model.elements._cut_joints import loop_of as loop_of
from jaxdyn.model.elements._forces import FORCES as FORCES
from jaxdyn.model.elements._forces import AbstractForce as AbstractForce
from jaxdyn.model.elements._forces import BodyState as BodyState
from jaxdyn.model.elements._forces import Loads as Loads
from jaxdyn.model.elements._forces import as_leaf as as_leaf
from jaxdyn.model.elements._forces import body_index as body_index
from jaxdyn.model.elements._forces import force_of as force_of
from jaxdyn.model.elements._gravity_compensation import (
    GravityCompensation as GravityCompensation,
)
from jaxdyn.model.elements._joint_checks import DOF_EFFECTS as DOF_EFFECTS
from jaxdyn.model.elements._joint_checks import DOF_LIMITS as DOF_LIMITS
from jaxdyn.model.elements._joint_checks import FRICTION_SPEED as FRICTION_SPEED
from jaxdyn.model.elements._joint_checks import check_axes as check_axes
from jaxdyn.model.elements._joint_checks import check_effects as check_effects
from jaxdyn.model.elements._joint_checks import check_joint as check_joint
from jaxdyn.model.elements._joint_checks import check_pitch as check_pitch
from jaxdyn.model.elements._joints import COUPLED_TYPES as COUPLED_TYPES
from jaxdyn.model.elements._joints import JOINT_TYPES as JOINT_TYPES
from jaxdyn.model.elements._joints import JointType as JointType
from jaxdyn.model.elements._joints import Step as Step
from jaxdyn.model.elements._rows import CUT_JOINTS as CUT_JOINTS
from jaxdyn.model.elements._rows import ROWS as ROWS
from jaxdyn.model.elements._rows import Row as Row
from jaxdyn.model.elements._rows import Side as Side
from jaxdyn.model.elements._visual import TriangleMesh as TriangleMesh
from jaxdyn.model.elements._visual import Visual as Visual
