# Every target sets up what it needs in .venv; only Python 3.11 or later is required.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench
WORKERS ?= 2

.PHONY: run test test-all check bench bench-bars bench-all reproduce clean
.DEFAULT_GOAL := run

$(VENV)/.installed-%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.$(EXTRAS)'
	touch $@

$(BENCH)/.installed: pyproject.toml benchmarks/requirements.txt
	test -x $(BENCH)/bin/python || $(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check -e . -r benchmarks/requirements.txt
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

test: check  ## check, then the tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

reproduce: $(VENV)/.installed-run  ## all experiments, a quarter of an hour: results/index.html
	$(BIN)/jaxdyn reproduce all --force

test-all: check  ## check, then all tests, also those that repeat others at another size
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m ""

bench: $(BENCH)/.installed  ## jaxdyn beside its peers in five minutes: results/benchmarks
	$(BENCH)/bin/python -m benchmarks --quick

bench-bars: $(BENCH)/.installed  ## what the bars compare, all in one run: a quarter of an hour; docs/performance.md
	$(BENCH)/bin/python -m benchmarks --bars --publish

bench-all: $(BENCH)/.installed  ## all robots, batches and peers: hours; docs/performance.md
	$(BENCH)/bin/python -m benchmarks --publish

clean:
	rm -rf $(VENV) $(BENCH) results build *.egg-info .pytest_cache .ruff_cache .jax_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
