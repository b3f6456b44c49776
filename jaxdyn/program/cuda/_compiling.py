"""PTX from CUDA C, by NVIDIA's runtime compiler."""

import ctypes
import hashlib
import os
from functools import cache
from glob import glob
from importlib.util import find_spec

import jax


class CompilerError(Exception):
    """Why there is no PTX."""


@cache
def compiled(text: str, capability: int) -> str:
    """The PTX of a program for a compute capability (80 for 8.0) and all later ones.

    Kept in the process, and where JAX keeps its compiled programs if that is a folder.
    """
    compiler = library()
    version = (ctypes.c_int * 2)()
    compiler.nvrtcVersion(version, ctypes.byref(version, ctypes.sizeof(ctypes.c_int)))
    key = f"{list(version)} {capability} {text}".encode()
    folder = jax.config.jax_compilation_cache_dir  # type: ignore
    if not folder or not os.path.isdir(folder):
        return _compile(compiler, text, capability)
    path = os.path.join(folder, f"jaxdyn-{hashlib.sha256(key).hexdigest()}.ptx")
    if os.path.isfile(path):
        with open(path, encoding="ascii") as file:
            return file.read()
    ptx = _compile(compiler, text, capability)
    with open(f"{path}.{os.getpid()}", "w", encoding="ascii") as file:
        file.write(ptx)
    os.replace(file.name, path)  # whole or not at all
    return ptx


@cache
def library() -> ctypes.CDLL:
    """The compiler, from NVIDIA's wheels or from where the system has it."""
    spec = find_spec("nvidia")
    folders = list(spec.submodule_search_locations or []) if spec else []
    found = [p for f in folders for p in glob(f"{f}/*/lib/libnvrtc.so.1[23]")]
    for name in (*sorted(found), "libnvrtc.so.12", "libnvrtc.so.13"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise CompilerError(
        "NVRTC is not installed: pip install nvidia-cuda-nvrtc-cu12, or jax[cuda12]"
    )


def _compile(compiler: ctypes.CDLL, text: str, capability: int) -> str:
    program = ctypes.c_void_p()

    def call(name, *args):
        code = getattr(compiler, name)(*args)
        if code:
            compiler.nvrtcGetErrorString.restype = ctypes.c_char_p
            raise CompilerError(
                f"{name}: {compiler.nvrtcGetErrorString(code).decode()}"
            )

    def read(what, program):
        size = ctypes.c_size_t()
        call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        call(f"nvrtcGet{what}", program, buffer)
        return buffer.value.decode()

    source = text.encode(), b"jaxdyn.cu", 0, None, None
    call("nvrtcCreateProgram", ctypes.byref(program), *source)
    options = [f"--gpu-architecture=compute_{capability}".encode()]
    array = (ctypes.c_char_p * len(options))(*options)
    try:
        if compiler.nvrtcCompileProgram(program, len(options), array):
            raise CompilerError(f"NVRTC: {read('ProgramLog', program)[:2000]}")
        return read("PTX", program)
    finally:
        compiler.nvrtcDestroyProgram(ctypes.byref(program))
