import sys

import jax.numpy as jnp

import jaxdyn as jd


def frames_before(name, function):
    """The functions of jaxdyn on the stack when one with a given name is entered."""
    found = []

    def look(frame, event, _):
        if event == "call" and frame.f_code.co_name == name and not found:
            while (frame := frame.f_back) is not None:
                if "/jaxdyn/" in frame.f_code.co_filename.replace("\\", "/"):
                    found.append(frame.f_code.co_name)

    sys.setprofile(look)
    try:
        function()
    finally:
        sys.setprofile(None)
    return found[::-1]


def test_the_way_to_the_first_line_of_physics_is_short(without_type_checker):
    arm, x = jd.robots.chain(3), jnp.ones(3)
    found = frames_before("once", lambda: jd.forward_dynamics(arm, x, x, x, refine=0))
    assert found == [
        *("call", "program", "traced", "of_leaves"),  # program/: how it is compiled
        *("forward_dynamics", "solution", "implicit"),  # what is solved, by which rule
    ]
