# Every target installs what it needs (tests/setup.sh) and does nothing twice. `make` alone lists them.

CARGO ?= cargo
, := ,

.PHONY: help build man deb demo test test-clients test-package soak fuzz bench bench-agreement bench-core bench-side-by-side scenario-openresty footprint reliability subscribers instructions \
        instructions-record lint fmt deny docs setup clean
.DEFAULT_GOAL := help

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-20s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## the optimised program: target/release/shardwise
	$(CARGO) build --release --locked

man: build ## manual page and shell completions, from the program's own options: target/man, target/completions
	mkdir -p target/man target/completions
	target/release/shardwise man >target/man/shardwise.1
	target/release/shardwise completions bash >target/completions/shardwise.bash
	target/release/shardwise completions zsh >target/completions/_shardwise
	target/release/shardwise completions fish >target/completions/shardwise.fish

deb: man ## the Debian package: target/debian/*.deb; builds cargo-deb first if need be (minutes)
	command -v cargo-deb >/dev/null || $(CARGO) install cargo-deb --locked
	$(CARGO) deb --no-build

test-package: deb ## installs the package on a copy of this system with systemd as process 1, runs, reloads, upgrades, removes, purges it (root)
	tests/setup.sh package
	tests/package.sh "$$(ls -t target/debian/*.deb | head -1)"

demo: ## four shards, where keys go, and a benchmark side by side with Redis and nutcracker (2 minutes)
	tests/setup.sh demo
	$(CARGO) build --release --locked
	python3 benches/demo.py

test: ## unit, property and layer tests, real servers, a smoke test of each client library
	tests/setup.sh test
	$(CARGO) test --locked --no-fail-fast
	$(CARGO) test --locked --benches

test-clients: ## every test of every client library and of applications on them (docs/clients.md), of redis_exporter, promtool and a browser, and a small run of the OpenResty scenario
	tests/setup.sh test
	tests/setup.sh clients
	tests/setup.sh operating
	$(CARGO) test --locked --test clients --test clients_table --test operating -- --include-ignored --nocapture --test-threads=1
	tests/setup.sh openresty
	python3 benches/openresty.py --binary target/debug/shardwise --short 500 --pooled 2000

soak: ## 100,000 simulated runs, chaos for ten minutes with 5 million answers, 100 reloads under load
	tests/setup.sh test
	SIM_SEEDS=$(or $(SOAK_SEEDS),100000) $(CARGO) test --locked --test sim -- --nocapture
	CHAOS_SECONDS=$(or $(SOAK_SECONDS),600) CHAOS_CLIENTS=300 CHAOS_ANSWERS=$(or $(SOAK_ANSWERS),5000000) \
	  $(CARGO) test --locked --test chaos -- --nocapture
	SHARDWISE_SOAK=1 $(CARGO) test --locked --test proxy -- under_load

fuzz: ## looks for inputs that break the fuzz targets, FUZZ_SECONDS=60 each (needs a nightly toolchain and cargo-fuzz)
	@$(CARGO) +nightly --version >/dev/null 2>&1 || { echo "make fuzz: no nightly toolchain: rustup toolchain install nightly"; exit 1; }
	@$(CARGO) +nightly fuzz --version >/dev/null 2>&1 || { echo "make fuzz: no cargo-fuzz: cargo install cargo-fuzz"; exit 1; }
	for target in requests replies config calls folds; do \
	  mkdir -p fuzz/corpus/$$target && \
	  $(CARGO) +nightly fuzz run -s none $$target fuzz/corpus/$$target tests/fuzz/corpus/$$target -- \
	    -max_total_time=$(or $(FUZZ_SECONDS),60) -max_len=4096 -timeout=10 || exit 1; \
	done

reliability: ## figures of docs/reliability.md: thousands of clients, floods, a huge value, a stopped server (10 minutes)
	tests/setup.sh demo
	$(CARGO) build --release --locked
	python3 benches/reliability.py $(OPTIONS)

bench: ## writes docs/benchmarks.md: Redis, shardwise, nutcracker, Envoy (up to an hour; SCALE=0.01: a minute)
	tests/setup.sh bench
	$(CARGO) build --release --locked
	python3 benches/benchmarks.py --scale $(or $(SCALE),1) $(OPTIONS)

bench-agreement: ## whether `shardwise bench` and redis-benchmark say the same of one target (2 minutes)
	tests/setup.sh demo
	$(CARGO) build --release --locked
	python3 benches/agreement.py $(OPTIONS)

bench-core: ## micro-benchmarks of the pure core (criterion)
	$(CARGO) bench --locked

scenario-openresty: ## nginx with Lua under ab, direct and through shardwise; SIZE=large: up to a million requests
	tests/setup.sh openresty
	$(CARGO) build --release --locked
	python3 benches/openresty.py $(if $(filter large,$(SIZE)),--rounds 3 --short 5000$(,)10000$(,)20000$(,)40000 --pooled 1000000) $(OPTIONS)

subscribers: ## 10,000 subscribers of one channel, ten of which stop reading (a minute)
	tests/setup.sh demo
	$(CARGO) build --release --locked
	python3 benches/subscribers.py $(OPTIONS)

instructions: ## instructions of the pure core, under callgrind: fails if a piece needs 10% more than recorded
	tests/setup.sh instructions
	python3 benches/instructions.py

instructions-record: ## records them anew
	tests/setup.sh instructions
	python3 benches/instructions.py --record

bench-side-by-side: ## CPU per request beside nutcracker, nine workloads (20 minutes); OPTIONS='--rounds 5'
	tests/setup.sh demo
	$(CARGO) build --release --locked
	python3 benches/side_by_side.py $(OPTIONS)

footprint: ## memory at rest and per client, time from the start to the first answer
	tests/setup.sh demo
	$(CARGO) build --release --locked
	python3 benches/footprint.py

lint: ## formatting and clippy, warnings are errors
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings

deny: ## licences, sources and bans of all dependencies; builds cargo-deny first if need be (minutes)
	command -v cargo-deny >/dev/null || $(CARGO) install cargo-deny --locked
	$(CARGO) deny check bans licenses sources

fmt: ## formats the sources
	$(CARGO) fmt

docs: ## writes again what docs/ takes from the sources' tables
	UPDATE_DOCS=1 $(CARGO) test --locked --tests docs

setup: ## installs what the tests need: apt-get, pip, npm
	tests/setup.sh test

clean: ## removes what was built and installed inside this folder
	$(CARGO) clean
	rm -rf .venv .venv-* tests/clients/node/node_modules
