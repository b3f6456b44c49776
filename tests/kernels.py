"""Functions of pytrees of arrays as kernels, without the shell of `compiled`."""

import jax

from jaxdyn.program._cpu import in_kernel
from jaxdyn.program._kernel import bind, traced


def kernel(function, flat=True):
    def call(*args):
        if in_kernel():
            return function(*args)
        leaves, tree = jax.tree.flatten(args)

        def of_leaves(*leaves):
            return function(*jax.tree.unflatten(tree, leaves))

        one = [False] * len(leaves)
        return bind(traced(of_leaves, leaves, one, flat), leaves, None, one)

    return call
