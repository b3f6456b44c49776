"""Motions from whose log parameters are known best."""

from jaxdyn.identify.excitation._excite import Excitation as Excitation
from jaxdyn.identify.excitation._excite import excite as excite
from jaxdyn.identify.excitation._excite import random_excitation as random_excitation
