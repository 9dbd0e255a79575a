# The only entry for developers. `make` alone lists the targets.
#
# Everything Python lives in .venv, which is made from pyproject.toml and made again when that file changes.
# What the operating system must bring (git, bubblewrap, ...) is installed or named by scripts/install-debian.

PYTHON ?= python3
JOBS ?= 3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --no-input --root-user-action=ignore
AGENTS := tests/agents
NODE := $(AGENTS)/node_modules/.stamp tests/web/node_modules/.stamp

.PHONY: help demo demo-migrate demo-learn learn test check bench docs clean demo-blender e2e system-demo system-test system-long system-blender
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

help: ## list the targets
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'

demo: demo-migrate demo-learn ## both halves: bad attempts refused and a kill survived; a real model learns and is judged

demo-migrate: system-demo $(VENV)/.base ## the first half: recorded attempts, some of them dishonest, and a kill
	@$(BIN)/python examples/migrate_demo.py

demo-learn: system-demo $(VENV)/.learn ## the second half: SmolLM2 learns for some minutes, is killed, and is judged
	@$(BIN)/python examples/learn_demo.py

demo-blender: system-blender $(VENV)/.base ## three of Blender's operators ported to the browser, with real Blender as the judge
	@$(BIN)/python examples/blender_demo.py

e2e: demo-learn demo-blender system-test system-long $(VENV)/.dev ## what is too large for every change: a real model and real Blender at work, the long tests
	@$(BIN)/python -m pytest -m long

learn: system-demo $(VENV)/.learn ## a student that goes on learning until you stop it, in demo/student
	@mkdir -p demo/student
	@test -e demo/student/longwatch.toml || $(BIN)/longwatch init learn --watch-dir demo/student
	@$(BIN)/longwatch fetch
	@cd demo/student && ../../$(BIN)/longwatch run

test: system-test $(VENV)/.dev $(VENV)/.docs $(NODE) ## every test, in three processes (JOBS=n changes that): many of them wait
	@$(BIN)/python -m pytest -n $(JOBS) --dist worksteal

check: $(VENV)/.dev $(VENV)/.docs ## lint, format, types, layers, sizes, and that the generated pages are fresh
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --exclude examples .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python scripts/sizes.py
	@for page in $(PAGES); do $(BIN)/python $$page --check || exit 1; done

bench: system-demo $(VENV)/.learn $(VENV)/.bench ## the figures that README claims, one program after another
	@set -e; for program in benchmarks/*.py; do echo "== $$program"; $(BIN)/python $$program; done

docs: $(VENV)/.dev $(VENV)/.docs ## write the generated pages again, and build the site in build/site
	@for page in $(PAGES); do $(BIN)/python $$page || exit 1; done
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo 'open build/site/index.html'

clean: ## remove what make made
	rm -rf $(VENV) $(AGENTS)/node_modules tests/web/node_modules build dist demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The scripts that write a page of docs/ and know `--check`.
PAGES := scripts/guarantees.py scripts/lifecycle_diagram.py $(wildcard scripts/*_reference.py)

system-demo:
	@scripts/install-debian demo

system-test:
	@scripts/install-debian test

system-long:
	@scripts/install-debian long

system-blender:
	@scripts/install-debian blender

# A stamp per set of packages, so that the demo does not wait for the developers' tools.
$(VENV)/bin/python:
	@scripts/install-debian python
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'Longwatch needs Python 3.11 or newer; name one: make PYTHON=python3.12' >&2; exit 1; }
	@echo 'making $(VENV) and installing the Python packages into it'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.base: pyproject.toml | $(VENV)/bin/python
	@$(PIP) -e .
	@touch $@

# The exact version comes from a file on some machines; anything looser may bring a build of several gigabytes.
TORCH := torch==2.13.0

$(VENV)/.learn: pyproject.toml | $(VENV)/bin/python
	@echo 'installing torch and its friends for the student'
	@$(PIP) $(TORCH)
	@$(PIP) -e '.[learn]'
	@touch $@ $(VENV)/.base

$(VENV)/.dev: pyproject.toml $(VENV)/.learn | $(VENV)/bin/python
	@$(PIP) -e '.[test,check,learn]'
	@touch $@ $(VENV)/.base

$(VENV)/.docs: pyproject.toml $(VENV)/.dev | $(VENV)/bin/python
	@$(PIP) -e '.[docs]'
	@touch $@ $(VENV)/.base

$(VENV)/.bench: pyproject.toml $(VENV)/.learn | $(VENV)/bin/python
	@$(PIP) -e '.[bench]'
	@touch $@ $(VENV)/.base

# What the tests need from npm: the real agent programs, which a scripted model server drives, and the accessibility rules.
%/node_modules/.stamp: %/package.json %/package-lock.json | system-test
	@echo 'installing the npm packages of $*'
	@cd $* && npm ci --no-fund --no-audit --no-progress --loglevel=error >/dev/null
	@touch $@
