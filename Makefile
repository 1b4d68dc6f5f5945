# Needs GNU make and Python 3.11 or later; `make help` lists what there is.
SHELL = /bin/sh
PYTHON ?= python3
PORT ?= 8000
VENV = .venv
PY = $(VENV)/bin/python
PYTEST = $(PY) -m pytest
# Tests wait for servers, browsers and databases about a third of their time, so that three workers
# keep two cores busy; small portions spread the long tests over all of them.
PARALLEL = -n 3 --maxschedchunk 4
# The tests of what is pure, and of how files are laid out, with 20 examples where it is 100. They
# need no running chat, browser or database; attacks by size (N02, N06, X10) are left to `make test`.
QUICK = $(addprefix tests/compression/,planning ledger judging summarizers test_tokens.py) \
	$(addprefix tests/chatapp/,context llm rendering text transfer test_style_sheet.py test_template_loader.py) \
	tests/test_architecture.py tests/test_packaging.py tests/test_templates.py
QUICKLY = -n 2 -q --hypothesis-profile=quick -m "not (django_db or storage or events or browser or soak)" \
	-k "not (n02 or n06 or x10 or linear_time)"
# On these no compiler is needed: `make lock` fails when something locked has no wheel for one.
PYTHONS = 3.11 3.12 3.13 3.14
# Behind a proxy with certificates of its own, only the system knows whom to trust: the second try,
# which says what is wrong when it fails too.
SYNC = $(VENV)/bin/uv pip sync -q --require-hashes --python $(PY)
# Local values, given to `make run` only and only where the environment has none: a deployment
# that forgets its own refuses to start. By the shell itself: what a program is started with, as
# `env` would be, every user of the computer can see.
LOCAL = export SECRET_KEY="$${SECRET_KEY:-$$(cat var/secret_key)}" \
	ALLOWED_HOSTS="$${ALLOWED_HOSTS:-127.0.0.1,localhost}" \
	ALLOWED_ORIGINS="$${ALLOWED_ORIGINS:-http://127.0.0.1:$(PORT),http://localhost:$(PORT)}" \
	PORT=$(PORT);
# Checking needs settings, and never a deployment's own.
CHECKED = unset DATABASE_URL REDIS_URL; \
	export SECRET_KEY="$$($(PY) -c 'import secrets; print(secrets.token_urlsafe(50))')" \
	ALLOWED_HOSTS=chat.example.org ALLOWED_ORIGINS=https://chat.example.org;

# Containers set it for one program that starts once; here hundreds start, and each would compile
# all that it imports anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL = help
.PHONY: help run quick test lint bench soak lock

help: ## list these targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1	\2/p' Makefile

run: $(VENV)/run var/secret_key var/static.stamp ## start the chat here, on PORT (8000), and print a sign-in link
	@$(LOCAL) exec $(PY) manage.py serve --port $(PORT)

quick: $(VENV)/dev ## under a minute: style, types, and what needs no running chat, browser or database
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m mypy chatapp compression tests
	@env -u DATABASE_URL -u REDIS_URL $(PYTEST) $(QUICKLY) $(QUICK)

test: $(VENV)/dev ## everything: lint, what stores on PostgreSQL and Redis, the whole suite on SQLite
	@$(PY) -m tests.services --chromium -- true
	@failed=; \
	echo "== Style, types, migrations, deployment"; \
	$(MAKE) --no-print-directory lint || failed="$$failed lint"; \
	echo "== What stores or publishes, on PostgreSQL and Redis"; \
	$(PY) -m tests.services --database --redis -- $(PYTEST) $(PARALLEL) -m "(storage or events) and not soak" \
		|| failed="$$failed PostgreSQL-and-Redis"; \
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

soak: $(VENV)/dev ## the tests that must wait longer than 10 seconds
	$(PYTEST) -m soak

lock: $(VENV)/dev ## compile the lock files anew from pyproject.toml; see that there are wheels
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

# The environment. Whoever has tested here keeps the tools of testing.
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

# A secret of this computer's own, readable by its user only, made once.
var/secret_key: | $(VENV)/run
	@umask 077; mkdir -p var; $(PY) -c 'import secrets; print(secrets.token_urlsafe(50))' > $@.new && mv $@.new $@

# Directories too: they change when a file goes.
var/static.stamp: $(VENV)/run var/secret_key $(shell find static)
	@$(LOCAL) $(PY) manage.py collectstatic --noinput --clear -v 0
	@touch $@
