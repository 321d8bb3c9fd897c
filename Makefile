# Everything runs in .venv, which `make setup` creates from pinned versions. Requires only Python 3.11.5 or newer and make.
PYTHON ?= python3
BIN := .venv/bin
PACKAGES := $(patsubst %/pyproject.toml,%,$(wildcard packages/*/pyproject.toml))

LIVE := measuring memory_agent $(addprefix executors/,on_dask on_slurm commands) $(addprefix slurm/,live placing sharing ordering seeing faults choices) $(addprefix kubernetes/,live devices order forecasting tutorial shipped doctor volumes placement_rules random_rules sharing waiting pod_groups faults outages node_agent rates soak)

# What CI runs of it, in at most five minutes; Kubernetes only where its control plane is built already
KUBE_BUILT := $(wildcard $(or $(KUBE_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/poolwise/kube)/*/built)
LIVE_SHORT := slurm/live.py::test_priorities_equal_those_of_sprio slurm/placing.py::test_jobs_run_on_their_assigned_nodes executors/on_dask.py::test_study_results_on_dask_equal_local_results $(if $(KUBE_BUILT),kubernetes/live.py::test_pods_without_claims_run kubernetes/live.py::test_local_and_fabric_devices)

FAST = $(BIN)/pytest -m "not long" --numprocesses 2 --dist loadgroup

# Python caches bytecode, whatever the environment says: the tests start thousands of processes
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup kernels test test-fast test-long test-reproductions slurm test-live test-live-short lint demo pictures bench docs dist test-dist format clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 10

setup: .venv/ready ## build .venv with pinned versions

.venv/ready: pyproject.toml constraints.txt $(PACKAGES:=/pyproject.toml)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11, 5))' || { echo "The pinned tools need Python 3.11.5 or newer; set PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt pip uv
	$(BIN)/uv pip install --quiet --constraint constraints.txt hatchling editables
	$(BIN)/uv pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[dev]' $(PACKAGES:%=--editable './%[dev]')
	@touch $@

lint: setup ## check format, lint, types and import contracts
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

kernels: setup ## compile all kernels once (about a minute on two cores; later runs load them)
	$(BIN)/poolwise compile

test: setup ## run lint and the fast tests
	$(MAKE) --no-print-directory --jobs 2 --output-sync=target lint kernels
	$(FAST)

test-fast: kernels ## run the fast tests
	$(FAST)

test-long: kernels ## run the long tests: every documentation page and system; outside CI, more random studies and logs, and all property tests on new examples
	$(if $(CI),,POOLWISE_EXAMPLES=$(or $(POOLWISE_EXAMPLES),1)) $(BIN)/pytest -m "(long $(if $(CI),and not further,or property)) and not reproduction" --numprocesses 2 --dist loadgroup

test-reproductions: kernels ## run each figure of each reproduction alone, with the quick settings (5 to 30 minutes)
	$(BIN)/pytest -m reproduction

slurm: ## install a Slurm for the live tests, if none is installed
	tests/live/slurm/packages.sh

test-live: setup slurm ## test against a real Slurm, Kubernetes and Dask; install or build what is missing
	$(BIN)/pytest -rs -s --live-results benchmarks/results/live.json $(LIVE:%=tests/live/%.py)

test-live-short: setup slurm ## test against a real Slurm, Dask and, if it is built, Kubernetes, as CI does
	POOLWISE_LIVE_JOBS=100 $(BIN)/pytest -rs $(LIVE_SHORT:%=tests/live/%)

demo: setup ## run the CERIT-SC study: a table, and a report to open in a browser
	$(BIN)/poolwise run cerit-pools --out results/cerit-pools

pictures: setup ## redraw the figures of the documentation
	$(BIN)/python docs/make_pictures.py

bench: setup ## run the benchmarks, as ratios within one run
	$(BIN)/python -m benchmarks

docs: setup ## build the documentation site in results/site/VERSION, with warnings as errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

dist: setup ## build all distributions in dist/: sdists, wheels, and a wheel of the core for x86-64 Linux with compiled kernels
	rm -rf dist build/kernels
	$(BIN)/hatchling build --directory dist
	for each in $(PACKAGES); do (cd $$each && $(CURDIR)/$(BIN)/hatchling build --directory $(CURDIR)/dist) || exit 1; done
	$(BIN)/poolwise compile --target x86-64-v3 --out build/kernels
	find build/kernels -name '*.lock' -delete
	POOLWISE_COMPILED_KERNELS=build/kernels/poolwise $(BIN)/hatchling build --target wheel --directory dist

test-dist: dist ## test the wheel with compiled kernels in an empty environment
	$(BIN)/pytest -s tests/dist/platform_wheel.py

format: setup ## format and fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove build products
	rm -rf .venv results .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
