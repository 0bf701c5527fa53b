# `make help` lists what there is. Every target is safe to run again.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Arguments for pytest, such as TESTS="tests/policies -k gate".
TESTS ?=
# Which tests, by marker. What drives a browser or takes long is run by .ci/run, or by make test MARK="slow or browser".
MARK ?= not slow and not browser
# A worker that is done takes over tests that another one has still to run: some last a minute, most a few milliseconds.
PYTEST_OPTIONS ?= -n auto --dist worksteal

# The service and its tests start many interpreters, and each would compile all libraries anew where a machine keeps no bytecode.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup run test lint format bench lock secrets clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | awk -F'\t' '{printf "make %-9s %s\n", $$1, $$2}'

setup: $(VENV)/.installed ## make .venv and install the lock

run: setup ## prepare the database, load the bundled evidence, judge, and serve on http://127.0.0.1:8000
	@$(BIN)/python manage.py quickstart
	@exec $(BIN)/python manage.py serve

test: $(VENV)/.installed-test ## the suite, on the embedded PostgreSQL
	$(BIN)/python -m pytest $(PYTEST_OPTIONS) -m "$(MARK)" $(TESTS)

lint: $(VENV)/.installed-test ## ruff, mypy, import contracts, missing migrations
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python manage.py makemigrations --check --dry-run

format: $(VENV)/.installed-test ## put the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed-test $(VENV)/.installed-bench ## speed and memory, and the same decision in other engines
	$(BIN)/python -m tests.bench

lock: $(VENV)/.installed-test ## resolve the dependencies of pyproject.toml anew
	$(call compile,requirements.lock,--extra server)
	$(call compile,requirements-telemetry.lock,--extra server --extra telemetry --constraint requirements.lock)
	$(call compile,requirements-test.lock,--extra server --extra telemetry --extra test --constraint requirements-telemetry.lock)
	$(call compile,requirements-bench.lock,--extra server --extra bench --constraint requirements.lock)

secrets: ## random secrets for docker-compose.yml, in secrets/; existing ones are kept
	@umask 077; mkdir -p secrets; cd secrets; \
	random() { $(PYTHON) -c 'import secrets; print(secrets.token_urlsafe(32))'; }; \
	keep() { [ -s "$$1" ] || printf '%s\n' "$$2" > "$$1"; }; \
	keep postgres_password "$$(random)"; keep rabbitmq_password "$$(random)"; keep secret_key "$$(random)"; \
	keep database_superuser_url "postgresql://postgres:$$(cat postgres_password)@postgres/postgres"; \
	keep database_owner_url "postgresql://writegate_owner:$$(random)@postgres/writegate"; \
	keep database_url "postgresql://writegate_runtime:$$(random)@postgres/writegate"; \
	keep broker_url "amqp://writegate:$$(cat rabbitmq_password)@rabbitmq//"; \
	keep rabbitmq.conf "$$(printf 'default_user = writegate\ndefault_pass = %s' "$$(cat rabbitmq_password)")"; \
	chmod 644 *; ls

clean: ## remove .venv and caches; the data in .data stays
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# One version of everything for every Python and system, hashes of all files, no name of an index.
compile = $(BIN)/uv pip compile pyproject.toml $(2) --output-file $(1) --quiet --universal --fork-strategy fewest \
	--python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate

# uv where it is at hand (7 s against 25 s), else the pip that every Python brings.
UV := $(shell command -v uv 2>/dev/null || ($(PYTHON) -c 'import uv; print(uv.find_uv_bin())' 2>/dev/null))
ifneq ($(UV),)
install = $(UV) pip install --quiet --python $(BIN)/python --require-hashes -r $(1)
make_venv = $(UV) venv --quiet --allow-existing --python $(PYTHON) $(VENV)
else
# Compiling all of it up front costs more than compiling what is used.
install = $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check --no-input --require-hashes -r $(1)
make_venv = $(PYTHON) -m venv $(VENV)
endif

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("Writegate needs Python 3.11 or newer; name one with PYTHON=…") if sys.version_info < (3, 11) else None'
	@echo "making $(VENV)"
	@$(make_venv)

# The command, from this checkout: building a package of it would need an index.
$(BIN)/writegate: | $(BIN)/python
	@printf '#!/bin/sh\nPYTHONPATH="%s" exec "%s" -P -m compliance.client "$$@"\n' "$(CURDIR)" "$(CURDIR)/$(BIN)/python" > $@
	@chmod +x $@

$(VENV)/.installed: requirements.lock | $(BIN)/python $(BIN)/writegate
	@echo "installing requirements.lock"
	@$(call install,requirements.lock)
	@touch $@

$(VENV)/.installed-test: requirements-test.lock | $(BIN)/python $(BIN)/writegate
	@echo "installing requirements-test.lock"
	@$(call install,requirements-test.lock)
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: requirements-bench.lock | $(BIN)/python
	@echo "installing requirements-bench.lock"
	@$(call install,requirements-bench.lock)
	@touch $@
