# Everything runs in .venv, which `make setup` builds from pinned versions. Only Python 3.11.5 or newer and make are needed.
PYTHON ?= python3
BIN := .venv/bin

LIVE := measuring memory_agent $(addprefix executors/,on_dask on_ray on_slurm commands) $(addprefix slurm/,live placing sharing ordering seeing faults) $(addprefix kubernetes/,live devices order forecasting tutorial shipped faults node_agent rates soak)

.PHONY: help setup kernels test test-long test-live lint demo pictures bench docs format clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 10

setup: .venv/ready ## build .venv with pinned versions

.venv/ready: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11, 5))' || { echo "The pinned tools need Python 3.11.5 or newer; set PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt pip hatchling editables
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --no-build-isolation --editable '.[dev]'
	@touch $@

lint: setup ## format check, lint, types, import contracts
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

kernels: setup ## compile all kernels once (two minutes on two cores; later starts load them)
	$(BIN)/poolwise compile

test: lint kernels ## format, lint, types, import contracts, and the tests that take less than six minutes
	$(BIN)/pytest -m "not long" --numprocesses 2 --dist loadgroup

test-long: kernels ## the tests that take longer: every page and system, long searches for counterexamples
	$(BIN)/pytest -m long --numprocesses 2 --dist loadgroup

test-live: setup ## against a real Slurm, Kubernetes, Dask and Ray: installs or builds them where they are missing, and says so
	tests/live/slurm/packages.sh
	$(BIN)/pytest -rs -s $(LIVE:%=tests/live/%.py)

demo: setup ## the main job on the CERIT-SC log: a table, and a report to open in a browser
	$(BIN)/poolwise run cerit-pools --out results/cerit-pools

pictures: setup ## the charts of the documentation, drawn again
	$(BIN)/python docs/make_pictures.py

bench: setup ## benchmarks, as ratios in one run
	$(BIN)/python -m benchmarks

docs: setup ## the documentation as a site, in results/site
	$(BIN)/mkdocs build --quiet

format: setup ## format and fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove what was built
	rm -rf .venv results .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
