"""MuJoCo's package: imported where it is used, and how its models are asked."""

import importlib
from typing import Any, SupportsIndex


def mujoco() -> Any:
    """The package."""
    return importlib.import_module("mujoco")


def names(m: Any, kind: str) -> list[str]:
    """The names of all elements of a kind, such as "jnt"; some are empty."""
    text, starts = m.names, getattr(m, f"name_{kind}adr")
    return [text[i : text.index(b"\0", i)].decode(errors="replace") for i in starts]


def word(enum: str, number: Any) -> str:
    """The last word of a constant's name, such as "weld" for 1 in "mjtEq"."""
    return getattr(mujoco(), enum)(int(number)).name.rsplit("_", 1)[1].lower()


def gear(m: Any, actuator: SupportsIndex) -> Any:
    """The six gear ratios of an actuator; it may have several outputs from 4.0 on."""
    return m.actuator_gear[getattr(m, "actuator_outadr", range(m.nu))[actuator]]


def passive_off(off: set[str]) -> bool:
    """Whether flags disable all passive forces, fluids and gravity compensation too."""
    return off >= {"spring", "damper"}


def switched_off(m: Any) -> set[str]:
    """What the flags of a model disable, such as "gravity"."""
    bits = mujoco().mjtDisableBit.__members__.items()
    return {
        name.removeprefix("mjDSBL_").lower()
        for name, bit in bits
        if name.startswith("mjDSBL_") and m.opt.disableflags & int(bit)
    }
