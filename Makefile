# Every target first sets up what it needs (docs only the packages); if all is there, this costs nothing. `make PYTHON=python3.12 setup` chooses a Python.
SHELL := /bin/sh
.DEFAULT_GOAL := help
.SUFFIXES:
MAKEFLAGS += --no-print-directory

VENV := .venv/bin
PYTHON ?=
PACKAGES := partitions resources platform_assets
SOURCES := $(wildcard $(PACKAGES) tests benchmarks scripts)
ARGS ?=
export PYTHON
# pytest keeps its rewritten modules as bytecode: without it each process of tests spends 30 s of CPU on them.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(VENV)/python -m pytest

.PHONY: help setup demo ui test test-full screenshots lint format bench lock docs wheel clean

help: ## show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo '  ARGS="..." is passed on, as in: make test ARGS="tests/unit -k watermark"'

setup: ## set up what is missing: virtual environment, Java, Spark's jars (the other targets run this first)
	@sh scripts/setup.sh

demo: setup ## load real data, let more arrive, load that too; every count is checked (a minute)
	@$(VENV)/python -m scripts.demo $(ARGS)

ui: setup ## open the Dagster UI with this project's dataflows
	@$(VENV)/python -m scripts.sources $(VENV)/strandline dev $(ARGS)

test: setup ## run all tests but the long ones
	@$(PYTEST) -m "not full" --hypothesis-profile repeatable --durations 20 $(or $(ARGS),-n 4 --dist loadfile --no-loadscope-reorder tests)

# 5 is pytest's "no tests were collected".
test-full: setup ## run the other tests: the long crash matrix, a thousand schedules, most tests on Spark; ARGS="tests/model --hypothesis-profile exploring" searches for new ones
	@$(PYTEST) -m full --hypothesis-profile repeatable --durations 20 $(or $(ARGS),-n 4 --dist loadfile --no-loadscope-reorder --minutes 45 --turn "$$(date +%j)" tests) || { code=$$?; [ $$code = 5 ] && echo "No test is marked full: nothing to run." || exit $$code; }

screenshots: setup ## write the pictures of Dagster's pages into docs/images, from the tests of these pages (needs Chromium)
	@STRANDLINE_SCREENSHOTS=docs/images $(VENV)/python -m pytest tests/e2e/test_pages.py $(ARGS)

lint: setup ## check style, format, types, and the imports between layers
	@$(VENV)/ruff check $(SOURCES)
	@$(VENV)/ruff format --check $(SOURCES)
	@$(VENV)/mypy $(SOURCES)
	@$(VENV)/lint-imports
	@$(VENV)/python scripts/check_words.py

format: setup ## fix style and format where ruff can
	@$(VENV)/ruff check --fix $(SOURCES)
	@$(VENV)/ruff format $(SOURCES)

bench: setup ## measure listings, planning, loads (results in benchmarks/out); ARGS=soak runs minutes of kills and outages, every row counted
	@$(VENV)/python -m benchmarks $(ARGS)

# Set-up stops at a lock that does not fit pyproject.toml, after it has installed uv.
lock: ## write requirements.lock from pyproject.toml
	@[ -x $(VENV)/uv ] || sh scripts/setup.sh packages || [ -x $(VENV)/uv ]
	@$(VENV)/uv pip compile -q pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -o requirements.lock
	@echo "requirements.lock is written; the next target installs it"

docs: ## build the site of docs/ in build/site; check its links, its sentences and how easy its pages read
	@sh scripts/setup.sh packages
	@$(VENV)/python -m scripts.docs_check
	@NO_MKDOCS_2_WARNING=1 $(VENV)/python -m mkdocs build --quiet --strict
	@echo "build/site/index.html is the site"

wheel: setup ## build dist/*.whl
	@$(VENV)/python -m build --no-isolation --wheel --outdir dist

clean: ## remove build output and caches; state, data and .venv stay (rm -r .strandline .venv removes those too)
	@rm -rf dist build benchmarks/out .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis spark-warehouse metastore_db derby.log
	@find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +
