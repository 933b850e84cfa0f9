# make demo | test | lint: each makes its own virtual environment in .venv and installs what it needs.
PYTHON ?= python3
VENV ?= .venv
EXTRAS ?= test
BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test lint clean

demo: $(VENV)/.installed-plot
	$(BIN)/polyspan demo

test: $(VENV)/.installed-$(EXTRAS)
	$(BIN)/python -m pytest

lint: $(VENV)/.installed-$(EXTRAS)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(VENV)/.installed-%: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e ".[$*]"
	touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache build dist
