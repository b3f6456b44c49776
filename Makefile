# Every target sets up what it needs in .venv; only Python 3.11 or later is required.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2

.PHONY: run test test-all check bench experiments clean
.DEFAULT_GOAL := run

$(VENV)/.installed-%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.$(EXTRAS)'
	touch $@

$(VENV)/.installed-run: EXTRAS :=
$(VENV)/.installed-bench: EXTRAS := [bench]
$(VENV)/.installed-test: EXTRAS := [test,check]

run: $(VENV)/.installed-run  ## show the default robot and draw it
	$(BIN)/jaxdyn info puma_560 --degrees --q 0 45 180 0 45 0 -o results/puma_560.png

check: $(VENV)/.installed-test  ## format, lint, types, layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports

test: check  ## check, then the tests
	$(BIN)/python -m pytest -n $(WORKERS)

experiments: $(VENV)/.installed-run  ## all studies of experiments/: tables and plots in results/
	for c in configs/*.toml; do $(BIN)/python experiments/$$(basename $$c .toml).py || exit 1; done

test-all: check  ## check, then all tests, also those that repeat others at another size
	$(BIN)/python -m pytest -n $(WORKERS) -m ""

bench: $(VENV)/.installed-bench  ## import time, compile time against the number of bodies
	$(BIN)/python benchmarks/compile_time.py

clean:
	rm -rf $(VENV) results build *.egg-info .pytest_cache .ruff_cache .jax_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
