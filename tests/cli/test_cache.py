import os
import subprocess
import sys
from pathlib import Path

import jax
import pytest

from jaxdyn.cli import _cache, main

CODE = """
import collections
from jax import monitoring
from jaxdyn.cli import main
seen = collections.Counter()
monitoring.register_event_listener(lambda name, **_: seen.update([name]))
assert main(["info", "chain"]) == 0
print(*(seen[f"/jax/compilation_cache/cache_{x}"] for x in ("misses", "hits")))
"""


def test_a_second_process_compiles_nothing(tmp_path):
    environment = os.environ | {"JAXDYN_CACHE": str(tmp_path)}

    def run():
        command = [sys.executable, "-c", CODE]
        done = subprocess.run(command, env=environment, capture_output=True, check=True)
        return map(int, done.stdout.split()[-2:])

    compiled, _ = run()
    again, loaded = run()
    assert (again, loaded) == (0, compiled) and compiled > 5


@pytest.fixture
def settings():
    """The settings of JAX that commands change, as they were afterwards."""
    names = ("dir", "max_size")
    before = {x: getattr(jax.config, f"jax_compilation_cache_{x}") for x in names}
    jax.config.update("jax_compilation_cache_dir", None)
    yield
    for name, value in before.items():
        jax.config.update(f"jax_compilation_cache_{name}", value)


def test_the_folder_is_that_of_the_user_or_the_one_that_is_named(settings, monkeypatch):
    monkeypatch.delenv("JAXDYN_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/there")
    monkeypatch.setattr(sys, "platform", "linux")
    assert _cache.cache_folder() == Path("/there/jaxdyn")
    monkeypatch.setenv("JAXDYN_CACHE", "/here")
    assert _cache.cache_folder() == Path("/here")
    monkeypatch.setenv("JAXDYN_CACHE", "off")
    assert _cache.cache_folder() is None
    monkeypatch.delenv("JAXDYN_CACHE")
    jax.config.update("jax_compilation_cache_dir", "/of/jax")
    assert _cache.cache_folder() is None


def test_a_folder_that_cannot_be_made_is_no_error(settings, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("JAXDYN_CACHE", str(tmp_path / "file" / "folder"))
    _cache.keep_programs()
    assert jax.config.jax_compilation_cache_dir is None


@pytest.mark.parametrize(
    ("release", "level", "again"),
    [("0.9.0.1", "1", True), ("0.9.0", "3", False), ("0.12.0.1", "1", False)],
)
def test_old_releases_start_again_without_their_log(release, level, again, monkeypatch):
    started = []
    monkeypatch.setattr(_cache, "version", lambda name: release)
    monkeypatch.setattr(os, "execv", lambda *words: started.append(words))
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", level)
    _cache.start_quietly()
    assert started == ([(sys.executable, sys.orig_argv)] if again else [])
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == ("3" if again else level)


def test_check_needs_no_robot_and_ends_with_1_for_a_problem(monkeypatch, capsys):
    from jaxdyn.analysis import Installation
    from jaxdyn.cli import _info

    for problem, code in (("", 0), ("bad", 1)):
        found = Installation({"jax": "0.0"}, [], "", {"products": problem})
        monkeypatch.setattr(_info, "check_installation", lambda found=found: found)
        assert main(["info", "--check"]) == code
        assert (problem or "right") in capsys.readouterr().out
    assert main(["info", "--check", "chain"]) == 2
    assert main(["info"]) == 2
    assert "needs a ROBOT, or --check" in capsys.readouterr().err
