"""What XLA and ptxas make of programs for NVIDIA GPUs, on a machine without one."""
