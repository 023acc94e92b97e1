# One command each; `make help` lists them. Needs make and Python 3.11 or newer, nothing else.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory
# Python keeps what it compiles, as it does by default: the tests are hundreds of files, each of which
# pytest would rewrite anew in each of its workers, and they start Python a hundred times.
unexport PYTHONDONTWRITEBYTECODE

# Name an interpreter (make install PYTHON=python3.12), or the first new enough is taken.
PYTHON ?=
CANDIDATES := $(if $(PYTHON),$(PYTHON),python3 python3.13 python3.12 python3.11 python)
VENV := .venv
BIN := $(VENV)/bin
# What the commands need, of the extras and groups of pyproject.toml: all, the tests of an edit, the demo.
INSTALLED := $(VENV)/.installed
FOR_ALL := --extra local --extra serve --extra testing --group dev
FOR_TEST := --extra local --extra serve --extra testing --group test
FOR_DEMO := --extra local --extra ui --group demo
TEMPLATE_LINT := $(VENV)/template-lint
REPORTS := .cache/reports
# An application of its own, whose packages have the names of this project's, so it is checked apart.
EXAMPLE := examples/tenant_onboarding
# How many orders of random stories `make verify` runs. To try it in little, it takes fewer of them,
# TEST_ARGS for pytest, MUTANTS="--only NAME" and ENGINE_MUTANTS="--only MODULE"; such a run is no
# proof, and is written nowhere.
SOAK_ORDERS ?= 50000
BEHIND := nice -n 15
# The order of a set of texts depends on this: which mutants survive must not.
FIXED_ORDER := env PYTHONHASHSEED=1
# Each part of `make verify` leaves here what it counted; all passed, docs/verified.json says so.
VERIFY := $(REPORTS)/verify
# In the family that has what tests record of themselves.
JUNIT := -o junit_family=xunit1 --junit-xml
# A crash at each call is one test that takes minutes, and more on a busy machine.
PATIENT := -o faulthandler_timeout=7200
VERIFIED := $(BIN)/python -m tools.verified
# After a run in which something failed, and a change of tests only: AGAIN=1 runs what has not passed.
AGAIN ?=
PART = $(VERIFIED) part $(if $(AGAIN),--again)
SMALLER := $(strip $(if $(strip $(TEST_ARGS)),TEST_ARGS) $(if $(filter-out 50000,$(SOAK_ORDERS)),SOAK_ORDERS) \
	$(if $(strip $(MUTANTS)),MUTANTS) $(if $(strip $(ENGINE_MUTANTS)),ENGINE_MUTANTS))

# pip's own environment and user settings stay in force (mirrors, certificates); only its chatter goes.
PIP := $(BIN)/python -m pip --disable-pip-version-check
# SAM asks nothing of AWS for linting, but wants a region.
SAM := SAM_CLI_TELEMETRY=0 AWS_DEFAULT_REGION=us-east-1 $(BIN)/sam
COMPILE := $(VENV)/locker/bin/uv pip compile --quiet --universal --python-version 3.11 \
	--generate-hashes --custom-compile-command 'make lock' $(LOCK_ARGS)

.PHONY: help
help: ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 15

.PHONY: install
install: $(INSTALLED) ## Make .venv with everything, from the locked versions

$(BIN)/python:
	@for candidate in $(CANDIDATES); do \
	  if "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "Making $(VENV) with $$("$$candidate" --version)" >&2; \
	    "$$candidate" -m venv $(VENV) && exit 0; \
	    rm -rf $(VENV); \
	    echo "$$candidate cannot make a virtual environment: install its venv module (on Debian: python3-venv)." >&2; \
	    exit 1; \
	  fi; \
	done; \
	echo "Roundsman needs Python 3.11 or newer; none of these is: $(CANDIDATES). Name one: make install PYTHON=/path/to/python3.12" >&2; \
	exit 1

# $(call installed,EXTRAS AND GROUPS): of the lock what these need, and the project itself.
define installed
@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
  { echo "$(VENV) was made with a Python older than 3.11: run make clean, then make install." >&2; exit 1; }
@echo "Installing locked packages into $(VENV), once ($(@F))" >&2
@$(BIN)/python -m tools.locked $(1) > $(VENV)/locked.txt
@# --no-deps: the lock is complete, and pips before 23.1 trip over extras in hash-checking mode.
@# --no-compile: Python keeps what it compiles when it imports it, which is a small part.
@$(PIP) install -qq --no-compile --no-deps --require-hashes --requirement $(VENV)/locked.txt
@$(PIP) install -qq --no-compile --no-deps --no-build-isolation --editable .
@touch $(2)
endef

LOCK := requirements/dev.txt pyproject.toml
$(INSTALLED): $(LOCK) | $(BIN)/python
	$(call installed,$(FOR_ALL),$(VENV)/.demo $(VENV)/.test $@)
$(VENV)/.test: $(LOCK) | $(BIN)/python
	$(call installed,$(FOR_TEST),$(VENV)/.demo $@)
$(VENV)/.demo: $(LOCK) | $(BIN)/python
	$(call installed,$(FOR_DEMO),$@)

.PHONY: engines
engines: $(INSTALLED) ## Install what tests run against (DynamoDB Local, Chromium) into .cache
	@$(BIN)/python -m tools.engines.dynamodb_local install
	@$(BIN)/python -m tools.engines.chromium install

# The tests of an edit: in this process, and without those that are seconds of proof each. `make check`
# runs them with the latter (WHOLE=1). The workers take tests from each other, to end at the same time.
ALONE := not engine and not stack and not browser and not verify and not long
.PHONY: test
test: $(VENV)/.test ## Run the tests of an edit, in a few minutes; they need neither Docker nor an AWS account
	@mkdir -p $(REPORTS)
	$(BIN)/python -m pytest -n 2 --dist worksteal --ignore tests/browser -m "$(ALONE)$(if $(WHOLE),, and not exhaustive)" $(JUNIT)=$(REPORTS)/in-process.xml $(TEST_ARGS)

# Where the tests are that need a server, so that not each lane of `make check` imports all others.
ON_STACK := tests/emulator tests/examples
ON_ENGINES := tests/benchmarks tests/browser tests/contract tests/race tests/tools

# $(call beside,NAME,MARKERS,PREFIX,FOLDERS): these tests, with their output in a file that a failure shows.
beside = $(3) $(BIN)/python -m pytest $(4) -m "($(2)) and not long and not verify" $(JUNIT)=$(REPORTS)/$(1).xml $(TEST_ARGS) \
	  > $(REPORTS)/$(1).log 2>&1 || { status=$$?; cat $(REPORTS)/$(1).log; exit $$status; }

# $(call logged,NAME,COMMAND): the same for another command. Not for a make, which `make -n` would run.
logged = $(2) > $(REPORTS)/$(1).log 2>&1 || { status=$$?; cat $(REPORTS)/$(1).log; exit $$status; }

.PHONY: test-engines test-stack check-stack check-engines check-processor
test-engines:
	@$(call beside,engines,(engine or browser) and not stack,nice -n 5,$(ON_ENGINES))
	@tail -1 $(REPORTS)/engines.log
test-stack:
	@echo "The tests that need servers run beside the others, and write $(REPORTS)/stack.log and $(REPORTS)/engines.log"
	@$(call beside,stack,stack,,$(ON_STACK))
	@tail -1 $(REPORTS)/stack.log

.PHONY: long
long: engines ## Run what takes minutes each: an outage, a backlog, an urgent order behind 500, and more
	$(BIN)/python -m pytest $(PATIENT) -m long $(TEST_ARGS)

# Whatever fails, `finish` says which part it was, and writes nothing.
.PHONY: verify
verify: engines ## Run all the proof there is (docs/explanation/reliability.md)
	@$(if $(AGAIN),$(if $(SMALLER),$(error AGAIN=1 runs whole parts: leave out $(SMALLER)),:),$(VERIFIED) begin --smaller "$(SMALLER)")
	@{ $(MAKE) --no-print-directory verify-in-process && \
	  $(MAKE) --no-print-directory -j 2 verify-servers verify-processor; } || true
	@$(VERIFIED) finish

.PHONY: verify-in-process verify-servers verify-processor
verify-in-process:
	@$(PART) in-process $(VERIFY)/in-process.xml -- \
	  $(BIN)/python -m pytest $(PATIENT) -n 2 --dist worksteal -m "$(ALONE)" $(JUNIT)=$(VERIFY)/in-process.xml $(TEST_ARGS)
verify-servers:
	@$(PART) servers $(VERIFY)/servers.xml -- \
	  $(BIN)/python -m pytest $(PATIENT) -m "(engine or stack or browser) and not long" $(JUNIT)=$(VERIFY)/servers.xml $(TEST_ARGS)
verify-processor:
	-@$(BEHIND) $(PART) proof $(VERIFY)/proof.xml -- \
	  $(BIN)/python -m pytest $(PATIENT) -n 2 --dist worksteal -m "verify and not long and not engine and not stack and not browser" $(JUNIT)=$(VERIFY)/proof.xml $(TEST_ARGS)
	-@$(BEHIND) $(PART) mutants $(VERIFY)/mutants.json -- \
	  $(BIN)/python -m tools.mutation_check --report $(VERIFY)/mutants.json $(MUTANTS)
	-@$(BEHIND) $(PART) engine-mutants $(VERIFY)/engine-mutants.json -- \
	  $(FIXED_ORDER) $(BIN)/python -m tools.mutants.engine --report $(VERIFY)/engine-mutants.json $(ENGINE_MUTANTS)
	-@$(BEHIND) $(PART) soak $(VERIFY)/soak.json -- \
	  $(BIN)/python -m tools.soak --orders $(SOAK_ORDERS) --report $(VERIFY)/soak.json

.PHONY: mutants
mutants: $(INSTALLED) ## Check that a unit test notices each change of the engine (ARGS="--only routing")
	@$(BEHIND) $(FIXED_ORDER) $(BIN)/python -m tools.mutants.engine $(ARGS)

.PHONY: soak
soak: $(VENV)/.test ## Run random stories of orders in memory (MINUTES=10, or ARGS="--orders 100000 --seed 7")
	@$(BIN)/python -m tools.soak $(if $(MINUTES),--minutes $(MINUTES)) $(ARGS)

.PHONY: bench
bench: engines ## Measure what an order costs and how fast it goes (PARTS="units growth", ARGS=--help)
	@$(BIN)/python -m benchmarks $(PARTS) $(ARGS)

.PHONY: lint
lint: $(INSTALLED) ## Lint, check the formatting, and check which package imports which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --cache-dir .cache/import-linter

.PHONY: structure
structure: $(INSTALLED) ## Print figures of the structure: lines of code, words, repeated names
	@$(BIN)/python -m tools.structure $(ARGS)

.PHONY: types
types: $(INSTALLED) ## Check the types, strictly
	$(BIN)/mypy
	cd $(EXAMPLE) && $(CURDIR)/$(BIN)/mypy

.PHONY: template
template: $(INSTALLED) ## Check the templates of the examples
	$(SAM) validate --lint --template template.yaml
	$(SAM) validate --lint --template $(EXAMPLE)/template.yaml
	AWS_DEFAULT_REGION=us-east-1 $(BIN)/cfn-lint -- stacks/*.yaml
	AWS_DEFAULT_REGION=us-east-1 $(BIN)/cfn-lint -- examples/team_console/template.yaml
	cd $(EXAMPLE) && $(CURDIR)/$(BIN)/roundsman check

.PHONY: policy
policy: $(INSTALLED) ## Scan for secrets and for what the house rules forbid
	$(BIN)/python -m tools.policy_scan

# In a virtual environment of their own: they ask for other versions than the project.
$(TEMPLATE_LINT)/.installed: requirements/template-lint.txt | $(BIN)/python
	@echo "Installing the linters of policies into $(TEMPLATE_LINT) (half a minute the first time)" >&2
	@test -x $(TEMPLATE_LINT)/bin/python || $(BIN)/python -m venv $(TEMPLATE_LINT)
	@$(TEMPLATE_LINT)/bin/python -m pip --disable-pip-version-check install -qq --no-deps --require-hashes --requirement requirements/template-lint.txt
	@touch $@

.PHONY: template-lint
template-lint: $(INSTALLED) $(TEMPLATE_LINT)/.installed ## Check rights and resources of the templates with parliament and checkov
	@$(BIN)/python -m tools.template_lint $(TEMPLATE_LINT)/bin/python

.PHONY: docs
docs: $(INSTALLED) ## Build the site of docs/ into .cache/site; a broken link is an error
	@$(BIN)/python -m tools.reference --check
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	@echo "The site is in .cache/site: make docs-serve shows it" >&2

.PHONY: docs-serve
docs-serve: $(INSTALLED) ## Show the site of docs/ on 127.0.0.1, anew after each change (PORT=8000)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs serve --dev-addr 127.0.0.1:$(or $(PORT),8000)

# What runs on a deployed stack mostly waits for it, so the rest is done beside it, and stands back:
# what runs on DynamoDB Local or in a browser, and one after the other what needs the processor only.
# A finding of the linter ends it at once.
.PHONY: check
check: engines lint ## All that a change must pass: the linters, `make test`, all tests but the long proofs, the demo
	@mkdir -p $(REPORTS) && rm -f $(REPORTS)/*.xml
	@$(MAKE) --no-print-directory -j 3 check-stack check-engines check-processor
	@$(BIN)/python -m tools.totals $(REPORTS)
	@$(VERIFIED) status

check-stack:
	@$(MAKE) --no-print-directory test-stack
	@$(call logged,demo,$(BIN)/python -m tools.demo --json)
	@echo "The demo's orders came to their ends: $(REPORTS)/demo.log"

check-engines:
	@$(MAKE) --no-print-directory test-engines
	@$(call logged,soak,$(BEHIND) $(BIN)/python -m tools.soak --orders 200)
	@tail -1 $(REPORTS)/soak.log

check-processor:
	@for part in types template policy template-lint docs "test WHOLE=1"; do $(BEHIND) $(MAKE) --no-print-directory $$part; done

.PHONY: format
format: $(INSTALLED) ## Format the code and fix what the linter can
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

# Only the build backend is installed, so that a wheel needs no development environment.
.PHONY: dist
dist: $(BIN)/python ## Build the wheel into dist/: the engine, the test kit, the command line, the stacks; no example
	@rm -f dist/roundsman-*.whl
	@if $(BIN)/python -c 'import hatchling' 2>/dev/null; then isolation=--no-build-isolation; else isolation=; fi; \
	  $(PIP) wheel --quiet --no-deps $$isolation --wheel-dir dist .
	@wheel=$$(echo dist/roundsman-*.whl); echo "Built $$wheel. In a virtual environment of your own:"; \
	  echo "  pip install \"$(CURDIR)/$$wheel[cli,local,testing,ui]\""

# The build backend is the locked one: another writes its version into the wheel.
.PHONY: release
release: $(INSTALLED) ## Build the files of a release from the last commit, with hashes and the list of the parts (SECURITY.md)
	@$(BIN)/python -m tools.release_files $(ARGS)

.PHONY: demo
demo: $(VENV)/.demo ## Send the orders in events/ through a local stack (ARGS=--json for scripts)
	@$(BIN)/python -m tools.demo $(ARGS)

# Written in this order because each of the later locks agrees with the first.
.PHONY: lock
lock: $(BIN)/python ## Lock all dependencies anew, with hashes (LOCK_ARGS=--upgrade takes newer versions)
	@test -x $(VENV)/locker/bin/uv || { $(BIN)/python -m venv $(VENV)/locker && \
	  $(VENV)/locker/bin/python -m pip --disable-pip-version-check install -qq --require-hashes --requirement requirements/locker.txt; }
	@$(COMPILE) pyproject.toml --all-extras --group dev --output-file requirements/dev.txt
	@$(COMPILE) requirements/core-layer.in --constraints requirements/dev.txt --output-file layers/core/requirements.txt
	@$(COMPILE) requirements/workflows-layer.in --constraints requirements/dev.txt --output-file layers/workflows/requirements.txt
	@$(COMPILE) requirements/engines.in --output-file requirements/engines.txt
	@$(COMPILE) requirements/emulator.in --output-file requirements/emulator.txt
	@$(COMPILE) requirements/lambda-runtime.in --constraints requirements/emulator.txt --output-file requirements/lambda-runtime.txt
	@$(COMPILE) requirements/locker.in --output-file requirements/locker.txt
	@$(COMPILE) requirements/template-lint.in --output-file requirements/template-lint.txt
	@echo "Locked; git diff shows what changed. Now: make check"

.PHONY: clean
clean: ## Remove all that these commands made
	rm -rf $(VENV) .cache .aws-sam build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
