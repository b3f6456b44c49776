"""The files of the packages that take longest to load, in seconds of the processor.

python -m tests.collections.times
"""

import time
import warnings

import jaxdyn as jd
from jaxdyn.model import TriangleMesh
from tests.collections.files import mjcf_files, short, urdf_files

SHOWN = 3


def loading_times(paths):
    """The time of each file that is read, and whether it took triangles of meshes."""
    times = []
    for path in paths:
        start = time.process_time()
        try:
            model = jd.load(path)
        except ValueError:
            continue
        seconds = time.process_time() - start
        meshes = any(isinstance(x.mesh, TriangleMesh) for x in model.visuals)
        times.append((seconds, meshes, path))
    return sorted(times, reverse=True)


def main():
    """Print the largest times; URDF names mesh files, which are read when drawn."""
    warnings.simplefilter("ignore")
    robots, objects = urdf_files()
    for language, paths in (("URDF", robots + objects), ("MJCF", mjcf_files())):
        loading_times(paths[:5])  # imports and caches
        times = loading_times(paths)
        for with_meshes in (False, True):
            chosen = [(s, path) for s, meshes, path in times if meshes == with_meshes]
            kind = "with" if with_meshes else "without"
            if chosen:
                print(f"{language}, {len(chosen)} files {kind} meshes in the model:")
            for seconds, path in chosen[:SHOWN]:
                print(f"  {seconds:.3f} s  {short(path)}")


if __name__ == "__main__":
    main()
