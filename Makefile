# Two commands do everything on a fresh machine: `make build REPO=path` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
ARCHIVE := $(VENV)/archive
REPO ?= .
ARGS ?=

.PHONY: build test test-slow check format docs accuracy oracle lock java clean
.PHONY: bench bench-latency profile bench-resolution bench-depth bench-indexing bench-warm-index bench-updates history mutations splices kills endurance bench-revisions

build: $(READY) java $(ARCHIVE) ## Build the graph of REPO
	@$(BIN)/codeanatomy build "$(REPO)" $(ARGS)

test: check java ## Lint, types, import contracts, then every test
	$(BIN)/pytest -n 2 --dist loadfile

test-slow: $(READY) java ## The longer proofs: a crash at every write boundary, the class-data archive
	$(BIN)/pytest -m slow -n 2 --dist worksteal

check: $(READY) ## Lint, format, types, import contracts, generated docs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m scripts.schema_reference --check

format: $(READY) ## Format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(READY) ## Write the generated schema reference
	$(BIN)/python -m scripts.schema_reference

bench: $(READY) java ## Measure full builds of real code; writes bench/RESULTS.md
	$(BIN)/python -m bench.builds

bench-resolution: $(READY) java ## Full build of Django next to scip-python's index (needs npm); writes bench/RESOLUTION.md
	$(BIN)/python -m bench.resolution

bench-depth: $(READY) ## Resolution time against length of chains, number of bases, width of star imports; writes bench/DEPTH.md
	$(BIN)/python -m bench.depth

bench-warm-index: $(READY) java ## The indexer that stays next to runs from scratch: equal documents, and how much sooner
	$(BIN)/python -m bench.warm_index documents
	$(BIN)/python -m bench.warm_index builds

bench-indexing: $(READY) java ## Full builds of Django with and without an index, next to scip-python's; writes bench/INDEXING.md
	$(BIN)/python -m bench.indexing

bench-latency: $(READY) java ## From a change to the graph: cold, warm, in process, next to other tools (npm); writes bench/LATENCY.md
	$(BIN)/python -m bench.latency $(ARGS)

profile: $(READY) java ## Where the time of one full build and one update goes; writes bench/PROFILE.md
	$(BIN)/python -m bench.build_profile $(ARGS)

history: $(READY) java ## Replay releases of real packages, each build against one from scratch; writes bench/HISTORY.md
	$(BIN)/python -m bench.history $(ARGS)

bench-updates: $(READY) java ## Updates of Django next to a full build; writes bench/UPDATES.md and bench/UPDATES-INDEX.md
	$(BIN)/python -m bench.updates
	$(BIN)/python -m bench.updates --index pyrefly --only-edits

mutations: $(READY) java ## Random edits of real packages: does an update find all that they alter?
	$(BIN)/python -m bench.mutations $(ARGS)

splices: $(READY) java ## Random edits made of real code: is an answer missed, does one depend on the order? Writes bench/SPLICES.md
	$(BIN)/python -m bench.splices $(ARGS)

endurance: $(READY) java ## A thousand updates by one process: do time and memory grow? Writes bench/ENDURANCE.md
	$(BIN)/python -m bench.endurance $(ARGS)

bench-revisions: $(READY) java ## The working tree against ARGS=REVISION: cold and warm builds; writes bench/REVISIONS.md
	$(BIN)/python -m bench.revisions $(ARGS)

kills: $(READY) java ## Commands killed at random moments: is anything lost or left behind? Writes bench/KILLS.md
	$(BIN)/python -m bench.kills $(ARGS)

accuracy: $(READY) java ## Precision and recall of the call graph: hand-written cases, then test suites of real packages
	$(BIN)/python -m bench.accuracy.ledger
	$(BIN)/python -m bench.accuracy.dynamic

oracle: $(READY) ## Compare extraction with the interpreter on every file of the standard library and installed packages
	$(BIN)/python -m tests.extract.oracle

lock: ## Resolve dependencies again
	$(PYTHON) -m venv $(VENV)-lock && $(VENV)-lock/bin/pip install -q uv
	$(VENV)-lock/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header \
		--no-emit-index-url --no-emit-find-links --extra dev pyproject.toml -o requirements.lock
	rm -rf $(VENV)-lock

java:
	@scripts/ensure-java

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "error: Python 3.11 or newer is needed")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# Once per installation: Spark's classes are prepared in the background, at the lowest priority, for quicker starts.
$(ARCHIVE): $(READY) | java
	@$(BIN)/python -m codeanatomy.engine.archive
	@touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .corpora
