# Every target sets up what it needs in .venv; only Python 3.11 or later is required.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench
ROBOTS := .venv-robots
GPU := .venv-gpu
WORKERS ?= 2

# tests that run with every annotation of jaxdyn checked: they trace every public function
TYPED := tests/spatial tests/model tests/io
TYPED_CONTRACT := tests/test_contract.py::test_float32_stays_float32
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
# "none" leaves out the tests of pages
BROWSER ?= $(shell command -v chromium || command -v chromium-browser || command -v google-chrome)

.PHONY: run test test-all test-robots test-gpu test-matrix check browser pictures bench bench-bars bench-all bench-gpu-compile reproduce clean
.DEFAULT_GOAL := run

$(VENV)/.installed-%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.$(EXTRAS)'
	touch $@

$(BENCH)/.installed: pyproject.toml benchmarks/requirements.txt
	test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check -e . -r benchmarks/requirements.txt
	touch $@

$(ROBOTS)/.installed: pyproject.toml tests/collections/requirements.txt
	test -x $(ROBOTS)/bin/python || $(PYTHON) -m venv $(ROBOTS)
	$(ROBOTS)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[test]' -r tests/collections/requirements.txt
	touch $@

$(GPU)/.installed: pyproject.toml tests/gpu/requirements.txt
	test -x $(GPU)/bin/python || $$($(PYTHON) .ci/matrix.py which) -m venv $(GPU)
	$(GPU)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[test]' -r tests/gpu/requirements.txt
	touch $@

$(GPU)/.installed-peers: $(GPU)/.installed benchmarks/requirements.txt
	grep -E '^(mujoco|brax|frax)' benchmarks/requirements.txt | $(GPU)/bin/python -m pip install --quiet --disable-pip-version-check -r /dev/stdin -r tests/gpu/requirements.txt
	touch $@

$(VENV)/.installed-run: EXTRAS := [view]
$(VENV)/.installed-test: EXTRAS := [view,test,check]

run: $(VENV)/.installed-run  ## simulate the default robot: table, plots and animation in results/puma
	$(BIN)/jaxdyn simulate configs/puma.toml --force

check: $(VENV)/.installed-test  ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports

test: $(VENV)/.installed-test  ## check, then the tests
	$(MAKE) --no-print-directory -j2 -Otarget check browser
	$(PYTEST) --jaxtyping-packages=jaxdyn,beartype.beartype $(TYPED) $(TYPED_CONTRACT)
	$(PYTEST) $(addprefix --ignore=,$(TYPED)) $(addprefix --deselect=,$(TYPED_CONTRACT))

	@if test -f $(GPU)/.installed; then JAX_PLATFORMS=cpu $(GPU)/bin/python -m pytest tests/gpu; \
	else echo "Not run: the tests of programs compiled for GPUs (make test-gpu installs what they need)"; fi

browser:  ## a browser for the tests of pages
	@if test -z "$(BROWSER)"; then \
	  if test "$$(id -u)" = 0 && command -v apt-get > /dev/null; then \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends chromium > /dev/null; \
	  else \
	    echo "The tests of pages need chromium or chrome: install one, or leave them out with: make test BROWSER=none"; exit 1; \
	  fi; \
	fi

test-matrix:  ## the core of the tests: oldest and newest JAX on every Python of this machine
	$(PYTHON) .ci/matrix.py oldest newest

reproduce: $(VENV)/.installed-run  ## all experiments, a quarter of an hour: results/index.html
	$(BIN)/python -m experiments all --force

test-all: check browser  ## check, then all tests, also those that repeat others at another size
	$(PYTEST) --jaxtyping-packages=jaxdyn,beartype.beartype -m ""

test-robots: $(ROBOTS)/.installed  ## the robots of public packages beside MuJoCo and Pinocchio
	JAXDYN_COLLECTIONS=1 $(ROBOTS)/bin/python -m pytest -n $(WORKERS) tests/collections
	$(ROBOTS)/bin/python -m tests.collections.times

test-gpu: $(GPU)/.installed  ## programs compiled for NVIDIA GPUs, without one: some gigabytes of wheels
	JAX_PLATFORMS=cpu $(GPU)/bin/python -m pytest tests/gpu

pictures: $(VENV)/.installed-test $(ROBOTS)/.installed browser  ## the pictures of README.md and docs/view.md
	$(BIN)/python docs/pictures.py

bench: $(BENCH)/.installed  ## jaxdyn beside its peers in five minutes: results/benchmarks
	$(BENCH)/bin/python -m benchmarks --quick

bench-bars: $(BENCH)/.installed  ## what the bars compare, all in one run: a quarter of an hour; docs/performance.md
	$(BENCH)/bin/python -m benchmarks --bars --publish

bench-all: $(BENCH)/.installed  ## all robots, batches and peers: hours; docs/performance.md
	$(BENCH)/bin/python -m benchmarks --publish

bench-gpu-compile: $(GPU)/.installed-peers  ## kernels and bytes on an A100 beside MJX, brax and frax, compiled without one
	$(GPU)/bin/python -m benchmarks.gpu_compile
	$(GPU)/bin/python -m benchmarks.gpu_compile --robot arm --library mjx brax frax

clean:
	rm -rf $(VENV) $(BENCH) $(ROBOTS) $(GPU) .venv-matrix results build *.egg-info .pytest_cache .ruff_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
