# The one face of the project. Everything it needs is set up on first use in $(VENV); nothing is installed outside of it.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# The tests use the installed packages and not the folders beside them: pytest is run as a command, not as a module.
PYTEST := $(BIN)/pytest
# A file's tests stay together: the snippets of a page build on each other. Files run in the order of their names, so that those
# that wait for servers come before the many that are quick, and not one of them last and alone.
WORKERS ?= 2
PACKAGES := . ./adapters/adk ./adapters/langgraph ./adapters/openai ./adapters/pydantic_ai
PLUGIN := ./tests/plugin
# CrewAI goes neither with the newest OpenAI Agents SDK nor with MCP 2: its adapter has an environment of its own.
CREWAI := $(VENV)-crewai
SOURCES := $(shell find agentkernel_kb adapters -name '*.py' -not -path '*/tests/*') README.md LICENSE
METADATA := pyproject.toml constraints.txt $(wildcard adapters/*/pyproject.toml) $(PLUGIN)/pyproject.toml

.PHONY: help demo test check lint format types imports spelling dependencies docs pytest pytest-crewai attack stress servers servers-stop \
	bench clean environments

help:  ## Show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/installed  ## Watch an agent answer questions from different stores, side by side
	@$(BIN)/python examples/multi/demo.py

test: check pytest pytest-crewai  ## Run every gate: lint, types, import rules, spelling, dependencies, and all tests

check: lint types imports spelling dependencies docs  ## Run the gates without the tests

lint: $(VENV)/dev  ## Lint and check the format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/dev  ## Format and mend what the linter can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/installed $(VENV)/dev  ## Check the types, strictly
	$(BIN)/basedpyright --pythonpath $(BIN)/python

imports: $(VENV)/installed $(VENV)/dev  ## Check that imports point one way
	$(BIN)/lint-imports

spelling: $(VENV)/dev  ## Check the spelling
	$(BIN)/codespell

dependencies: $(VENV)/installed $(VENV)/dev  ## Check that what is imported is declared
	$(BIN)/deptry .

docs: $(VENV)/installed $(VENV)/dev  ## Build the documentation into build/docs; a warning is an error
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --jobs auto docs build/docs

pytest: $(VENV)/installed $(VENV)/dev  ## Run the tests only; ARGS goes to pytest
	$(PYTEST) -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

pytest-crewai: $(CREWAI)/installed $(VENV)/dev  ## Check the types and run the tests of CrewAI's adapter, in its own environment
	$(BIN)/basedpyright --project adapters/crewai/pyproject.toml --pythonpath $(CREWAI)/bin/python
	$(CREWAI)/bin/pytest adapters/crewai $(ARGS)

environments: $(VENV)/installed $(VENV)/dev $(CREWAI)/installed  ## Install what the tests need, and run none

attack: $(VENV)/dev  ## Run the attack corpora on the engines and print both rates
	@$(BIN)/python tests/corpora/attack.py

stress: $(VENV)/installed $(VENV)/dev  ## Kill writers of folders, bundles and corpora again and again, and swap links under readers
	KB_STRESS_KILLS=1000 KB_STRESS_RACES=20000 KB_STRESS_RAG_KILLS=200 $(PYTEST) tests/integration/test_local_store_writers.py \
		tests/integration/test_okf_killed.py tests/integration/test_rag_killed.py -o timeout=0 $(ARGS)

servers:  ## Start the real servers that tests and `demo.py --servers` use, each on its own port of loopback
	@for name in postgres s3 chroma neo4j trino; do servers/$$name.sh start || exit 1; done

servers-stop:  ## Stop them
	@for name in postgres s3 chroma neo4j trino; do servers/$$name.sh stop; done

bench: $(VENV)/installed  ## Print the figures, one JSON object each
	@for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

clean:  ## Remove what the other targets made
	rm -rf $(VENV) $(CREWAI) dist build .pytest_cache .ruff_cache .hypothesis .import_linter_cache

$(VENV)/dependencies: $(METADATA)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=python3.12 …"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Installing dependencies into $(VENV) (a minute or two, once) …"
	$(PIP) install --upgrade pip --constraint constraints.txt
	$(PIP) install --constraint constraints.txt '.[aws,chroma,cli,duckdb,eval,ladybug,mcp,model2vec,neo4j,onnx,otel,postgres,rag,sql,starburst,testing,web]' $(filter-out .,$(PACKAGES)) --group demo
	@touch $@

$(VENV)/installed: $(VENV)/dependencies $(SOURCES)
	$(PIP) install --no-deps --force-reinstall $(PACKAGES)
	@touch $@

$(VENV)/dev: $(VENV)/installed $(shell find $(PLUGIN) -name '*.py' -path '*kb_*')
	$(PIP) install --constraint constraints.txt --group dev
	$(PIP) install --no-deps --force-reinstall $(PLUGIN)
	@touch $@

$(CREWAI)/dependencies: pyproject.toml constraints-crewai.txt adapters/crewai/pyproject.toml
	@test -x $(CREWAI)/bin/python || $(PYTHON) -m venv $(CREWAI)
	@echo "Installing CrewAI into $(CREWAI) (a minute, once) …"
	$(CREWAI)/bin/python -m pip --quiet install --upgrade pip --constraint constraints-crewai.txt
	$(CREWAI)/bin/python -m pip --quiet install --constraint constraints-crewai.txt '.[sql,testing]' ./adapters/crewai --group test
	@touch $@

$(CREWAI)/installed: $(CREWAI)/dependencies $(SOURCES)
	$(CREWAI)/bin/python -m pip --quiet install --no-deps --force-reinstall . ./adapters/crewai
	@touch $@
