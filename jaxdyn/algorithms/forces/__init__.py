"""Force elements: their part in the dynamics, those that ship; actuators."""

from jaxdyn.algorithms.forces._actuate import actuate as actuate
from jaxdyn.algorithms.forces._elements import element_energy as element_energy
from jaxdyn.algorithms.forces._elements import element_forces as element_forces
from jaxdyn.algorithms.forces._elements import element_losses as element_losses
from jaxdyn.algorithms.forces._elements import element_wrenches as element_wrenches
from jaxdyn.algorithms.forces._elements import joint_slopes as joint_slopes
from jaxdyn.algorithms.forces._spring_damper import SpringDamper as SpringDamper
from jaxdyn.algorithms.forces._stops import JointStops as JointStops
