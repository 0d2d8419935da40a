PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.DEFAULT_GOAL := help
.PHONY: help install demo test test-kubernetes test-embedded lint format bench bench-kubernetes lock clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(STAMP)  ## Prepare .venv with the `stromboli` command in it

$(STAMP): pyproject.toml requirements-dev.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Stromboli needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: install  ## Watch two teams share a cluster, in under a minute
	$(BIN)/stromboli demo

test: install  ## Run the tests
	$(BIN)/pytest -n auto

test-kubernetes: install  ## Run the tests against a real API server (needs Go; builds it once, in minutes)
	$(BIN)/pytest -n 2 --dist loadfile -m kubernetes -rs tests/kubernetes

test-embedded: install  ## Run the same tests against the embedded API server (needs kubectl)
	$(BIN)/pytest -n 2 --dist loadfile -m kubernetes --server embedded -rs tests/kubernetes
	$(BIN)/pytest -rs tests/embedded/test_kubectl.py

lint: install  ## Check format, lint, types and import rules
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy --strict src
	$(BIN)/lint-imports

format: install  ## Format the code and fix what can be fixed
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: install  ## Measure speed and memory
	$(BIN)/python -m bench

bench-kubernetes: install  ## Measure on a real API server, with kube-scheduler in turn (needs Go)
	$(BIN)/python -m bench kubernetes

lock:  ## Pin the newest dependencies (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --upgrade \
		pyproject.toml -o requirements.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
		-c requirements.lock --group dev pyproject.toml -o requirements-dev.lock

clean:  ## Remove everything that was made
	rm -rf .venv build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
