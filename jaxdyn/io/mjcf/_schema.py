"""What the MJCF loader reads, skips and refuses: tags and attributes."""

ORIENTATIONS = ("quat", "axisangle", "euler", "xyaxes", "zaxis")

# Sections without influence on the motion of the tree. Contacts are not modelled.
SKIPPED_SECTIONS = (
    "asset",
    "contact",
    "custom",
    "keyframe",
    "sensor",
    "size",
    "statistic",
    "visual",
)
READ_SECTIONS = (
    "actuator",
    "compiler",
    "default",
    "equality",
    "option",
    "worldbody",
)
REFUSED_SECTIONS = ("deformable", "extension", "tendon")
LOOPS = ("connect", "weld")  # of the equality constraints

READ_IN_BODY = ("inertial", "joint", "freejoint", "geom", "site", "body")
SKIPPED_IN_BODY = ("camera", "light")

# Actuators whose defaults MuJoCo keeps in one place, under the name of the first.
ACTUATORS = (
    "general",
    "motor",
    "position",
    "velocity",
    "intvelocity",
    "orientation",
    "pid",
    "damper",
    "cylinder",
    "muscle",
    "adhesion",
    "dcmotor",
    "plugin",
)
DEFAULT_TAGS = (
    "camera",
    "equality",
    "geom",
    "joint",
    "light",
    "material",
    "mesh",
    "pair",
    "site",
    "tendon",
    "texture",
    *ACTUATORS,
)


def _words(*texts: str) -> frozenset[str]:
    return frozenset(word for text in texts for word in text.split())


_POSE = "pos " + " ".join(ORIENTATIONS)

# Attributes of the elements that are read, used or without influence on the motion.
KNOWN = {
    "body": _words(_POSE, "childclass fuse gravcomp mocap name simple sleep user"),
    "frame": _words(_POSE, "childclass name"),
    "inertial": _words(_POSE, "diaginertia fullinertia mass"),
    "joint": _words(
        "armature axis class damping frictionloss limited name pos range ref",
        "springdamper springref springyield stiffness type",
        "actuatorfrclimited actuatorfrcrange actuatorgravcomp group margin",
        "solimpfriction solimplimit solreffriction solreflimit user",
    ),
    "freejoint": _words("align group name"),
    "geom": _words(
        _POSE,
        "class density fromto group hfield mass mesh name shellinertia size type",
        "adhesion castshadow conaffinity condim contype fitscale fluidcoef fluidshape",
        "friction gap margin material priority rgba solimp solmix solref surfacevel",
        "user",
    ),
    "site": _words(
        _POSE, "class fromto name", "group material mesh rgba size type user"
    ),
    "connect": _words(
        "active anchor body1 body2 class name site1 site2", "solimp solref"
    ),
    "weld": _words(
        "active anchor body1 body2 class name relpose site1 site2",
        "solimp solref torquescale",
    ),
    "compiler": _words(
        "alignfree angle autolimits balanceinertia boundinertia boundmass coordinate",
        "eulerseq inertiafromgeom inertiagrouprange settotalmass",
        "assetdir conflict convexhull discardvisual exactmeshinertia fitaabb",
        "fusestatic meshdir passthrough savecanonical savecompiled saveinertial",
        "strippath texturedir usethread",
    ),
    "option": _words(
        "density gravity viscosity wind",
        "actuatorgroupdisable apirate ccd_iterations ccd_tolerance collision cone",
        "impratio integrator iterations jacobian ls_iterations ls_tolerance magnetic",
        "mpr_iterations mpr_tolerance noslip_iterations noslip_tolerance o_friction",
        "o_margin o_solimp o_solref sdf_initpoints sdf_iterations sleep_tolerance",
        "solver timestep tolerance",
    ),
    "flag": _words(
        "constraint damper frictionloss gravity passive spring",
        "actuation autoreset clampctrl contact diagexact energy equality eulerdamp",
        "filterparent fwdinv invdiscrete ipc island limit midphase multiccd nativeccd",
        "override refsafe sensor sensornoise sleep warmstart",
    ),
    "worldbody": _words("childclass"),
}

# What may stand in an element that is not a body, a frame or a default class.
CHILDREN = {
    "compiler": ("lengthrange",),
    "connect": (),
    "flag": (),
    "freejoint": (),
    "geom": ("plugin",),  # the shape of an sdf, whose mass is not computed
    "inertial": (),
    "joint": (),
    "option": ("flag",),
    "site": (),
    "weld": (),
}

# Attributes that change the motion in a way the model cannot express, with the words
# for which they do not. Neither do they where all their numbers are zero.
_FORCES = {"armature": (), "damping": ()}
UNSUPPORTED: dict[str, dict[str, tuple[str, ...]]] = {
    "body": {"gravcomp": (), "mocap": ("false",)},
    "joint": {"springdamper": (), "springyield": ()},
    "freejoint": {"align": ("auto", "false")},
    "geom": {"shellinertia": ("false",)},
    "compiler": {"alignfree": ("false",), "coordinate": ("local",)},
    "option": {"density": (), "viscosity": (), "wind": ()},
    "flag": dict.fromkeys(
        ("constraint", "damper", "frictionloss", "passive", "spring"), ("enable",)
    ),
    "general": _FORCES,
    "motor": _FORCES,
}
