# The two commands of the README are `demo` and `test`; CI calls `test` and nothing else.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
PYTHON ?= python3
BIN := .venv/bin
export PADDOCK_SERVER_ENV ?= $(CURDIR)/.server-env

.PHONY: demo test test-long lint setup test-packages server-env old-clients kernel-tools lock bench clean

demo: setup server-env        ## set everything up, run the main job, leave the site open (DEMO_EXIT=1: end)
	@$(BIN)/python scripts/demo.py

test: test-packages server-env old-clients kernel-tools lint ## set up what the tests need and run them
	@echo "== tests"
	@$(BIN)/pytest -m "not long and not alone" -n 2 --dist loadscope
	@$(BIN)/pytest -m "alone and not long"

test-long: test-packages server-env old-clients kernel-tools ## fault loops; prints and dates its results
	@$(BIN)/pytest -m long --no-header --durations=0 -rA | tee "docs/long-tests/$$(date -u +%Y-%m-%d).txt"

lint: setup
	@echo "== ruff, mypy, import-linter"
	@$(BIN)/ruff format --check -q . && $(BIN)/ruff check -q .
	@$(BIN)/mypy
	@PYTHONPATH=runner/stack/src $(BIN)/lint-imports --no-cache > .venv/lint-imports.txt || { cat .venv/lint-imports.txt; exit 1; }

setup:
	@PYTHON=$(PYTHON) scripts/setup.sh

test-packages:                ## what only tests need: a browser, and a PostgreSQL that they start themselves
	@PYTHON=$(PYTHON) scripts/setup.sh chromium libatomic1 postgresql

server-env: setup
	@$(BIN)/python scripts/server_env.py $(PADDOCK_SERVER_ENV)

old-clients: setup
	@$(BIN)/python scripts/pinned_env.py .venv-clients/oldest scripts/client-requirements.txt

kernel-tools: setup
	@$(BIN)/python scripts/pinned_env.py .kernel-tools scripts/kernel-requirements.txt

lock:                         ## lock again after a change to pyproject.toml
	@$(BIN)/uv pip compile pyproject.toml --group dev --universal --generate-hashes --no-header --no-annotate \
	  --python-version 3.11 -q -o requirements.lock

bench: setup server-env
	@$(BIN)/python bench/main_job.py && $(BIN)/python bench/harness_parity.py --server-env $(PADDOCK_SERVER_ENV)

clean:
	rm -rf .demo .venv .venv-clients .kernel-tools .server-env
