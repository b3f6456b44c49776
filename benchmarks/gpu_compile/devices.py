"""GPUs that are described and not there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Gpu:
    """The numbers of a GPU that XLA's decisions depend on.

    Attributes:
        name: as the driver reports it.
        capability: the compute capability.
        cores: streaming multiprocessors, with `lanes` for float32 each.
        clock: in GHz.
        bandwidth: of its memory, in bytes a second.
        cache, memory: second-level cache and memory, in bytes.
        shared: shared memory of a multiprocessor in bytes, a kilobyte more than a block
            may ask for.
    """

    name: str
    capability: tuple[int, int]
    cores: int
    lanes: int
    clock: float
    bandwidth: float
    cache: int
    memory: int
    shared: int

    @property
    def architecture(self) -> str:
        """As ptxas calls it."""
        major, minor = self.capability
        return f"sm_{major}{minor}"

    def description(self) -> str:
        """As the text that XLA reads."""
        major, minor = self.capability
        special = "ACCELERATED_FEATURES" if major >= 9 else "NONE"
        capability = f"major: {major} minor: {minor} feature_extension: {special}"
        numbers = {
            "core_count": self.cores,
            "fpus_per_core": self.lanes,
            "clock_rate_ghz": self.clock,
            "memory_bandwidth": int(self.bandwidth),
            "l2_cache_size": self.cache,
            "device_memory_size": self.memory,
            "shared_memory_per_core": self.shared,
            "shared_memory_per_block_optin": self.shared - 1024,
            # the same for all
            "shared_memory_per_block": 48 << 10,
            "threads_per_warp": 32,
            "threads_per_block_limit": 1024,
            "threads_per_core_limit": 2048,
            "registers_per_core_limit": 1 << 16,
            "registers_per_block_limit": 1 << 16,
            "block_dim_limit_x": 2**31 - 1,
            "block_dim_limit_y": 2**16 - 1,
            "block_dim_limit_z": 2**16 - 1,
            "thread_dim_limit_x": 1024,
            "thread_dim_limit_y": 1024,
            "thread_dim_limit_z": 64,
        }
        lines = [f"{name}: {value}" for name, value in numbers.items()]
        lines.append(f"cuda_compute_capability {{ {capability} }}")
        lines.append('dnn_version: "9.8.0"')
        for what in ("driver", "runtime", "compile_time_toolkit"):
            lines.append(f'{what}_version: "12.8.0"')
        inside = "\n".join(lines)
        return (
            f"gpu_device_info {{\n{inside}\n}}\n"
            f'platform_name: "CUDA"\ndevice_description_str: "{self.name}"\n'
        )

    def devices(self, count: int = 1) -> Sequence[Any]:
        """Some of them, for which JAX compiles and on which nothing can run."""
        from jax.experimental import topologies

        return topologies.get_topology_desc(
            platform="cuda",
            target_config=self.description(),
            topology=f"1x1x{count}",
        ).devices


GPUS = {
    "a100": Gpu(
        "NVIDIA A100-SXM4-80GB",
        capability=(8, 0),
        cores=108,
        lanes=64,
        clock=1.41,
        bandwidth=2.03904e12,
        cache=40 << 20,
        memory=85_100_068_864,
        shared=164 << 10,
    ),
    "h100": Gpu(
        "NVIDIA H100 80GB HBM3",
        capability=(9, 0),
        cores=132,
        lanes=128,
        clock=1.98,
        bandwidth=3.35232e12,
        cache=50 << 20,
        memory=84_942_979_072,
        shared=228 << 10,
    ),
}
