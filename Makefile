# Every step of development and CI, one target each; `.ci/run` calls these in order.
# Another environment: `make test VENV=/path/to/venv`.

VENV ?= .venv
PYTHON ?= python3
PYTEST_ARGS ?=
# `make bench BENCH_ARGS=` runs the benchmarks at full size.
BENCH_ARGS ?= --quick
BENCHMARKS := data evaluation statistics clicks online hybrid learning models judging assessors utility export explain studio cluster serving text newcomer scale

# Tests start thousands of processes: none of them is to compile every module anew.
unexport PYTHONDONTWRITEBYTECODE

BIN := $(VENV)/bin
CLEAN := dist/clean-venv
WEB := src/podium/studio/web/static/built

.DEFAULT_GOAL := help
.PHONY: help system engines install web api-types messages lint format types imports web-types test test-slow tests examples coverage plain nightly mutants fuzz docs site screenshots outputs bench \
  wheel lock locks audit sbom extras release-check ci ci-clone clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 12

# What tests run: a real database, a real browser, and Maven with Java 17 for real search engines;
# and wrk, the load of a benchmark.
system: ## Debian's packages that tests and benchmarks need: PostgreSQL 15, Chromium, Maven, Java, wrk
	@test -x /usr/lib/postgresql/15/bin/initdb && test -x /usr/bin/chromium && \
	  test -x /usr/bin/mvn && test -x /usr/bin/javac && test -x /usr/bin/wrk || { \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
	  apt-get install -y -qq --no-install-recommends postgresql-15 chromium maven \
	  openjdk-17-jdk-headless wrk; }

# What exports and the studio's import are tested with. Maven fetches them, which takes minutes once;
# what the registry does not carry is compiled from the archives in ../shared/engines.
engines: ## OpenSearch and Solr for tests, in .engines; needs no .venv
	$(PYTHON) -m tests.engines.install

# PyTorch is pinned: its CUDA build is large and is to be installed once.
# uv resolves these extras in seconds where pip takes minutes; pip, where only pip knows the registry.
# Modules are compiled when they are first imported: most of PyTorch's never are.
DEVELOPMENT := 'torch==2.13.0' --editable '.[dev,peers,rankers,tuning,text,cluster,clicks,export,hybrid,serving,mlflow]'
install: ## make .venv and install Podium in it, editable, with every development tool
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python $(DEVELOPMENT) || \
	  $(BIN)/python -m pip install --quiet --no-compile $(DEVELOPMENT)
	@test -f $(WEB)/judge.js || { echo "The pages of Podium Studio have no scripts:" \
	  "install Node.js 18 or later, then run 'make web'." >&2; exit 1; }

# The install above did the same; this is for a change in web/.
web: ## the scripts of the studio's pages: fetch what they need, check their types, build them
	npm ci
	npm run --silent typecheck
	npm run --silent build

node_modules: package-lock.json
	npm ci
	@touch node_modules

$(BIN)/python:
	@echo "There is no $@ yet: run 'make install' first." >&2; exit 1

lint: $(BIN)/python locks ## ruff: rules and formatting; codespell: spelling; lock files; they change nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell

format: $(BIN)/python ## ruff: fix what can be fixed, and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(BIN)/python web-types ## mypy, strict on src, benchmarks and studies; TypeScript, strict, on web
	$(BIN)/mypy

api-types: $(BIN)/python node_modules ## web/api-types.d.ts from the judging API's OpenAPI document
	PATH="$(abspath $(BIN)):$$PATH" npm run --silent types

messages: $(BIN)/python ## the studio's message catalogues: extract anew, and update every language's file
	$(BIN)/python -m tests.studio.catalogues

web-types: node_modules
	npm run --silent typecheck

imports: $(BIN)/python ## a package imports only packages in layers below it
	$(BIN)/lint-imports

test: $(BIN)/python ## the fast tests and the examples in docstrings of public names
	$(BIN)/python -m pytest $(PYTEST_ARGS)

test-slow: $(BIN)/python ## the slow tests alone, one after the other, those too long for CI too
	$(BIN)/python -m pytest -m slow $(PYTEST_ARGS)

# Some minutes of requests that nobody would send, on PostgreSQL: the slow tests send fewer.
fuzz: $(BIN)/python ## generated requests against the studio's API
	PODIUM_FUZZ_SECONDS=540 $(BIN)/python -m pytest -m slow -s tests/studio/test_malformed.py

# Slow, but coverage sees every line, and a debugger stops there.
plain: $(BIN)/python ## tests of measures, losses and readers with all compiled loops as plain Python
	NUMBA_DISABLE_JIT=1 CI=true $(BIN)/python -m pytest tests/test_plain_kernels.py \
	  tests/measures/test_measure_values.py tests/measures/test_statistics.py tests/measures/test_conventions.py \
	  tests/losses/test_loss_values.py tests/aggregation/test_positional.py tests/data/test_decimal.py $(PYTEST_ARGS)

# All modules take hours: name some, by area or by module. What was run is not run again.
MODULES ?=
MUTANTS_ARGS ?= --sample 40 --seed 0 --jobs 2
mutants: $(BIN)/python ## mutation testing: make mutants MODULES="measures.comparison.statistics"
	$(BIN)/python -m tests.mutation $(MODULES) $(MUTANTS_ARGS)

# Engines in several processes share the cores: a thread that waits must not keep one busy.
tests coverage: export OMP_WAIT_POLICY = PASSIVE

tests: $(BIN)/python ## all tests but the longest, in three processes, as CI runs them
	$(BIN)/python -m pytest -m 'not long' -n 3 --durations=25 $(PYTEST_ARGS)

examples: $(BIN)/python ## the examples in all docstrings
	$(BIN)/python -m pytest --doctest-modules src studies $(PYTEST_ARGS)

# Hours. What passed at this commit is not run again.
nightly: $(BIN)/python ## what CI leaves out: long tests, new examples, fuzzing, mutants, benchmarks at full size
	$(BIN)/python -m tests.release.check 'long tests' 'newly drawn examples' 'examples in docstrings' fuzzing mutants $(BENCHMARKS:%='benchmark of %')

# Not in CI, for its time.
coverage: $(BIN)/python ## the fast tests, in two processes, with coverage and its bound
	$(BIN)/python -m pytest -n 2 --cov --durations=10 $(PYTEST_ARGS)

# The site must work without a network: no page may load a script, style or image from elsewhere.
# Not --quiet: it hides warnings from --strict, too.
docs: $(BIN)/python ## the site, in site/, with warnings as errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@if grep -rlE --include='*.html' \
	  '<(script|img|iframe)[^>]+src="?(https?:)?//|<link[^>]+href="?(https?:)?//' site; \
	then echo "The pages above load files from other hosts: serve those files from docs/." >&2; exit 1; fi
	@test -s site/search/search_index.json

# A folder for each version beside the others, with a menu of them, for any web server.
PUBLISHED ?= build/published
site: docs ## the site as one of several versions, in build/published
	$(BIN)/python -m tests.release.site_versions site $(PUBLISHED)

# The pages of the studio change with what they show: whoever changes them takes them again.
screenshots: $(BIN)/python ## pictures of the studio's pages and of a report, in docs/images; needs Chromium
	$(BIN)/python -m tests.studio.browser.screenshots $(NAMES)
	$(BIN)/python -m tests.studio.browser.report_picture

# After a change of what commands print, or of a page's code.
outputs: $(BIN)/python ## write what the code of the README, the docs and the notebooks prints into them
	$(BIN)/python tests/run_markdown.py --write $$(grep -lE '^ *```(python|console)' -r README.md docs --include='*.md')
	$(BIN)/python -m tests.run_notebook --write docs/notebooks/*.ipynb

bench: $(BIN)/python ## the benchmarks; each fails if a target does not hold
	for name in $(BENCHMARKS); do $(BIN)/python -m benchmarks.$$name $(BENCH_ARGS) || exit 1; done

# What a user gets: the wheel alone in an empty environment, and the README's tour run there. Its
# build fetches node_modules anew, which must not happen while types are checked.
wheel: $(BIN)/python | web-types ## build the wheel, install it in an empty environment, run the README's tour there
	rm -rf dist
	PODIUM_REQUIRE_PAGES=1 $(BIN)/python -m build --wheel --outdir dist
	$(BIN)/twine check --strict dist/*.whl
	$(BIN)/python -m tests.release.wheel_contents dist/*.whl
	$(BIN)/python -m venv $(CLEAN)
	$(BIN)/uv pip install --quiet --python $(CLEAN)/bin/python dist/*.whl || \
	  $(CLEAN)/bin/python -m pip install --quiet dist/*.whl
	$(CLEAN)/bin/python -I -c 'import podium; print("podium", podium.__version__, podium.__file__)'
	$(CLEAN)/bin/podium --version
	$(CLEAN)/bin/python tests/run_markdown.py README.md

# `make lock LOCK_ARGS=--upgrade` takes the newest versions that pyproject.toml allows.
LOCK_ARGS ?= --write
lock: $(BIN)/python ## deploy/locks: exact versions with digests for deployments, by uv
	$(BIN)/python -m tests.release.locks $(LOCK_ARGS)

locks: $(BIN)/python ## check that deploy/locks is what pyproject.toml asks for; needs no network
	$(BIN)/python -m tests.release.locks

# Not among the tools of development: they bring some forty packages that tests would see.
RELEASE := build/release-tools
$(RELEASE)/bin/pip-audit: pyproject.toml | $(BIN)/python
	$(PYTHON) -m venv $(RELEASE)
	$(BIN)/uv pip install --quiet --python $(RELEASE)/bin/python --group release
	@touch $@

# `make audit AUDIT_ARGS=--require` fails where advisories cannot be looked up, too.
AUDIT_ARGS ?=
audit: $(RELEASE)/bin/pip-audit ## advisories against what deployments install: pip-audit and npm audit
	$(RELEASE)/bin/python -m tests.release.audit $(AUDIT_ARGS)

# A bill names what it is of, with the version, which neither pyproject.toml nor package.json has; npm
# takes the name from the folder.
SBOM := build/podium-studio-web
sbom: VERSION = $(shell $(BIN)/python -c 'import podium; print(podium.__version__)')
sbom: $(RELEASE)/bin/pip-audit ## bills of materials of the deployments (CycloneDX), in dist/
	mkdir -p dist $(SBOM)
	sed 's/^dynamic = \["version"\]$$/version = "$(VERSION)"/' pyproject.toml > $(SBOM)/pyproject.toml
	for name in studio serving; do \
	  $(RELEASE)/bin/cyclonedx-py requirements --pyproject $(SBOM)/pyproject.toml --output-reproducible --of JSON \
	    -o dist/podium-$$name.cdx.json deploy/locks/$$name.txt || exit 1; done
	cp package.json package-lock.json .npmrc $(SBOM)
	cd $(SBOM) && npm pkg set version=$(VERSION) && \
	  npm sbom --package-lock-only --sbom-format cyclonedx > $(CURDIR)/dist/podium-pages.cdx.json

extras: $(BIN)/python ## do all extras resolve together?
	mkdir -p build
	$(BIN)/uv pip compile --quiet --all-extras --no-header pyproject.toml --output-file build/all-extras.txt
	@echo "$$(grep -c == build/all-extras.txt) packages resolve together"

# Hours. What passed at this commit is not run again: --fresh in RELEASE_ARGS runs all.
RELEASE_ARGS ?=
release-check: $(BIN)/python ## all long steps, one after the other, and a page of results in build/
	$(BIN)/python -m tests.release.check $(RELEASE_ARGS)

ci: ## everything, from nothing, as CI does
	bash .ci/run

# What is not committed cannot help there. Tests look for shared data beside the project.
COMMIT ?= HEAD
ci-clone: ## CI in a fresh clone of COMMIT, in build/clone
	rm -rf build/clone
	mkdir -p build
	test ! -e ../shared || ln -sfn $(abspath ../shared) build/shared
	git clone --quiet . build/clone
	git -C build/clone checkout --quiet --detach $$(git rev-parse $(COMMIT))
	bash build/clone/.ci/run

clean: ## remove what the other targets made, .venv apart
	rm -rf build dist site htmlcov .coverage .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
