"""`jaxdyn bench-gpu`, on the CPU."""

import json

import jax.numpy as jnp
import pytest

from jaxdyn.cli import _bench_gpu
from jaxdyn.cli._main import main

ARM = "bench-gpu --device cpu --robot arm --program mass_matrix --batch".split()


def test_rows_are_printed_and_written(tmp_path, capsys):
    path = tmp_path / "cpu.json"
    assert main([*ARM, "8", "32", "-o", str(path)]) == 0
    found = json.loads(path.read_text())
    assert found["device"] == "cpu: cpu" and set(found["versions"]) >= {"jax", "jaxlib"}
    assert [row["batch"] for row in found["rows"]] == [8, 32]
    for row in found["rows"]:
        assert 0 < row["error"] < 1e-5 and row["seconds"] > 0
        assert row["is_kernel"] is row["roofline"] is None
    assert capsys.readouterr().out.count("mass_matrix") == 2


def test_wrong_results_are_an_error(monkeypatch, capsys):
    def wrong(model, q):
        matrix = _bench_gpu.mass_matrix(model, q)
        return matrix * (1.01 if matrix.dtype == jnp.float32 else 1)

    monkeypatch.setitem(_bench_gpu.PROGRAMS, "mass_matrix", (wrong, "q", 1))
    assert main([*ARM, "8"]) == 2
    said = capsys.readouterr().err
    assert "mass_matrix of 'arm', batch 8" in said and "wrong by 1.0e-02" in said


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["bench-gpu"], "JAX sees no GPU, its first device is cpu"),
        ([*ARM, "8", "12"], "--batch 12, expected a multiple of 8"),
    ],
)
def test_what_cannot_be_measured_is_an_error(words, reason, capsys):
    assert main(words) == 2
    assert reason in capsys.readouterr().err
