"""The robot as data: topology, joints, inertial parameters, and how to build it."""

from jaxdyn.model._arguments import FExt as FExt
from jaxdyn.model._arguments import Nq as Nq
from jaxdyn.model._arguments import Nv as Nv
from jaxdyn.model._arguments import arguments as arguments
from jaxdyn.model._build import ModelBuilder as ModelBuilder
from jaxdyn.model._check import check_finite as check_finite
from jaxdyn.model._check import is_index as is_index
from jaxdyn.model._check import unit_vectors as unit_vectors
from jaxdyn.model._choice import chosen_coordinates as chosen_coordinates
from jaxdyn.model._choice import chosen_joint as chosen_joint
from jaxdyn.model._choice import chosen_joints as chosen_joints
from jaxdyn.model._inertial import Inertial as Inertial
from jaxdyn.model._model import Model as Model
from jaxdyn.model._parameters import from_log_cholesky as from_log_cholesky
from jaxdyn.model._parameters import from_pi as from_pi
from jaxdyn.model._parameters import inertial_parameters as inertial_parameters
from jaxdyn.model._parameters import pseudo_inertia as pseudo_inertia
from jaxdyn.model._parameters import to_log_cholesky as to_log_cholesky
from jaxdyn.model._parameters import to_pi as to_pi
from jaxdyn.model._parameters import (
    with_inertial_parameters as with_inertial_parameters,
)
from jaxdyn.model._report import UNRESISTED as UNRESISTED
from jaxdyn.model._report import Note as Note
from jaxdyn.model._report import Notes as Notes
from jaxdyn.model._singular import singular_joints as singular_joints
from jaxdyn.model._slender import SlenderRods as SlenderRods
from jaxdyn.model.elements import CUT_JOINTS as CUT_JOINTS
from jaxdyn.model.elements import FRICTION_SPEED as FRICTION_SPEED
from jaxdyn.model.elements import JOINT_TYPES as JOINT_TYPES
from jaxdyn.model.elements import ROWS as ROWS
from jaxdyn.model.elements import AbstractForce as AbstractForce
from jaxdyn.model.elements import Actuators as Actuators
from jaxdyn.model.elements import BodyState as BodyState
from jaxdyn.model.elements import GravityCompensation as GravityCompensation
from jaxdyn.model.elements import JointType as JointType
from jaxdyn.model.elements import Loads as Loads
from jaxdyn.model.elements import Loop as Loop
from jaxdyn.model.elements import Row as Row
from jaxdyn.model.elements import Side as Side
from jaxdyn.model.elements import Step as Step
from jaxdyn.model.elements import TriangleMesh as TriangleMesh
from jaxdyn.model.elements import Visual as Visual
from jaxdyn.model.elements import as_leaf as as_leaf
from jaxdyn.model.elements import body_index as body_index
from jaxdyn.model.tables import CHUNK as CHUNK
from jaxdyn.model.tables import Contraction as Contraction
from jaxdyn.model.tables import LoopPlan as LoopPlan
from jaxdyn.model.tables import Modules as Modules
from jaxdyn.model.tables import Topology as Topology
from jaxdyn.model.tables import directions as directions
from jaxdyn.model.tables import loop_plan as loop_plan
