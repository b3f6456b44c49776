"""Robots that come with the library: the systems of the papers, and random ones."""

from jaxdyn.robots._arms import featherstone_2p as featherstone_2p
from jaxdyn.robots._arms import gripper as gripper
from jaxdyn.robots._arms import lecture_tree as lecture_tree
from jaxdyn.robots._arms import mata_two_link as mata_two_link
from jaxdyn.robots._arms import puma_560 as puma_560
from jaxdyn.robots._arms import puma_mohan_saha as puma_mohan_saha
from jaxdyn.robots._arms import rope as rope
from jaxdyn.robots._closed import five_bar as five_bar
from jaxdyn.robots._closed import four_bar as four_bar
from jaxdyn.robots._closed import ladder as ladder
from jaxdyn.robots._closed import slider_crank as slider_crank
from jaxdyn.robots._closed import stewart_gough as stewart_gough
from jaxdyn.robots._closed import three_rrr as three_rrr
from jaxdyn.robots._protein import protein_chain as protein_chain
from jaxdyn.robots._random import chain as chain
from jaxdyn.robots._random import random_tree as random_tree
