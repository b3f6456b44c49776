"""Types and numbers as C writes them."""

import numpy as np

TYPES = {
    "float32": "float",
    "float64": "double",
    "bool": "bool",
    "int8": "signed char",
    "uint8": "unsigned char",
    "int32": "int",
    "uint32": "unsigned int",
    "int64": "long long",
    "uint64": "unsigned long long",
}


class UnknownError(Exception):
    """What cannot be printed, by name."""


def c_type(dtype: np.dtype) -> str:
    """The C name of a type."""
    if str(dtype) not in TYPES:
        raise UnknownError(f"the type {dtype}")
    return TYPES[str(dtype)]


def literal(x: np.generic) -> str:
    """A number as C writes it."""
    if isinstance(x, np.bool_):
        return "1" if x else "0"
    if isinstance(x, np.integer):
        suffix = "u" * isinstance(x, np.unsignedinteger) + "ll" * (x.itemsize == 8)
        lowest = np.iinfo(x.dtype).min
        if x == lowest < 0:
            return f"({int(x) + 1}{suffix} - 1)"
        return f"({int(x)}{suffix})" if x < 0 else f"{int(x)}{suffix}"
    if not np.isfinite(x):
        name = "NAN" if np.isnan(x) else "INFINITY"
        return f"(-{name})" if str(x)[0] == "-" else name
    digits = str(x) if any(c in str(x) for c in ".e") else f"{x}.0"
    digits += "f" if x.dtype == np.float32 else ""
    return f"({digits})" if np.signbit(x) else digits
