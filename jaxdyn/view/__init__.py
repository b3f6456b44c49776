"""Pictures, plots, pages and a live view of robots that move."""

from jaxdyn.view._animation import save_animation as save_animation
from jaxdyn.view._coordinates import MOLECULAR as MOLECULAR
from jaxdyn.view._coordinates import SI as SI
from jaxdyn.view._coordinates import Units as Units
from jaxdyn.view._fits import plot_correlation as plot_correlation
from jaxdyn.view._fits import plot_deviations as plot_deviations
from jaxdyn.view._fits import plot_fit as plot_fit
from jaxdyn.view._fits import plot_history as plot_history
from jaxdyn.view._fits import plot_intervals as plot_intervals
from jaxdyn.view._gltf import save_gltf as save_gltf
from jaxdyn.view._live import Player as Player
from jaxdyn.view._live import Poser as Poser
from jaxdyn.view._live import serve as serve
from jaxdyn.view._plots import draw as draw
from jaxdyn.view._plots import save_plots as save_plots
from jaxdyn.view._rerun import save_rerun as save_rerun
