"""MuJoCo's models and files, and its order of states."""

from jaxdyn.io.mjcf._load import from_mujoco_model as from_mujoco_model
from jaxdyn.io.mjcf._load import load_mjcf as load_mjcf
from jaxdyn.io.mjcf._state import from_mujoco as from_mujoco
from jaxdyn.io.mjcf._state import to_mujoco as to_mujoco
from jaxdyn.io.mjcf._write import to_mjcf as to_mjcf
