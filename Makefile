# The two commands: `make replay` and `make test`. `make help` lists the rest.
# Every recipe is one line that calls a command of the package or a tool it pins.

PYTHON  ?= $(shell command -v python3.11 || command -v python3)
VENV    ?= .venv
BIN     := $(VENV)/bin
OUT     ?= out/replay
MVN     ?= mvn -B -ntp
TRACE   ?= gandiva-9d

JAVA_SOURCES := $(shell find yarn_plugin/src/main yarn_plugin/pom.xml nodemanager_agent/client -type f -not -name '*.pyc' 2>/dev/null)
TYPED        := gandiva_core nodemanager_agent baselines yarn_plugin tests

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help env dev env-jobs live plugin cluster-jars replay test test-pure test-yarn test-live test-java check check-format check-lint \
        check-types check-imports check-java format thorough bench dist clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# ------------------------------------------------------------------ set-up, each once

env: $(VENV)/stamp-env ## .venv with the gandiva command (no torch, no tensorflow)

dev: $(VENV)/stamp-dev ## .venv with the tools of `make check` and `make test` too

env-jobs: $(VENV)/stamp-jobs ## .venv with torch and tensorflow too, for real training jobs

plugin: yarn_plugin/target/stamp-plugin ## the ResourceManager plug-in, with Maven

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/stamp-env: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/pip install -q -c constraints.txt -e ".[replay]" && touch $@

$(VENV)/stamp-dev: $(VENV)/stamp-env
	$(BIN)/pip install -q -c constraints.txt -e ".[dev]" && touch $@

$(VENV)/stamp-jobs: $(VENV)/stamp-dev
	$(BIN)/pip install -q -c constraints.txt -e ".[jobs]" && touch $@

yarn_plugin/target/stamp-plugin: $(JAVA_SOURCES)
	$(MVN) -q -f yarn_plugin/pom.xml -DskipTests package && touch $@

cluster-jars: yarn_plugin/target/cluster.classpath ## Hadoop's daemons and client, for `gandiva cluster`

yarn_plugin/target/cluster.classpath: yarn_plugin/pom.xml yarn_plugin/target/stamp-plugin
	$(MVN) -q -f yarn_plugin/pom.xml -Pcluster dependency:build-classpath@cluster-classpath && touch $@

# ------------------------------------------------------------------ the two commands

replay: env plugin ## the nine-day trace under both schedulers in a real ResourceManager, and the report
	$(BIN)/gandiva replay $(TRACE) --out $(OUT)

live: env-jobs cluster-jars ## real training under both schedulers on a real cluster of this machine, in out/live
	$(BIN)/gandiva live-replay conf/experiments/live-small.csv --scale 1 --gpus 2 --quantum-ms 4000 --out out/live

test: test-pure test-yarn test-live test-java ## all tests, the pure part first

test-pure: dev env-jobs
	$(BIN)/pytest -m "not yarn and not live and not browser" --durations=10

test-yarn: dev plugin
	$(BIN)/pytest -m yarn --durations=10

test-live: dev env-jobs cluster-jars
	$(BIN)/pytest -m live --durations=10

test-java:
	$(MVN) -f yarn_plugin/pom.xml test

# ------------------------------------------------------------------ checks

check: check-format check-lint check-types check-imports check-java ## format, lint, types, imports, Java

check-format: dev
	$(BIN)/ruff format --check .

check-lint: dev
	$(BIN)/ruff check .

check-types: dev
	$(BIN)/mypy $(TYPED)

check-imports: dev
	$(BIN)/lint-imports --no-cache

check-java:
	$(MVN) -f yarn_plugin/pom.xml -DskipTests verify

format: dev ## put every Python file into the common format
	$(BIN)/ruff check -q --fix-only . ; $(BIN)/ruff format .

thorough: plugin dev ## everything in full length (hours)
	HYPOTHESIS_PROFILE=thorough $(BIN)/pytest --durations=20 --timeout=3600
	$(BIN)/pytest -m thorough -s

bench: env env-jobs plugin ## the benchmarks behind docs/BENCHMARKS.md
	$(BIN)/gandiva bench all --out out/bench --document docs/BENCHMARKS.md

dist: dev plugin ## wheel and source archive in dist/
	$(BIN)/python -m build --sdist --wheel -o dist .

clean: ## remove what the other targets made, .venv included
	rm -rf out dist build $(VENV) yarn_plugin/target .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
