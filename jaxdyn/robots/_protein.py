"""Protein-like chains: two revolute joints per residue, the dihedrals phi and psi.

Lengths in angstrom, masses in dalton, time in picoseconds; no gravity.
"""

from typing import Any

import numpy as np

from jaxdyn.model import Inertial, Model, ModelBuilder

_RESIDUE_MASS = {
    **{"A": 71.079, "C": 103.144, "D": 115.089, "E": 129.116, "F": 147.177},
    **{"G": 57.052, "H": 137.141, "I": 113.159, "K": 128.174, "L": 113.159},
    **{"M": 131.198, "N": 114.104, "P": 97.117, "Q": 128.131, "R": 156.188},
    **{"S": 87.078, "T": 101.105, "V": 99.133, "W": 186.213, "Y": 163.176},
}
_H, _C, _N, _O = 1.008, 12.011, 14.007, 15.999
_N_CA, _CA_C, _C_N, _C_O, _N_H, _CA_H = 1.458, 1.525, 1.329, 1.231, 1.01, 1.09
_N_CA_C, _CA_C_N, _C_N_CA, _CA_C_O, _C_N_H = 111.0, 117.2, 121.7, 120.1, 119.2
_TETRAHEDRAL = 109.5


def protein_chain(sequence: str = "A" * 50, *, dtype: Any = None) -> Model:
    """The phi/psi chain of a sequence of residues, [Ghosal]'s example of a long chain.

    The first body of a residue turns by phi about N-CA and carries CA, HA and the side
    chain as one point; the second turns by psi about CA-C and carries the atoms of the
    peptide plane. q are the dihedral angles, 0 = cis; omega is fixed at 180 degrees.

    Args:
        sequence: one-letter codes of the residues; the chain has two DOF for each.
    """
    if not isinstance(sequence, str):
        raise ValueError(
            f"sequence is {sequence!r}, expected a text with one letter for each "
            "residue, such as 'ACDE', or 'A' * 500 for 1000 degrees of freedom."
        )
    b = ModelBuilder(f"protein_like_{2 * len(sequence)}dof", gravity=(0.0, 0.0, 0.0))
    plane, N, tilt = _peptide_plane()
    for i, letter in enumerate(sequence):
        if letter not in _RESIDUE_MASS:
            raise ValueError(
                f"residue {i} is {letter!r}, expected one of {''.join(_RESIDUE_MASS)}."
            )
        # in the frame of psi, N -> CA of the next residue is tilted by a few degrees
        # and the next C is cis on the other side of it: half a turn about the new axis
        R = _about_y(tilt) @ np.diag([-1.0, -1.0, 1.0]) if i else np.eye(3)
        b.add_body(
            f"b{2 * i:04d}",
            2 * i - 1 if i else None,
            "revolute",
            R=R,
            p=N if i else np.zeros(3),
            inertial=_alpha_carbon(letter),
        )
        b.add_body(
            f"b{2 * i + 1:04d}",
            2 * i,
            "revolute",
            R=_about_y(180 - _N_CA_C),
            p=(0.0, 0.0, _N_CA),
            inertial=plane,
        )
    return b.build(dtype)


def _peptide_plane() -> tuple[Inertial, np.ndarray, float]:
    """The atoms C, O, N, H in the frame of psi, the place of N, the tilt of N-CA."""
    bend = 180 - _CA_C_N
    C = np.array([0.0, 0.0, _CA_C])
    N = C + _C_N * _in_plane(bend)
    O = C + _C_O * _in_plane(-(180 - _CA_C_O))
    H = N + _N_H * _in_plane(bend + 180 - _C_N_H)
    return _cloud((_C, C), (_O, O), (_N, N), (_H, H)), N, bend + 180 + _C_N_CA - 360


def _alpha_carbon(letter: str) -> Inertial:
    """CA, HA and the side chain (L form, tetrahedral) in the frame of phi."""
    CA = np.array([0.0, 0.0, _N_CA])
    to_N, to_C = np.array([0.0, 0.0, -1.0]), _in_plane(180 - _N_CA_C)
    between = -(to_N + to_C) / np.linalg.norm(to_N + to_C)
    normal = np.cross(to_N, to_C) / np.linalg.norm(np.cross(to_N, to_C))
    half = np.deg2rad(_TETRAHEDRAL / 2)
    along, across = between * np.cos(half), normal * np.sin(half)
    HA = CA + _CA_H * (along - across)
    CB = CA + (_CA_H if letter == "G" else 1.53) * (along + across)
    rest = _RESIDUE_MASS[letter] - (2 * _C + _O + _N + 2 * _H)
    return _cloud((_C, CA), (_H, HA), (rest, CB))


def _cloud(*points: tuple[float, np.ndarray]) -> Inertial:
    total = Inertial()
    for mass, place in points:
        total = total + Inertial.point(mass, place)
    return total


def _in_plane(degrees: float) -> np.ndarray:
    """A unit vector in the x-z plane, at an angle from z towards x."""
    return np.array([np.sin(np.deg2rad(degrees)), 0.0, np.cos(np.deg2rad(degrees))])


def _about_y(degrees: float) -> np.ndarray:
    x, _, z = _in_plane(degrees)
    return np.array([[z, 0.0, x], [0.0, 1.0, 0.0], [-x, 0.0, z]])
