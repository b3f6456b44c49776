"""Couplings: how the joints of the tree follow the coordinates of a model."""

from jaxdyn.algorithms.couplings._factor import CoupledFactor as CoupledFactor
from jaxdyn.algorithms.couplings._factor import DenseFactor as DenseFactor
from jaxdyn.algorithms.couplings._factor import coupled_factor as coupled_factor
from jaxdyn.algorithms.couplings._shell import along_both as along_both
from jaxdyn.algorithms.couplings._shell import along_columns as along_columns
from jaxdyn.algorithms.couplings._shell import along_rows as along_rows
from jaxdyn.algorithms.couplings._shell import of_tree as of_tree
