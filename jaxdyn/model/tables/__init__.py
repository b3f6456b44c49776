"""What NumPy decides before a program runs: the topology and its tables."""

from jaxdyn.model.tables._contraction import CHUNK as CHUNK
from jaxdyn.model.tables._contraction import Contraction as Contraction
from jaxdyn.model.tables._contraction import contract as contract
from jaxdyn.model.tables._coupled import CoupledPlaces as CoupledPlaces
from jaxdyn.model.tables._coupled import coupled_places as coupled_places
from jaxdyn.model.tables._loop_plan import LoopPlan as LoopPlan
from jaxdyn.model.tables._loop_plan import loop_plan as loop_plan
from jaxdyn.model.tables._modules import Modules as Modules
from jaxdyn.model.tables._topology import DIRECTIONS as DIRECTIONS
from jaxdyn.model.tables._topology import Topology as Topology
from jaxdyn.model.tables._topology import directions as directions
