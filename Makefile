# shmbroker: make demo, make test; make help lists the rest.
#
# Everything happens in .venv, with the package installed as a user would install it.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find core ipc netbridge perf cli src -name '*.py' -not -path '*/__pycache__/*') \
           $(shell find ipc perf -name '*.[ch]') $(wildcard cli/console/pages/*) setup.py pyproject.toml

# compiled modules and rewritten tests are kept, whatever the environment says: each test process
# would compile all tests anew
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help types site demo demo-replicated demo-fan-out demo-latency test crash growth attack explore upgrade simulate bench bench-quick latency-long latency-bench lint wheel install uninstall clean

help:  ## List the targets
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 16

demo: $(VENV)/installed  ## Kill a live broker; its backup takes over; fail back (15 s)
	$(BIN)/python examples/demo.py

demo-replicated: $(VENV)/installed  ## The same without a shared disk: a live, a replica, a witness (20 s)
	$(BIN)/python examples/demo_replicated.py

demo-fan-out: $(VENV)/installed  ## A C producer, Numba, Python and asyncio consumers; kill one (30 s)
	$(BIN)/python examples/fan_out.py

demo-latency: $(VENV)/installed $(VENV)/latency  ## Merge two latency spools with Spark and report a slow consumer (2 min)
	$(BIN)/python examples/latency_demo.py

# Three processes a core, because the tests wait most of the time: for processes, time-outs, leases.
test: $(VENV)/installed $(VENV)/latency $(VENV)/postgres $(VENV)/zookeeper $(VENV)/prometheus $(VENV)/chromium $(VENV)/manual $(VENV)/site $(VENV)/systemd $(VENV)/needed  ## Run lint, types and all tests, with a short exploration
	$(BIN)/ruff check .
	$(MAKE) --no-print-directory --jobs 2 --output-sync types $(VENV)/rewritten
	$(BIN)/python -m tests.support.left_behind $(BIN)/python -m pytest -n $(shell expr 3 \* $$(nproc)) --dist loadfile --no-loadscope-reorder

types:
	$(BIN)/mypy

# pytest rewrites the assertions of each file that it imports: once here, not in each process. What
# cannot be collected is told by the run itself.
$(VENV)/rewritten: $(VENV)/installed $(shell find tests -name '*.py')
	$(BIN)/python -m pytest --collect-only -qq > /dev/null || true
	touch $@

crash: $(VENV)/installed  ## Kill producers, consumers and brokers; account for every message
	$(BIN)/python -m tests.crash --kills 2000
	$(BIN)/python -m tests.crash failover --times 100
	$(BIN)/python -m tests.crash scarce --times 10
	$(BIN)/python -m tests.crash stream --kills 500
	$(BIN)/python -m tests.crash links --kills 500
	$(BIN)/python -m tests.crash frames --frames 1000000
	COMMIT_STRIDE=500 $(BIN)/python -m pytest tests/ipc/transaction
	SHMBROKER_KILLS=200 $(BIN)/python -m pytest tests/ipc -k "kill or of_the_dead or the_dead_have or tries_again"
	$(BIN)/python -m tests.crash replicas --kills 150
	$(BIN)/python -m tests.crash queue_replicas --kills 200
	SHOWING_STRIDE=200 $(BIN)/python -m pytest tests/ipc/queue_replica/test_killed_showing.py
	SHMBROKER_LONG=1 SHMBROKER_REPLICA_KILLS=50 $(BIN)/python -m pytest tests/netbridge/queue_replicated
	SHMBROKER_LONG=1 $(BIN)/python -m pytest tests/netbridge/clustered/test_colocated.py tests/netbridge/clustered/test_draining.py tests/netbridge/clustered/test_draining_members.py tests/netbridge/clustered/test_hosted_draining.py tests/netbridge/clustered/test_held_killed.py

attack: $(VENV)/installed  ## Attack the broker for an hour, using only its documented interface
	$(BIN)/python -m tests.attack --minutes 60

growth: $(VENV)/installed  ## Create and delete a million queues and 100,000 connections; look for leaks (20 min)
	$(BIN)/python -m tests.crash growth

explore: $(VENV)/installed  ## Explore the protocol completely, and catch all mutants anew (about an hour)
	$(BIN)/python -m tests.explore mutants
	$(BIN)/python -m tests.explore deep

# From the commit before to what is here: FROM=COMMIT for another one.
FROM ?= HEAD~1
upgrade: $(VENV)/installed  ## Upgrade a live and its backup under load from the version of FROM=COMMIT (5 min)
	$(BIN)/python -m tests.upgrade $(FROM)

MINUTES ?= 0
SEEDS ?= $(if $(filter-out 0,$(MINUTES)),0,10000)
FIRST ?= 0
simulate: $(VENV)/installed  ## Simulate brokers and links with faults, a process for each core (SEEDS=, MINUTES=, FIRST=; 1 h)
	$(BIN)/python -m shmbroker.netbridge.simulation run --first $(FIRST) --seeds $(SEEDS) --minutes $(MINUTES)

bench: $(VENV)/perf  ## Run all benchmarks, with peers: bench.html, bench.json (30 min)
	$(BIN)/shmbroker bench all

bench-quick: $(VENV)/perf  ## Run all benchmarks briefly, with few peers (3 min)
	$(BIN)/shmbroker bench all --quick

latency-long: $(VENV)/installed $(VENV)/latency  ## Run the long tests of the Spark pipeline (20 min)
	SHMBROKER_LONG=1 $(BIN)/python -m pytest tests/perf/spark

latency-bench: $(VENV)/installed $(VENV)/latency  ## Merge 5 million intervals with Spark (15 min)
	$(BIN)/pip install --quiet hdrhistogram
	$(BIN)/python -m shmbroker.perf.spark.scale

site: $(VENV)/installed $(VENV)/site  ## Build the documents as a site, in build/html (10 s)
	$(BIN)/python -m tools.site

lint: $(VENV)/installed  ## Run lint and types only
	$(BIN)/ruff check .
	$(BIN)/mypy

MACHINES ?= x86_64 aarch64
wheel: $(VENV)/installed $(VENV)/wheel  ## Build the sdist and a wheel for each of MACHINES, in build/wheels (5 min)
	$(BIN)/python tools/wheel.py $(MACHINES)

PREFIX ?= /usr/local
PLACES = --destdir "$(DESTDIR)" --prefix "$(PREFIX)" --multiarch "$(MULTIARCH)" --libdir "$(LIBDIR)" --includedir "$(INCLUDEDIR)"
install: $(VENV)/installed  ## Install the C library, for programs without Python (PREFIX=, DESTDIR=, MULTIARCH=, WHEEL=)
	$(BIN)/python tools/install.py $(PLACES) $(if $(WHEEL),--wheel "$(WHEEL)")

uninstall: $(VENV)/installed  ## Remove what install with the same variables has put there
	$(BIN)/python tools/install.py $(PLACES) --uninstall

clean:  ## Remove everything that was built
	rm -rf $(VENV) build bench.json bench.hlog bench.html *.egg-info src/*.egg-info

$(VENV)/tools: pyproject.toml tools/prepare
	tools/prepare $(PYTHON) $(VENV)
	$(BIN)/pip install --quiet --upgrade pip 'setuptools>=77' wheel
	$(BIN)/python tools/requirements.py build test | xargs -d '\n' $(BIN)/pip install --quiet
	touch $@

$(VENV)/perf: $(VENV)/installed
	$(BIN)/python tools/requirements.py perf | xargs -d '\n' $(BIN)/pip install --quiet
	$(BIN)/shmbroker bench topologies --install
	touch $@

$(VENV)/latency: $(VENV)/tools pyproject.toml tools/java
	tools/java
	$(BIN)/python tools/requirements.py latency | xargs -d '\n' $(BIN)/pip install --quiet
	touch $@

$(VENV)/postgres: $(VENV)/tools tools/postgres
	tools/postgres
	touch $@

$(VENV)/zookeeper: $(VENV)/tools tools/zookeeper $(VENV)/latency
	tools/zookeeper
	touch $@

$(VENV)/prometheus: $(VENV)/tools tools/prometheus
	tools/prometheus
	touch $@

$(VENV)/chromium: $(VENV)/tools tools/chromium
	tools/chromium
	touch $@

$(VENV)/manual: $(VENV)/tools tools/manual
	tools/manual
	touch $@

$(VENV)/systemd: $(VENV)/tools tools/systemd
	tools/systemd
	touch $@

$(VENV)/site: $(VENV)/tools pyproject.toml
	$(BIN)/python tools/requirements.py site | xargs -d '\n' $(BIN)/pip install --quiet
	touch $@

$(VENV)/wheel: $(VENV)/tools pyproject.toml
	$(BIN)/python tools/requirements.py wheel | xargs -d '\n' $(BIN)/pip install --quiet
	touch $@

# what a wheel of shmbroker needs, for the test that installs one where nothing else is
$(VENV)/needed: $(VENV)/tools pyproject.toml
	rm -rf $(VENV)/wheels
	$(BIN)/python tools/requirements.py | xargs -d '\n' $(BIN)/pip download --quiet --only-binary :all: --dest $(VENV)/wheels
	touch $@

$(VENV)/installed: $(VENV)/tools $(SOURCES)
	rm -rf build
	$(BIN)/pip install --quiet --no-build-isolation --no-deps --force-reinstall .
	touch $@
