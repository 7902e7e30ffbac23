# Everything a developer, a user or a CI job runs. `make` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LIGHT := $(VENV)/.light
# Small dense problems are faster on one BLAS thread; parallelism comes from processes.
export OPENBLAS_NUM_THREADS ?= 1
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
EXPERIMENTS := communities lambda-ablation mmlu mmlu-components mmlu-all rxrx1 corrupted-cifar theory real-shifts selection selection-fresh baseline-choices baseline-in-sample natural-shifts few-labels fresh-labels
# The files whose heavy tests CI runs; those of the others are searches for hard inputs: make test-slow.
HEAVY := $(addprefix tests/test_,$(addsuffix .py,certificate coverage coverage_lrqr diagnostics learned report documents reproduce repository site))
# make communities SPLITS=20 JOBS=2
SPLITS ?=
JOBS ?= 2

.PHONY: help setup demo test test-slow test-oldest test-browser test-documents test-heavy coverage-check lint types bench fuzz fuzz-guided docs site pictures dist
.PHONY: reproduce $(EXPERIMENTS) check clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-18s %s\n", $$1, $$2}'

setup: $(STAMP) ## make .venv and install lrqr with its development tools

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[reference]" --group dev --group docs
	@touch $@ $(LIGHT)

$(LIGHT): pyproject.toml
	@echo "Once, about a minute: making $(VENV) and installing lrqr with the libraries that it needs ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

demo: $(LIGHT) ## the main job on real data under real shift: fit, predict, evaluate, and what was won
	@$(BIN)/lrqr demo --force

test: $(STAMP) ## the quick test suite
	$(BIN)/python -m pytest -n auto --dist worksteal

test-slow: $(STAMP) ## the slow tests
	$(BIN)/python -m pytest -m "slow"

coverage-check: $(STAMP) ## Monte Carlo checks that coverage is what was promised
	$(BIN)/python -m pytest -n auto --dist worksteal -m coverage

lint: $(STAMP) ## formatting, style and the import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports

types: $(STAMP) ## mypy --strict
	$(BIN)/mypy

bench: $(STAMP) ## ratios of run times against named rivals
	env -u OPENBLAS_NUM_THREADS -u OMP_NUM_THREADS $(BIN)/python -m pytest -m bench -s

# Warnings are errors with the newest versions only: the oldest warn of what has changed since.
test-oldest: $(STAMP) ## the quick tests with the oldest versions that pyproject.toml admits (help texts, linters and recorded numbers aside)
	$(PYTHON) -m venv .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet "uv>=0.5"
	.venv-oldest/bin/uv pip install --quiet --python .venv-oldest/bin/python --resolution lowest-direct \
	  --editable ".[reference,excel]" "pytest>=8.3" "hypothesis>=6.100" "polars>=1.3" "pytest-xdist>=3.5"
	.venv-oldest/bin/python -m pytest -n auto -o filterwarnings=default \
	  --ignore tests/test_architecture.py --ignore tests/test_docs.py --ignore tests/test_recorded.py

test-browser: $(STAMP) ## the report in a headless Chromium (the program chromium must be on the PATH)
	$(BIN)/python -m pytest -m slow tests/test_report.py

test-documents: $(STAMP) ## the code in the documents, and the experiments on few splits
	$(BIN)/python -m pytest -n auto -m "slow or reproduce" tests/test_documents.py tests/test_site.py tests/test_repository.py tests/test_reproduce.py

test-heavy: $(STAMP) ## coverage checks, browser and documents in one run, as CI does
	$(BIN)/python -m pytest -n auto --dist worksteal -m "coverage or slow or reproduce" $(HEAVY)

SECONDS ?= 600
fuzz-guided: $(STAMP) ## the same, guided by the code that inputs reach (Linux), for SECONDS
	$(BIN)/python -m pip install --quiet "atheris>=2.3"
	$(BIN)/python -W ignore scripts/fuzz_guided.py $(SECONDS)

fuzz: $(STAMP) ## search for inputs that break a promise: mutated files and configurations, for SECONDS
	$(BIN)/python -W ignore scripts/fuzz.py $(SECONDS)

docs: $(STAMP) ## write docs/cli.md from the program, and the picture of the packages from their imports
	$(BIN)/python scripts/make_cli_docs.py
	$(BIN)/python scripts/draw_house.py

site: $(STAMP) ## the documentation site, into site/; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

pictures: $(STAMP) ## draw the pictures of the gallery again
	for script in intervals neighborhoods sets methods; do $(BIN)/python docs/examples/$$script.py || exit 1; done

dist: $(STAMP) ## build sdist and wheel, and try the wheel in a new environment
	rm -rf dist
	$(BIN)/python -m build --quiet
	$(BIN)/python scripts/try_wheel.py dist

reproduce: ## all experiments but rxrx1, whose data are not shipped; SPLITS=20 for a short version
	$(MAKE) $(filter-out rxrx1 mmlu-all,$(EXPERIMENTS))

$(EXPERIMENTS): $(STAMP)
	$(BIN)/lrqr reproduce $@ $(if $(SPLITS),--splits $(SPLITS),--check) --jobs $(JOBS) -o runs

check: lint types test coverage-check ## what a change must pass; CI runs the browser and the documents too

clean: ## remove caches and the environments
	rm -rf $(VENV) .venv-oldest .pytest_cache .mypy_cache .ruff_cache .hypothesis
