# kvstudy: every command a user needs. `make` alone prints this help.
#
# PRESET=quick|full|smoke|reference chooses durations and repeats of the experiments; PYTHON=… another Python (3.11 or newer).

PRESET ?= quick
$(if $(filter command,$(firstword $(origin PROFILE))),$(error it is called PRESET: make $(MAKECMDGOALS) PRESET=$(PROFILE)))
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
KVSTUDY := $(BIN)/kvstudy
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# The benchmarks and the longer tests stand at the end.
.PHONY: help setup build test test-python test-rust test-java test-hosts smoke reproduce reference reference-plan peers compare lab html picture verify clean lock doctor \
        bench-engine engine-costs soundness tail-causes duet-power independent-runs violations bench-analysis bench-scaling bench-service bench-short-turns bench-socket-calls bench-stalled bench-awake bench-loadgen bench-redis bench-tail bench-value-size fuzz-service hostile-service kill-service failures metamorphic soak-service soak-engine

help: ## this list
	@printf 'kvstudy: a performance study that anyone can run again\n\n'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\nStart with `make reproduce`. What is missing on this machine: `make doctor`.\n'

# ---- setting up -----------------------------------------------------------------------------------------------------------

# Programs of an environment name the folder it was made in: in a copy of a checkout they would run the code of the other one. An
# environment that lies elsewhere is not copied with it.
setup: $(VENV)/ready ## make the virtual environment from requirements.lock
	@case $(VENV) in /*) exit 0 ;; esac; \
	  { [ -x $(BIN)/python ] && head -n 2 $(BIN)/kvstudy | grep -qF "$$(pwd -P)/"; } || \
	  { echo '$(VENV) was made in another folder, or its Python is gone: rm -rf $(VENV), and the same command again' >&2; exit 1; }

PIP_INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check

# Where Python may write no bytecode, each process would compile all that it imports: seconds for a page. pip always compiles.
COMPILED := $(if $(PYTHONDONTWRITEBYTECODE),--compile-bytecode)
# uv takes a tenth of pip's time. pip may know proxies and certificates that uv does not. An environment of ours that was begun and
# not finished goes: venv would leave a pip alone that was copied half.
$(VENV)/ready: requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo 'no such program: PYTHON=$(PYTHON); set PYTHON to a Python of 3.11 or newer' >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo 'python is older than 3.11: PYTHON=$(PYTHON); set PYTHON to a newer one' >&2; exit 1; }
	@echo 'installing what kvstudy needs into $(VENV), once: under a minute'
	@if [ -e $(VENV)/begun ]; then rm -rf $(VENV); fi; [ -e $(VENV) ] || { mkdir $(VENV) && touch $(VENV)/begun; }
	$(PYTHON) -m venv $(VENV)
	@sed -n '/^uv==/,/[^\\]$$/p' requirements.lock > $(VENV)/uv.txt
	$(PIP_INSTALL) --require-hashes -r $(VENV)/uv.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes $(COMPILED) -r requirements.lock || \
	  { echo 'uv could not: pip installs these'; $(PIP_INSTALL) --require-hashes -r requirements.lock; }
	$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@rm -f $(VENV)/begun && touch $@

lock: ## renew requirements.lock from the ranges in pyproject.toml
	$(BIN)/uv pip compile --quiet pyproject.toml --extra test --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header --output-file requirements.lock

build: setup ## build the service (Maven, JDK 25) and the load generator (Cargo)
	$(KVSTUDY) build

doctor: setup ## what is missing on this machine, and the command that installs it
	$(KVSTUDY) doctor

# ---- measuring and looking ------------------------------------------------------------------------------------------------

REPORTS := $(sort $(wildcard experiments/report-*.yaml))

# How long runs wait in all for a machine that nobody else uses; they are measured then whatever it does, and say what they saw.
PATIENCE ?= 2m

# What `make reproduce` measures: the main table as independent runs, and options of the service, of which report 3's handler and
# report 5's cache are two, as duets. In a preset that takes its time also the runs of the five reports. In smoke wal stands for all duets.
RUNS := experiments/reproduce.yaml $(if $(filter quick smoke,$(PRESET)),,$(REPORTS))
DUETS := $(patsubst %,experiments/%.yaml,$(if $(filter smoke,$(PRESET)),wal,report-3 wal compaction cache value-size report-5))
# What it names afterwards with the time that each takes in full: these, and what other pages rest on.
LONGER = $(filter-out $(RUNS),$(sort $(REPORTS) $(DUETS) $(BESIDE_WRK2) $(GROWTH) $(PEERS) \
  $(patsubst %,experiments/%.yaml,gc grid handler noise saturation tail-intervention)))

# Make hands SIGTERM on to the shell of a recipe alone. What it calls among other commands ends with it, where setpriv is there.
TIED = $(shell setpriv --pdeathsig TERM true 2>/dev/null && echo setpriv --pdeathsig TERM)
TIED_TESTS = $(if $(TIED),--config 'target."cfg(all())".runner="$(TIED)"')

# A run that failed (exit code 1) is shown with the rest; a mistake or Ctrl-C ends here.
reproduce: setup ## build, measure the main table and six duets (quick: 18 to 28 min), write the HTML study; resumes when interrupted
	@$(KVSTUDY) plan $(RUNS) $(addprefix --duets ,$(DUETS)) --preset $(PRESET) --total
	$(KVSTUDY) build
	@status=0; \
	  $(TIED) $(KVSTUDY) run $(RUNS) --preset $(PRESET) --resume --patience $(PATIENCE) || status=$$?; \
	  if (( status <= 1 )); then $(TIED) $(KVSTUDY) compare $(DUETS) --preset $(PRESET) --resume --patience $(PATIENCE) || status=$$?; fi; \
	  if (( status > 1 )); then exit $$status; fi; \
	  $(TIED) $(KVSTUDY) report || exit $$?; \
	  if [ $(PRESET) = quick ]; then echo 'what only longer measurements decide, and how long they take:'; \
	    $(KVSTUDY) plan $(RUNS) $(LONGER) --preset full --commands; echo "the pages: $$PWD/figures/study/index.html"; fi; \
	  exit $$status

# Where others use the machine no launch counts, and all works. What fails otherwise is shown with the rest.
smoke: build ## the same path with tiny runs, under 3 minutes; proves that everything works, not how fast it is
	@status=0; \
	  $(TIED) $(KVSTUDY) run experiments/reproduce.yaml --preset smoke --resume || status=$$?; \
	  if (( status <= 1 )); then $(TIED) $(KVSTUDY) compare experiments/wal.yaml --preset smoke --resume || status=$$?; fi; \
	  if (( status > 1 )); then exit $$status; fi; \
	  $(TIED) $(KVSTUDY) report || exit $$?; \
	  if (( status )); then echo 'smoke: the pages are written; what failed, and what to do, stands above them' >&2; exit 1; fi
	@echo 'smoke: everything works. The pages show the reference, or runs of yours of another preset: these tiny ones stand in the place of none'

# What `make reference` measures, the most wanted first. Of report 5 all workloads run on one connection and repeated GET on 2 and 4.
REFERENCE := $(filter-out experiments/report-5.yaml,$(REPORTS)) $(patsubst %,experiments/%.yaml,instrument stall noise generators profile-cost \
  reproduce saturation handler wal compaction value-size cache gc grid workloads tail-intervention)
REFERENCE_DUETS := $(patsubst %,experiments/%.yaml,report-3 handler wal compaction gc cache value-size report-5)
FIRST_OF_REPORT_5 := experiments/report-5.yaml --only connections=1
REST_OF_REPORT_5 := experiments/report-5.yaml --only connections=2 --only connections=4 --only workload=repeated_get
BESIDE_WRK2 := experiments/wrk2.yaml
GROWTH := $(patsubst %,experiments/%.yaml,connections scale larger-than-memory)
PEERS := experiments/peers.yaml
RUN_REFERENCE := $(KVSTUDY) run --preset reference --resume --retries 2 --patience 30m

reference: reference-plan build
reference: ## measure the preset `reference` into data/raw (about three hours); then kvstudy publish
	$(RUN_REFERENCE) $(FIRST_OF_REPORT_5)
	$(RUN_REFERENCE) $(REST_OF_REPORT_5)
	$(RUN_REFERENCE) $(REFERENCE)
	$(KVSTUDY) compare --preset reference --resume --patience 30m $(REFERENCE_DUETS)
	@if command -v "$${WRK2:-wrk2}" >/dev/null; then \
	  $(RUN_REFERENCE) $(BESIDE_WRK2) ; \
	else echo 'not measured: $(BESIDE_WRK2), which needs a wrk2 (set WRK2 to yours)'; fi
	$(RUN_REFERENCE) $(GROWTH)
	$(RUN_REFERENCE) $(PEERS)

reference-plan: setup ## what make reference measures, and about how long each takes
	@$(KVSTUDY) plan $(REFERENCE) --preset reference --commands
	@$(KVSTUDY) plan $(FIRST_OF_REPORT_5) --preset reference --commands
	@$(KVSTUDY) plan $(REST_OF_REPORT_5) --preset reference --commands
	@$(KVSTUDY) plan $(BESIDE_WRK2) $(GROWTH) $(PEERS) --preset reference --commands

peers: build ## the service beside nginx, Redis behind webdis and an empty server, at the same rates (quick: about 5 min); installs nothing
	$(KVSTUDY) run experiments/peers.yaml --preset $(PRESET) --resume

BASE ?= main
$(if $(strip $(BASE)),,$(error BASE is empty: give a revision, as BASE=main))
WITHIN ?= 10m
FILE ?= experiments/put-get.yaml

compare: build ## did your change help? the checkout beside BASE=main, a Markdown table for a pull request (WITHIN=10m, FILE=experiments/put-get.yaml)
	@$(KVSTUDY) compare $(FILE) --builds '$(BASE)' . --within $(WITHIN) --markdown

html: setup ## write figures/study/index.html from the sealed runs that are there
	$(KVSTUDY) report

CHROMIUM ?= chromium

picture: html ## the README's picture: the index of the study, into docs/study.png (needs chromium, and a checkout without runs of its own)
	@command -v $(CHROMIUM) >/dev/null || { echo 'no browser for the picture: CHROMIUM=$(CHROMIUM); apt-get install chromium, or set CHROMIUM to yours' >&2; exit 1; }
	@if [ -n "$$(ls -A data/raw 2>/dev/null)" ]; then echo 'the picture is of data/reference alone: move data/raw away first' >&2; exit 1; fi
	@mkdir -p build
	$(CHROMIUM) --headless --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=1 --virtual-time-budget=6000 \
	  --no-first-run --disable-background-networking --disable-component-update --disable-sync \
	  --user-data-dir=build/chromium --window-size=1340,800 --screenshot=docs/study.png "file://$$PWD/figures/study/index.html" \
	  2>build/chromium.log || { tail -n 3 build/chromium.log >&2; exit 1; }
	@rm -rf build/chromium

lab: setup ## JupyterLab on the notebooks
	@mkdir -p $(VENV)/share/jupyter/lab/settings
	@echo '{"@jupyterlab/apputils-extension:notification": {"fetchNews": "false"}}' > $(VENV)/share/jupyter/lab/settings/overrides.json
	$(BIN)/jupyter lab --notebook-dir=. --LabApp.news_url=None --LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate \
	  $(if $(filter 0,$(shell id -u)),--allow-root) notebooks/00-study.ipynb

verify: setup ## recompute the checksums of every sealed run
	$(KVSTUDY) verify data

# ---- tests ----------------------------------------------------------------------------------------------------------------

test: ## all but long tests over hosts (make test-hosts): 20 to 30 minutes
	@echo 'sets up, checks the layout, builds, and compiles the tests of Rust beside all that (3 to 5 min)'
	$(MAKE) --no-print-directory --jobs=2 --output-sync=line lint-text build compile-rust-tests
	@echo 'tests of Rust and Java, then of Python, two of these at once; each is told when it is over (14 to 25 min)'
	@rm -f build/failed-*
	$(TIED) $(MAKE) --no-print-directory --keep-going --jobs=3 --output-sync=target tests-beside-each-other && \
	  ! ls build/failed-* >/dev/null 2>&1 || { cat build/failed-* 2>/dev/null; exit 1; }

# Tests of Rust measure time: those of Python wait for them (even niced, what launches no service kept one from its processor for
# 0.3 s), and what launches services for those of Java, which take both processors. None waits for the others' success: one
# failure hides no other, and `make test` fails by build/failed-* in the end.
# The layout of Java is checked after them, since two Mavens at once may disturb each other; it mostly waits for the network.
.PHONY: tests-beside-each-other test-machine-last test-rules test-machine compile-rust-tests lint lint-text lint-rust lint-java
tests-beside-each-other: test-rules test-machine-last lint-java
BESIDE_EACH_OTHER = $(filter tests-beside-each-other,$(MAKECMDGOALS))
FAIL = $(if $(BESIDE_EACH_OTHER),true,exit 1)
test-rules: | $(if $(BESIDE_EACH_OTHER),test-rust)
lint-java: | $(if $(BESIDE_EACH_OTHER),test-java)
test-machine-last: test-rust test-java
	@$(MAKE) --no-print-directory test-machine

compile-rust-tests: lint-rust
	cargo test -q --locked --no-run --manifest-path loadgen/Cargo.toml

DOCUMENTS = $(shell git ls-files "*.md")

lint: lint-text lint-rust lint-java ## layout, known faults and lengths of lines, of every language; `make format` mends the layout

lint-text: setup
	$(BIN)/ruff format --check --quiet
	$(BIN)/ruff check --quiet
	$(BIN)/pymarkdown scan $(DOCUMENTS)
	$(BIN)/python -m pytest -q tests/test_line_lengths.py tests/test_documents.py

lint-rust:
	@if cargo fmt --version >/dev/null 2>&1; then cargo fmt --check --manifest-path loadgen/Cargo.toml; \
	else echo 'not checked: cargo fmt is not installed (rustup component add rustfmt)'; fi
	@if cargo clippy --version >/dev/null 2>&1; then \
	  cargo clippy -q --locked --manifest-path loadgen/Cargo.toml --all-targets -- -D warnings; \
	else echo 'not checked: cargo clippy is not installed (rustup component add clippy)'; fi

lint-java: setup
	@mkdir -p build
	@$(JDK25) $(TIED) mvn -q -B -f service/pom.xml spotless:check 2>&1 | tee build/lint-java.log || \
	  { { echo; echo 'the layout of Java is not as `make format` makes it:'; grep -E '^\[ERROR\]' build/lint-java.log; } | head -n 60 >build/failed-lint-java; exit 1; }

format: setup ## lay out Python, Rust and Java, and mend what the linter can
	$(BIN)/ruff check --quiet --fix || true
	$(BIN)/ruff format --quiet
	cargo fmt --manifest-path loadgen/Cargo.toml
	$(JDK25) mvn -q -B -f service/pom.xml spotless:apply

# What failed is said once more when both are over, behind the longer of the two.
test-rust:
	@mkdir -p build
	$(TIED) cargo $(TIED_TESTS) test --locked --no-fail-fast --manifest-path loadgen/Cargo.toml 2>&1 | tee build/test-rust.log || \
	  { { echo; echo 'tests of Rust failed:'; grep -E -A 12 ' FAILED$$|panicked at|^error' build/test-rust.log; } | tail -n 100 >build/failed-rust && $(FAIL); }

PRINTED = service/target/surefire-reports/$$class-output.txt
test-java: setup
	@mkdir -p build
	$(TIED) env -u JDK_JAVA_OPTIONS $(KVSTUDY) build --test-java 2>&1 | tee build/test-java.log || \
	  { { echo; echo 'tests of Java failed:'; grep -E '^\[ERROR\]|^service: ' build/test-java.log | tail -n 60; \
	      for class in $$(sed -n 's/.*<<< \(FAILURE\|ERROR\)! -- in //p' build/test-java.log | sort -u); do \
	        echo; echo "seeds, and the end of what $$class printed:"; \
	        { grep seed $(PRINTED); tail -n 30 $(PRINTED); } 2>/dev/null; \
	      done; } >build/failed-java || true; [ -s build/failed-java ] && $(FAIL); }

# Hundreds of processes import the same files of this tree: compiled once, also where Python is to write no bytecode.
lint-text test-rules test-machine test-hosts: export PYTHONDONTWRITEBYTECODE :=

test-python: build
	$(MAKE) --no-print-directory test-rules
	$(MAKE) --no-print-directory test-machine

test-rules: build
	@mkdir -p build
	$(call pytest,rules,-m "not machine" --numprocesses auto --no-loadscope-reorder)

# What launches the service or the generator mostly waits, and says nothing of speed: one more at a time than there are cores,
# and JVMs with one compiler, whose start and end takes 1.1 s of CPU in place of 1.8. Files without such a test are not read.
MACHINE_FILES = $(shell grep -rl --include='test_*.py' 'mark\.machine' tests)
ONE_COMPILER = JDK_JAVA_OPTIONS=-XX:TieredStopAtLevel=1
test-machine: build
	@mkdir -p build
	$(NETNS) $(ONE_COMPILER) $(call pytest,machine,$(MACHINE_FILES) -m "machine and not long" --numprocesses $$(($$(nproc) + 1)))

define pytest
$(TIED) $(BIN)/python -m pytest --dist loadgroup $(2) 2>&1 | tee build/test-$(1).log || \
	  { { echo; echo 'tests of Python failed:'; sed -n '/short test summary/,$$p' build/test-$(1).log; } | tail -n 100 >build/failed-$(1); exit 1; }
endef

# Only root may make network namespaces; for others `make test` leaves those tests out, and says so.
NETNS = $(if $(filter 0,$(shell id -u)),,KVSTUDY_NO_NETNS=1)

test-hosts: build ## the service on one host, generators on others, and what may happen to them: four network namespaces with sshd (root, about 8 min)
	$(ONE_COMPILER) $(BIN)/python -m pytest -m machine tests/hosts --numprocesses 2 --dist loadgroup

.PHONY: kill-hosts
kill-hosts: build ## workers, agents, hosts, links and the scheduler go at KILLS=30 random moments: what is left? (root, about 25 min); SEED=N for the same ones again
	KILLS=$(or $(KILLS),30) SEED=$(SEED) $(BIN)/python -m pytest -q -s tests/hosts/kill_hosts.py

# ---- benchmarks and longer tests, none of them needed by the study ------------------------------------------------

JDK25 = JAVA_HOME="$$($(BIN)/python -c 'from kvstudy.subject.jdk import find_jdk; print(find_jdk().home)')"
# What measures speeds keeps the processors awake, as a run of the study does.
AWAKE = $(BIN)/python -m kvstudy.measure.awake
ROUNDS ?= 100
# No single test of `make test` may take 15 minutes; a campaign may.
UNBOUNDED = -Djunit.jupiter.execution.timeout.mode=disabled
MINUTES ?= 20
HISTORIES ?= 64
OPERATIONS ?= 160000

bench-engine: build ## the store beside RocksDB in process, alternating rounds (about 5 min); BESIDE=JAR (about 10 min): beside another build's instead
	$(JDK25) $(AWAKE) $(if $(BESIDE),$(BIN)/python service/bench/bench_engine_beside.py --beside $(BESIDE),service/bench/bench_engine.sh)

engine-costs: build ## amplification, heap per entry and recovery of the store, with a heap of 128 MB
	$(JDK25) $(AWAKE) service/bench/bench_engine.sh costs

soundness: setup ## simulations of every rule: how often does it say something false? (under 10 min) WRITE=FILE renews the table in it, ONLY=tail one rule
	$(BIN)/python tests/soundness/run.py $(if $(ONLY),--only $(ONLY)) $(if $(WRITE),--write $(WRITE))

tail-causes: build ## plant three causes of slow answers in real runs: is each one named? (about 13 min, on a quiet machine)
	$(BIN)/python -m pytest -q -s tests/planted/tail_causes.py

duet-power: build ## real duets of nothing and of planted changes: which words are said? (4 h: CHANGED=5 of each change, UNCHANGED=10 of nothing, of GET and of PUT; BUSY=1: of nothing, while you work here); goes on from tests/planted/duet-power.jsonl
	$(BIN)/python tests/planted/duet_power.py --changed $(or $(CHANGED),5) --unchanged $(or $(UNCHANGED),10) --within $(WITHIN) $(if $(ONLY),--only $(ONLY)) $(if $(BUSY),--busy) --write tests/planted/duet-power.md

independent-runs: build ## how wide is a duet's interval beside that of independent runs of the same hour and as much time? (1 h; EACH=3 of GET and of PUT); goes on from tests/planted/independent-runs.jsonl
	$(BIN)/python tests/planted/independent_runs.py --each $(or $(EACH),3) --write tests/planted/independent-runs.md

violations: build ## real runs made to break each rule of validity: does each check notice? (about 1 min)
	$(BIN)/python -m pytest -q -s tests/planted/violations.py

bench-analysis: setup ## 1 000 and 10 000 run folders to tables, ten more, and all figures, time and memory beside the goals (links to the sealed runs that are there)
	$(BIN)/python tests/bench/analysis.py

bench-scaling: build ## a plan of 10 000 runs, a scheduler with 100 idle workers, 100 results made one (under 3 min); writes docs/results/2026-11-25-scaling.md
	$(BIN)/python tests/bench/scaling.py --write docs/results/2026-11-25-scaling.md

.PHONY: bench-hosts
bench-hosts: build ## what hosts cost beside goals: when generators begin, how soon the first launch is, an idle worker, one host through Dask (root, about 20 min, quiet; ROUNDS=10); ONLY=one: that alone
	$(AWAKE) $(BIN)/python tests/hosts/hosts_cost.py --rounds $(if $(filter command line,$(origin ROUNDS)),$(ROUNDS),10) $(if $(ONLY),--only $(ONLY))

bench-awake: build ## what sleeping processors cost: response times of a null server, and what the machine's host takes (about 1.5 min)
	$(BIN)/python tests/bench/awake.py

bench-loadgen: build ## the load generator: accuracy, speed and cost beside a bare waiting loop and wrk (2 min a round, ROUNDS=5); ONLY=slack: the cases whose names hold that
	$(AWAKE) $(BIN)/python loadgen/bench/bench.py --rounds $(if $(filter command line,$(origin ROUNDS)),$(ROUNDS),5) $(if $(ONLY),--only "$(ONLY)")

# Where a duet is measured, BESIDE is a jar of another build, or a revision, which is built.
CONNECTIONS ?= 1 16 64

bench-service: build ## PUT and GET beside one-nio with an empty handler, closed loop, a duet for each of CONNECTIONS="1 16 64" (about 7 min each); BESIDE=JAR: beside another build instead
	@for connections in $(CONNECTIONS); do echo "$$connections connections"; \
	  $(KVSTUDY) compare service/bench/bench-service.yaml --only connections=$$connections --markdown \
	    $(if $(BESIDE),--builds $(BESIDE) . --only subject=kv-service); done

.PHONY: bench-values
bench-values: build ## MB/s of PUT and GET of 1 KiB to 1 MiB beside an empty handler that takes and gives as many bytes: a duet for each of SIZES="kib-1 kib-10 kib-100 mib-1" (about 4 min each)
	@for size in $(or $(SIZES),kib-1 kib-10 kib-100 mib-1); do echo "$$size"; \
	  $(KVSTUDY) compare service/bench/bench-values.yaml --preset $$size --markdown; done

bench-short-turns: build ## what short turns on the processor gain a selector while flush and compaction run: a duet of the service beside itself without (at most 10 min)
	$(KVSTUDY) compare service/bench/bench-short-turns.yaml --markdown

bench-socket-calls: build ## what calling send and recv directly gains: a duet of the service beside itself without (at most 10 min, and a minute to fill)
	$(KVSTUDY) compare service/bench/bench-socket-calls.yaml --markdown

bench-stalled: build ## p99 of GET while writers are stalled, and while checkpoints are made; fails at 5 ms (1 min)
	$(AWAKE) $(BIN)/python service/bench/bench_stalled.py
	$(AWAKE) $(BIN)/python service/bench/bench_stalled.py --checkpoints

.PHONY: bench-synced
bench-synced: build ## how long GETs wait for syncs of other connections' writes with --wal always, by handler (about 3 min)
	$(AWAKE) $(BIN)/python service/bench/bench_synced.py

bench-redis: build ## PUT and GET beside SET and GET of Redis (needs redis-server), closed loop, alternating rounds (about 4 min); SYNC=always: every write is synced before its answer
	$(AWAKE) $(BIN)/python service/bench/bench_redis.py $(if $(SYNC),--sync $(SYNC))

bench-tail: build ## p99.9 at half the saturation rate while flush and compaction run, a duet beside the same without them (about 14 min); BESIDE=JAR: a second one, beside another build
	$(BIN)/python service/bench/bench_tail.py $(if $(BESIDE),--beside $(BESIDE))

.PHONY: bench-pauses
bench-pauses: build ## pauses of the JVM and bytes per request at 50 000/s mixed with a heap of 128 MB (about 7 min a collector); GC="Serial G1 Z": which, the first has to meet the goals; SECONDS=300
	$(AWAKE) $(BIN)/python service/bench/bench_pauses.py $(if $(GC),--gc $(GC)) $(if $(SECONDS),--seconds $(SECONDS))

.PHONY: bench-larger-than-memory
bench-larger-than-memory: build ## GET where tables are larger than the memory group of the service, by way of reading (about 6 min, needs root); FULL=1: 40 million records in 1 GiB (about 40 min); BESIDE=JAR: another build takes turns too; ROCKSDB=1: RocksDB behind the same front, too
	$(AWAKE) $(BIN)/python service/bench/bench_larger_than_memory.py $(if $(FULL),--records 40000000 --memory 1g --heap 128m --warm-up 30 --seconds 20) $(if $(BESIDE),--beside $(BESIDE)) $(if $(ROCKSDB),--rocksdb --only default)

.PHONY: bench-scale
bench-scale: build ## a hundred million records beside a million: fill, GET, start, memory and writing of each record (about 20 min, 26 GB of disk); RECORDS=N
	$(AWAKE) $(BIN)/python service/bench/bench_scale.py $(if $(RECORDS),--records $(RECORDS))

kill-service: setup ## SIGKILL under load, in openings and in closings, ROUNDS=100 times, random options, every acknowledged write checked (about 5 min)
	$(JDK25) mvn -q -B -f service/pom.xml test $(UNBOUNDED) -Dtest=KillTest -Dkv.kill.rounds=$(ROUNDS)

failures: setup ## every call of every opening and closing, of 19 states and 4 log modes, meets 7 kinds of trouble (about 5 min)
	$(JDK25) mvn -q -B -f service/pom.xml test $(UNBOUNDED) -Dtest=EveryOpeningTest,EveryFailureTest,BatchAtomicityTest -Dkv.failures=all

metamorphic: setup ## HISTORIES=64 of OPERATIONS=160000 random operations with restarts and failing disks, against a sorted map (about 30 min)
	$(JDK25) mvn -q -B -f service/pom.xml test $(UNBOUNDED) -Dtest=MetamorphicTest -Dkv.rounds=$(HISTORIES) -Dkv.operations=$(OPERATIONS)
fuzz-service: setup ## REQUESTS=1000000 random and damaged requests over real connections, every answer checked (about 5 min); SEED=N for the same ones again
	$(JDK25) mvn -q -B -f service/pom.xml test $(UNBOUNDED) -Dtest=HttpFuzzTest -Dkv.fuzz.requests=$(or $(REQUESTS),1000000) $(if $(SEED),-Dkv.fuzz.seed=$(SEED))

hostile-service: setup ## 200 unread ranges, 10 000 idle connections, large values through the cache and a fast writer at once, with a heap of 128 MB: p99 of GET
	$(JDK25) mvn -q -B -f service/pom.xml test $(UNBOUNDED) -Dtest=HostileClientsTest -Dkv.hostile.full=true

bench-value-size: build ## latency of PUT and GET from 1 KiB to 1 MiB; fails when a size is out of line with the others (about 1 min)
	$(AWAKE) $(BIN)/python service/bench/bench_value_size.py $(if $(HANDLER),--handler $(HANDLER))

soak-service: build ## MINUTES=20 of mixed load on 10 million records with a heap of 128 MB
	$(BIN)/python service/bench/soak.py --minutes $(MINUTES)

soak-engine: build ## MINUTES=20 of mixed load on the store in process, every answer checked, with a heap of 128 MB
	$(JDK25) service/bench/bench_engine.sh soak --minutes $(MINUTES)

# ---------------------------------------------------------------------------------------------------------------------------

clean: ## remove builds, tables, filled stores and figures/study; data/raw, figures/NAME and .venv stay
	rm -rf service/target loadgen/target data/tidy data/work figures/study build *.egg-info
