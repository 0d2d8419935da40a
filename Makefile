PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
DEV := .venv/.dev
MEASURE := .venv/.measure
PIP := -q --disable-pip-version-check
PYTEST := $(BIN)/pytest
COVERED := CI=1 $(BIN)/coverage run -m pytest
# Compiled modules are kept, whatever the environment says: tests start many processes, each with all imports.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help install dev demo test test-all test-rest mutants coverage soak test-kubernetes test-embedded lint format bench bench-proof bench-kubernetes bench-simulator crds monitoring chart lock release clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(INSTALLED)  ## Prepare .venv with the `stromboli` command in it
dev: $(DEV)  ## Add to .venv what tests, checks and benchmarks need

$(INSTALLED): pyproject.toml requirements.lock requirements-build.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Stromboli needs Python 3.11 or newer")'
	@echo "Preparing .venv: some packages are fetched, once. This takes about a minute."
	$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install $(PIP) --require-hashes -r requirements.lock -r requirements-build.lock
	$(BIN)/python -m pip install $(PIP) --no-deps --no-build-isolation -e .
	$(BIN)/python -m compileall -q src
	@touch $@

$(DEV): $(INSTALLED) requirements-dev.lock
	@echo "Adding what tests and checks need to .venv, once. This takes about a minute."
	$(BIN)/python -m pip install $(PIP) --require-hashes -r requirements-dev.lock
	@echo "Compiling the tests, once, so that not every process of pytest does."
	-@$(PYTEST) --collect-only -qq >/dev/null
	@touch $@

$(MEASURE): $(DEV) requirements-measure.lock
	@echo "Adding what measures the tests to .venv, once."
	$(BIN)/python -m pip install $(PIP) --require-hashes -r requirements-measure.lock
	@touch $@

demo: install  ## Watch two teams share a small GPU cluster, in under a minute
	$(BIN)/stromboli demo

test: dev  ## Run the fast tests, which need nothing but Python, with all cores
	$(PYTEST) -n auto --tier fast

test-all: dev  ## Run all tests that need nothing but Python, with all cores
	$(PYTEST) -n auto --tier all

test-rest: dev  ## Run what `make test-all` has beyond `make test`
	$(PYTEST) -n auto --tier rest

mutants: $(MEASURE)  ## Count the mutants of some packages that their unit tests kill (half an hour)
	$(BIN)/python -m tests.mutants $(ARGS)

coverage: $(MEASURE)  ## Measure what all tests cover, but for those on the real API server
	rm -f .coverage .coverage.* build/coverage.json
	mkdir -p build
	failed=0; \
	$(COVERED) -n auto --tier all || failed=1; \
	$(COVERED) -n 2 --tier programs || failed=1; \
	$(COVERED) -n 3 -m kubernetes --server embedded tests/kubernetes || failed=1; \
	$(BIN)/coverage combine --quiet && $(BIN)/coverage json -q -o build/coverage.json || failed=1; \
	$(BIN)/python -c 'import json; print("lines {percent_statements_covered:.2f} %, branches {percent_branches_covered:.2f} %".format(**json.load(open("build/coverage.json"))["totals"]))'; \
	exit $$failed

soak: dev  ## Load a whole cluster with honest and hostile users for an hour, and kill it now and then
	STROMBOLI_SOAK_SECONDS=$${STROMBOLI_SOAK_SECONDS:-3600} $(BIN)/pytest -s tests/soak

test-kubernetes: dev  ## Run the tests against a real API server (needs Go; builds it once, in minutes)
	$(PYTEST) -n 3 -m kubernetes -rs tests/kubernetes

test-embedded: dev  ## Run the same tests against the embedded API server, and those with other programs (needs kubectl)
	$(PYTEST) -n 3 -m kubernetes --server embedded -rs tests/kubernetes
	$(PYTEST) -n 3 --tier programs -rs

lint: dev  ## Check format, lint, types and import rules
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy --strict src
	$(BIN)/lint-imports

format: dev  ## Format the code and fix what can be fixed
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: dev  ## Measure speed and memory
	$(BIN)/python -m bench

bench-kubernetes: dev  ## Measure on a real API server, with kube-scheduler in turn (needs Go)
	$(BIN)/python -m bench kubernetes

bench-proof: dev  ## Measure the figures of the README, with kube-scheduler in the same run (needs Go; ten minutes)
	$(BIN)/python -m bench proof

bench-simulator: dev  ## Hold the simulator against published results (hours; interrupt it and go on later)
	$(BIN)/python -m bench simulator

crds: install  ## Write deploy/crds from the definitions in the package
	$(BIN)/python deploy/crds.py

monitoring: install  ## Write rules for Prometheus' operator and Grafana's dashboards to deploy/monitoring
	$(BIN)/python -m deploy.monitoring

chart: install  ## Write the Helm chart from the manifests in deploy
	$(BIN)/python -m deploy.chart

lock:  ## Pin the newest dependencies (needs uv)
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --upgrade \
		pyproject.toml -o requirements.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
		-c requirements.lock --group dev pyproject.toml -o requirements-dev.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
		-c requirements-dev.lock --group build -o requirements-build.lock
	uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
		-c requirements-dev.lock --group measure -o requirements-measure.lock

release: dev  ## Make and check wheels, sdists, image and chart of a release (ARGS="--help")
	$(BIN)/python -m deploy.release $(ARGS)

clean:  ## Remove everything that was made
	rm -rf .venv build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
