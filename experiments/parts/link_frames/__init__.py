"""The dynamics of serial chains in link frames, as the papers count operations."""

from experiments.parts.link_frames._forward import (
    link_forward_dynamics as link_forward_dynamics,
)
from experiments.parts.link_frames._forward import link_solve as link_solve
from experiments.parts.link_frames._frames import LinkFrames as LinkFrames
from experiments.parts.link_frames._frames import link_frames as link_frames
from experiments.parts.link_frames._frames import regrouped as regrouped
from experiments.parts.link_frames._inertia import (
    link_inertia_composite as link_inertia_composite,
)
from experiments.parts.link_frames._inertia import (
    link_inertia_gibbs_appell as link_inertia_gibbs_appell,
)
from experiments.parts.link_frames._inverse import (
    link_gibbs_appell as link_gibbs_appell,
)
from experiments.parts.link_frames._inverse import link_kinematics as link_kinematics
from experiments.parts.link_frames._inverse import (
    link_newton_euler as link_newton_euler,
)
