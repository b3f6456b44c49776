"""Which robots, rows, batches and libraries take part in a run."""

from dataclasses import dataclass, replace

from benchmarks.session import FLAGS, Contestant

PEERS = ("jaxdyn", "pinocchio", "mujoco", "mjx", "jaxsim", "brax", "adam", "frax")
COMPILED = ("pinocchio", "mujoco")  # in C and C++: double precision, no XLA flags
JAX_PEERS = ("mjx", "jaxsim", "brax", "adam", "frax")
PRECISIONS = ("float64", "float32")
BASIC = ("inverse_dynamics", "mass_matrix", "forward_dynamics")
BATCHES = (64, 1024, 4096, 16384, 65536)
CHAINS = (6, 10, 20, 50, 100, 200, 500, 1000)
GROWTH = 64  # the batch of the chains
COMPILE_ROWS = ("forward_kinematics", "body_velocities", "body_accelerations")
COMPILE_ROWS += ("inverse_dynamics", "forward_dynamics")
COMPILE_ROWS += ("forward_gradient", "parameter_gradient")
QUICK_COMPILE = ("jaxdyn", "jaxsim")
# jaxdyn runs as users run it; mjx compiles for minutes with the fusion emitters. The
# quick run takes the flags that were the best in a full run, and leaves out derivatives
# that compile for about a minute and are far from the best.
NO_EMITTERS = tuple(name for name in FLAGS if name in ("no fusion emitters", "both"))
ONLY_FLAGS = {"jaxdyn": ("default",), "mjx": NO_EMITTERS}
QUICK_LEFT_OUT = dict.fromkeys(("jacobian", "rollout_gradient"), ("mjx", "jaxsim"))
QUICK_FLAGS = {"jaxdyn": "default", "jaxsim": "memory scheduler", "frax": "both"}


@dataclass(frozen=True)
class Case:
    """One row of one robot for one batch; batch 0 is one state without batch axis."""

    robot: str
    row: str
    batch: int
    all_cores: bool = False


def quick_cases() -> list[Case]:
    """The 7-dof arm on one core: what most of the bars need."""
    cases = [Case("arm", row, batch) for batch in (4096, 0) for row in BASIC]
    return [*cases, Case("arm", "jacobian", 1024), Case("arm", "rollout_gradient", 64)]


def bars_cases() -> list[Case]:
    """What the bars compare, and nothing else."""
    cases = [Case("arm", row, batch) for batch in (0, *BATCHES) for row in BASIC]
    cases += [Case("arm", "jacobian", 1024), Case("arm", "rollout", 0)]
    cases += [Case("arm", "rollout_gradient", batch) for batch in (0, 64, 1024)]
    cases += [Case("humanoid", "forward_dynamics", 4096)]
    return cases + [Case(f"chain{n}", "forward_dynamics", GROWTH) for n in (50, 1000)]


def full_cases() -> list[Case]:
    """All rows of all robots, on one core and on all."""
    arm = [Case("arm", row, batch) for batch in (0, *BATCHES) for row in BASIC]
    arm += [Case("arm", "jacobian", batch) for batch in (0, 64, 1024)]
    rollouts = ("rollout", "rollout_gradient")
    arm += [Case("arm", row, batch) for row in rollouts for batch in (0, 64, 1024)]
    tree = [Case("humanoid", row, batch) for batch in (0, 4096) for row in BASIC]
    tree += [Case("humanoid", "jacobian", 64)]
    chains = [Case(f"chain{n}", row, GROWTH) for n in CHAINS for row in BASIC]
    chains = [c for c in chains if c.row != "mass_matrix"]
    everywhere = [
        replace(case, all_cores=True)
        for case in (*arm, *tree)
        if case.batch in (1024, 4096, 65536) and case.row != "rollout"
    ]
    return arm + tree + chains + everywhere


def compile_cases(quick: bool) -> list[Case]:
    """Compile times of one state; the trees and kinematics are jaxdyn's alone."""
    if quick:
        cases = [Case(f"chain{n}", "forward_dynamics", 0) for n in (10, 50, 1000)]
        gradients = ("forward_gradient", "parameter_gradient")
        return cases + [Case("chain50", row, 0) for row in gradients]
    robots = [f"chain{n}" for n in (10, 50, 100, 200, 500, 1000)]
    robots += [f"tree{n}" for n in (10, 100, 1000)]
    return [Case(robot, row, 0) for robot in robots for row in COMPILE_ROWS]


def contestants(
    peers: list[str], precisions: list[str], flags: list[str]
) -> list[Contestant]:
    """Each library in each precision under each set of flags it may have."""
    result = [Contestant(peer, "float64") for peer in peers if peer in COMPILED]
    for peer in peers:
        if peer not in COMPILED:
            allowed = tuple(ONLY_FLAGS.get(peer, FLAGS))
            names = [name for name in flags if name in allowed] or allowed[:1]
            result += [Contestant(peer, p, name) for p in precisions for name in names]
    return sorted(result, key=lambda who: PEERS.index(who.peer))


def quick_contestants(peers: list[str]) -> list[Contestant]:
    """Each library in double precision under one set of flags; jaxdyn in both."""
    result = [
        Contestant(
            peer,
            "float64",
            "default" if peer in COMPILED else QUICK_FLAGS.get(peer, "both"),
        )
        for peer in peers
    ]
    return result + [Contestant("jaxdyn", "float32")] * ("jaxdyn" in peers)


def bars_contestants(peers: list[str]) -> list[Contestant]:
    """Those of the quick run; libraries on JAX in both precisions."""
    result = quick_contestants(peers)
    others = [w for w in result if w.peer in JAX_PEERS]
    return result + [replace(w, precision="float32") for w in others]


def takes_part_in_bars(who: Contestant, case: Case) -> bool:
    """Other batches and the chains are jaxdyn's; single precision is for batch 4096."""
    is_large = case.robot == "arm" and case.row in BASIC and case.batch not in (0, 4096)
    if who.peer == "jaxdyn":
        return not (who.precision == "float32" and case.batch != 4096)
    if is_large or case.robot.startswith("chain"):
        return False
    if who.precision == "float32":
        return case.robot == "arm" and case.batch == 4096
    return True


def takes_part(who: Contestant, case: Case) -> bool:
    """Chains are for double precision under one set of flags, trees for jaxdyn."""
    if who.peer == "jaxdyn":
        is_single = who.precision == "float32"
        return not (is_single and case.robot.startswith(("chain", "tree")))
    if case.robot.startswith("chain"):
        flags = "default" if who.peer in COMPILED else QUICK_FLAGS.get(who.peer, "both")
        return who.precision == "float64" and who.flags == flags
    return not case.robot.startswith("tree")


def compiles(who: Contestant, case: Case) -> bool:
    """Who takes part in compile times: peers up to n = 50, forward dynamics only."""
    if who.peer == "jaxdyn":
        return takes_part(who, case)
    if who.peer in COMPILED or case.row != "forward_dynamics":
        return False
    return case.robot in ("chain10", "chain50") and who.precision == "float64"
