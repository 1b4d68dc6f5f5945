# Needs GNU make and Python 3.11 or later; `make help` lists the targets.
SHELL = /bin/sh
PYTHON ?= python3
PORT ?= 8000
VENV = .venv
PY = $(VENV)/bin/python
PYTEST = $(PY) -m pytest
# Tests spend about a third of their time waiting for servers, browsers and databases, so three workers
# keep two cores busy. Small portions spread the long tests over all workers.
PARALLEL = -n 3 --maxschedchunk 4
# The tests of pure code and of the layout of files, with 20 Hypothesis examples instead of 100. They
# need no running chat, browser or database. Attacks by size (N02, N06, X10) are left to `make test`.
QUICK = $(addprefix tests/compression/,planning ledger judging summarizers test_tokens.py) \
	$(addprefix tests/chatapp/,context llm rendering text transfer test_style_sheet.py test_template_loader.py) \
	tests/test_architecture.py tests/test_packaging.py tests/test_templates.py
QUICKLY = -n 2 -q --hypothesis-profile=quick -m "not (django_db or storage or events or browser or soak)" \
	-k "not (n02 or n06 or x10 or linear_time)"
# The Pythons that need no compiler: `make lock` fails if a locked package has no wheel for one of them.
PYTHONS = 3.11 3.12 3.13 3.14
# If a proxy has its own certificates, only the system's store knows them: hence the second try (below),
# which also prints the error if it fails too.
SYNC = $(VENV)/bin/uv pip sync -q --require-hashes --python $(PY)
# Values for `make run` only, and only where the environment has none: a deployment without its own
# refuses to start. The shell exports them, since every user of the computer can see a program's
# arguments, and so those of `env`.
LOCAL = export SECRET_KEY="$${SECRET_KEY:-$$(cat var/secret_key)}" \
	ALLOWED_HOSTS="$${ALLOWED_HOSTS:-127.0.0.1,localhost}" \
	ALLOWED_ORIGINS="$${ALLOWED_ORIGINS:-http://127.0.0.1:$(PORT),http://localhost:$(PORT)}" \
	PORT=$(PORT);
# Settings for the checks, which must never use a deployment's own.
CHECKED = unset DATABASE_URL REDIS_URL; \
	export SECRET_KEY="$$($(PY) -c 'import secrets; print(secrets.token_urlsafe(50))')" \
	ALLOWED_HOSTS=chat.example.org ALLOWED_ORIGINS=https://chat.example.org;

# Containers set this for a program that starts once. Here hundreds start, and each would compile its
# imports again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL = help
.PHONY: help run quick test lint bench soak lock

help: ## list these targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1	\2/p' Makefile

run: $(VENV)/run var/secret_key var/static.stamp ## start the chat here, on PORT (8000), and print a sign-in link
	@$(LOCAL) exec $(PY) manage.py serve --port $(PORT)

quick: $(VENV)/dev ## in under a minute: style, types, and tests without a running chat, browser or database
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy chatapp compression tests
	@env -u DATABASE_URL -u REDIS_URL $(PYTEST) $(QUICKLY) $(QUICK)

test: $(VENV)/dev ## what the CI runs: lint, storage tests on PostgreSQL and Redis, the suite on SQLite
	@$(PY) -m tests.services --chromium -- true
	@failed=; log=$$(mktemp); \
	$(MAKE) --no-print-directory lint >$$log 2>&1 & lint=$$!; \
	: "Read by one process first, everything is compiled once and not by each worker."; \
	$(PYTEST) --collect-only -q >/dev/null 2>&1; \
	echo "== What stores or publishes, on PostgreSQL and Redis"; \
	$(PY) -m tests.services --database --redis -- $(PYTEST) $(PARALLEL) -m "(storage or events) and not soak" \
		|| failed="$$failed PostgreSQL-and-Redis"; \
	echo "== Style, types, migrations, deployment, checked meanwhile"; \
	wait $$lint || failed="$$failed lint"; cat $$log; rm -f $$log; \
	echo "== The whole suite, on SQLite and the in-memory channel layer"; \
	env -u DATABASE_URL -u REDIS_URL $(PYTEST) $(PARALLEL) || failed="$$failed whole-suite"; \
	if [ -n "$$failed" ]; then echo "make test failed in:$$failed"; exit 1; fi

lint: $(VENV)/dev ## style, types, migrations, deployment checks
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy chatapp compression tests
	$(CHECKED) $(PY) manage.py makemigrations --check --dry-run
	$(CHECKED) $(PY) manage.py check --deploy --fail-level WARNING

bench: $(VENV)/dev ## measure; CASE=name for one benchmark
	$(PY) -m tests.benchmarks $(CASE)

soak: $(VENV)/dev ## the tests that take too long for each change, and more of them on PostgreSQL and Redis
	@$(PY) -m tests.services --chromium -- true
	@failed=; \
	env -u DATABASE_URL -u REDIS_URL $(PYTEST) -m soak || failed="$$failed soak"; \
	echo "== What uses a database or publishes, on PostgreSQL and Redis"; \
	$(PY) -m tests.services --database --redis -- $(PYTEST) $(PARALLEL) -m elsewhere || failed="$$failed elsewhere"; \
	if [ -n "$$failed" ]; then echo "make soak failed in:$$failed"; exit 1; fi

lock: $(VENV)/dev ## compile the lock files again from pyproject.toml, and check that wheels exist
	$(VENV)/bin/uv pip compile -q --universal --generate-hashes --no-header --no-emit-index-url \
		--no-emit-find-links pyproject.toml -o requirements.txt
	$(VENV)/bin/uv pip compile -q --universal --generate-hashes --no-header --no-emit-index-url \
		--no-emit-find-links pyproject.toml --group dev -c requirements.txt -o requirements-dev.txt
	@for version in $(PYTHONS); do \
		$(VENV)/bin/uv pip install -q --dry-run --only-binary :all: --require-hashes \
			--python-version $$version --target $(VENV)/nothing \
			-r requirements-dev.txt -r requirements-bootstrap.txt \
			|| { echo "Not everything has a wheel for Python $$version."; exit 1; }; \
	done

# The environment. An environment with the tools for testing keeps them.
$(VENV)/uv: requirements-bootstrap.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Palimpsest needs Python 3.11 or later: make PYTHON=/path/to/python3.11 …"; exit 1; }
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) -m pip install -q --disable-pip-version-check --require-hashes -r requirements-bootstrap.txt
	@touch $@

$(VENV)/run: $(VENV)/uv requirements.txt
	@lock=requirements.txt; if [ -x $(VENV)/bin/pytest ]; then lock=requirements-dev.txt; fi; \
	$(SYNC) $$lock requirements-bootstrap.txt 2>/dev/null || $(SYNC) --system-certs $$lock requirements-bootstrap.txt
	@touch $@

$(VENV)/dev: $(VENV)/uv requirements-dev.txt
	@$(SYNC) requirements-dev.txt requirements-bootstrap.txt 2>/dev/null || \
		$(SYNC) --system-certs requirements-dev.txt requirements-bootstrap.txt
	@touch $@ $(VENV)/run

# This computer's own secret, made once and readable by its user only.
var/secret_key: | $(VENV)/run
	@umask 077; mkdir -p var; $(PY) -c 'import secrets; print(secrets.token_urlsafe(50))' > $@.new && mv $@.new $@

# Directories count too: they change when a file is removed.
var/static.stamp: $(VENV)/run var/secret_key $(shell find static)
	@$(LOCAL) $(PY) manage.py collectstatic --noinput --clear -v 0
	@touch $@
