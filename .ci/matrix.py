"""The core of the test suite with the oldest and newest JAX on each Python found here.

    python .ci/matrix.py [oldest] [newest] [--last]

With --last only on the last of these Pythons. Environments are kept in .venv-matrix.
`python .ci/matrix.py which` prints the path of the last one.
"""

import os
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14")
CORE = """
    tests/spatial tests/model tests/program tests/test_reference_dynamics.py
    tests/algorithms/recursions/test_joint_forces.py
    tests/simulate/test_batched.py tests/simulate/test_power.py
    tests/identify/test_checkpoints.py tests/io/test_results.py tests/view/test_plots.py
""".split()


def program(name: str) -> str | None:
    """A Python that runs: on the path, or of pyenv, whose shims may point nowhere."""
    found = shutil.which(name)
    if found is None:
        return None
    others = Path(found).parent.parent.glob(f"versions/{name[6:]}*/bin/{name}")
    for path in (found, *map(str, sorted(others))):
        if subprocess.run([path, "-c", ""], capture_output=True).returncode == 0:
            return path
    return None


def oldest(is_first: bool) -> list[str]:
    """Requirements at their lower bounds; but for the first Python only those of JAX.

    Later Pythons have no wheels for the oldest of the others.
    """
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    needs = project["dependencies"] + project["optional-dependencies"]["view"]
    pins = [need.split(",")[0].replace(">=", "==") for need in needs]
    return [pin for pin in pins if is_first or pin.startswith(("jax==", "jaxlib=="))]


def environment(python: str, name: str, pins: list[str]) -> Path:
    """The interpreter of an environment with jaxdyn and its requirements."""
    folder = TOP / ".venv-matrix" / name
    made = folder / "bin" / "python"
    if not made.exists():
        subprocess.run([python, "-m", "venv", folder], check=True)
    install = [made, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    upgrade = [] if pins else ["--upgrade", "--upgrade-strategy", "eager"]
    subprocess.run([*install, *upgrade, "-e", f"{TOP}[view,test]", *pins], check=True)
    return made


def tested(python: Path) -> tuple[str, bool, str]:
    """The versions, whether the tests passed, and what they say at the end."""
    code = "import sys, jax; print(sys.version.split()[0], jax.__version__)"
    said = [subprocess.run([python, "-c", code], capture_output=True, text=True).stdout]
    # shown, not judged: it measures times
    subprocess.run([python, "-m", "jaxdyn.cli", "info", "--check"], cwd=TOP)
    workers = os.environ.get("WORKERS", "2")
    run = [python, "-m", "pytest", "-q", "-n", workers, *CORE]
    tests = subprocess.Popen(run, cwd=TOP, stdout=subprocess.PIPE, text=True)
    for line in tests.stdout or ():
        print(line, end="", flush=True)
        said.append(line.strip())
    return said[0].strip(), tests.wait() == 0, said[-1]


def main(words: list[str]) -> int:
    """Run the matrix and print what was run."""
    found = {name: path for name in PYTHONS if (path := program(name))}
    if words == ["which"]:
        print(list(found.values())[-1])
        return 0
    chosen = list(found)[-1:] if "--last" in words else list(found)
    kinds = [word for word in words if word != "--last"] or ["oldest", "newest"]
    rows = []
    for name in chosen:
        for kind in kinds:
            start = time.perf_counter()
            pins = oldest(name == PYTHONS[0]) if kind == "oldest" else []
            python = environment(found[name], f"{name}-{kind}", pins)
            versions, passed, end = tested(python)
            minutes = (time.perf_counter() - start) / 60
            rows.append((passed, f"{kind:<8}{versions:<20}{minutes:5.1f} min  {end}"))
    print("\n        Python JAX", *(row for _, row in rows), sep="\n")
    return 0 if all(passed for passed, _ in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
