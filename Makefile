# Each target makes its own virtual environment in .venv and installs what it needs: the extras of
# that name in pyproject.toml, or those of EXTRAS, one installation for several targets.
PYTHON ?= python3
VENV ?= .venv
EXTRAS ?=
CORES ?= logical
BIN = $(VENV)/bin
PLAIN = $(VENV)/.installed
TESTED = $(VENV)/.installed-$(or $(EXTRAS),test)
PYTEST = $(BIN)/python -m pytest --numprocesses $(CORES) --maxprocesses 8 --dist loadgroup --durations 20
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: help demo test test-fast test-explore mutants fuzz kills lint results figure methods bench-methods reproduce smoke docs clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(PLAIN) ## cluster bundled data; writes and opens polyspan-demo.html (half a minute)
	$(BIN)/polyspan demo

test: $(TESTED) ## all tests and doctests (some need POLYSPAN_DATA, see README; minutes)
	$(PYTEST)

test-fast: $(TESTED) ## the tests for every save: without the slow ones and those on published data
	$(PYTEST) -m "not slow and not data"

test-explore: $(TESTED) ## the tests on drawn examples, with new seeds and ten times as many (minutes)
	HYPOTHESIS_PROFILE=explore $(PYTEST) -m hypothesis

mutants: $(TESTED) ## plant wrong changes and see the tests notice (needs the data, ten minutes)
	$(BIN)/python tests/mutants.py

fuzz: $(TESTED) ## hostile input for MINUTES=15, from SEED=0, and what goes wrong with it
	$(BIN)/python tests/fuzz.py --minutes $(or $(MINUTES),15) --seed $(or $(SEED),0)

kills: $(TESTED) ## kill -9 of benchmarks, Dask workers and fits, and what is lost (ten minutes)
	$(BIN)/python tests/kills.py

lint: $(VENV)/.installed-$(or $(EXTRAS),lint) ## ruff (rules and format), mypy, and who may import whom
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

results: $(VENV)/.installed-bench ## RESULTS.md, the README's scores and the measured tables of docs, from the stored rows (seconds)
	$(BIN)/python benchmarks/results.py

figure: $(PLAIN) ## the picture in the README
	$(BIN)/polyspan demo --force --no-open --out docs/images/demo.png
	@rm docs/images/demo.html

methods: $(PLAIN) ## the tables of methods and of data sets: docs/methods.md, docs/data-sets.md
	$(BIN)/python docs/make_methods.py
	$(BIN)/python docs/make_data_sets.py

bench-methods: $(PLAIN) ## benchmarks/METHODS.md: every method beside its reference figures (needs the data, minutes)
	$(BIN)/python benchmarks/methods.py

reproduce: $(VENV)/.installed-test ## the paper's tables and figures: runs what is missing in benchmarks/results (hours from nothing), then RESULTS.md
	$(BIN)/python -m benchmarks rebuild
	for name in paper open wide; do \
	  $(BIN)/python -m benchmarks run benchmarks/$$name.toml --store benchmarks/results/rows.db $(BENCH); \
	  case $$? in 0|1) ;; *) exit 1;; esac; \
	done
	$(BIN)/python -m benchmarks export
	$(BIN)/python benchmarks/results.py --figures

smoke: $(TESTED) ## a small benchmark into a temporary store, and its report (seconds)
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && code=0 && \
	{ $(BIN)/python -m benchmarks run benchmarks/smoke.toml --store "$$folder/smoke.db" || code=$$?; } && \
	$(BIN)/python -m benchmarks report "$$folder/smoke.db" && exit $$code

docs: $(VENV)/.installed-$(or $(EXTRAS),docs) ## the site, docs/_build/html/index.html, with the examples run (a minute)
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

$(PLAIN): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e .
	@touch $@

$(VENV)/.installed-%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing polyspan[$*] into $(VENV), a minute or two the first time"
	$(PIP) -e ".[$*]"
	@touch $@

clean: ## remove the virtual environment and all caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist \
		docs/_build docs/api docs/gallery docs/sg_execution_times.rst
