# Two commands do everything: `cargo run --release` starts the server, `make test` passes the tests.
# Whatever a target needs beyond Rust it installs by itself, once.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/anabranch
export CARGO_TARGET_DIR ?= $(CACHE)/target
export CARGO_TERM_COLOR ?= auto

.PHONY: help test format lint docs unit sim fuzz conformance bench tools clean

help: ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

test: format lint docs unit ## formatting, lints, documentation and all tests (15 minutes at most)

format: ## check the formatting
	cargo fmt --all --check

lint: ## clippy, with warnings as errors
	cargo clippy --workspace --all-targets --all-features --locked -- -D warnings

docs: ## rustdoc, with warnings as errors
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --all-features --locked --quiet

unit: tools ## every test of the workspace
	cargo nextest run --workspace --all-features --locked
	cargo test --workspace --all-features --locked --doc --quiet

sim: ## many more seeds of the simulation of leases (SEEDS=20000)
	ANABRANCH_SIM_SEEDS=$(or $(SEEDS),20000) cargo nextest run -p anabranch-consumer --all-features --locked --test simulation

fuzz: ## the parsers of the protocols under damaged requests for longer (FUZZ_SECONDS=600, FUZZ_SEED)
	FUZZ_CASES=$(or $(FUZZ_CASES),100000000) FUZZ_SECONDS=$(or $(FUZZ_SECONDS),600) FUZZ_SEED=$(or $(FUZZ_SEED),$(shell date +%s)) \
		cargo test -p anabranch-wire --all-features --locked --test fuzz -- --nocapture damaged

conformance: ## slow suites from outside: the README's commands, and clients of AWS that others wrote
	conformance/run

bench: ## the figures of docs/performance.md
	cargo run --release --locked --quiet -- bench append
	cargo run --release --locked --quiet -- bench read
	cargo run --release --locked --quiet -- bench follow
	cargo run --release --locked --quiet -- bench open
	cargo run --release --locked --quiet -- bench queue
	cargo run --release --locked --quiet -- bench table
	cargo run --release --locked --quiet -- bench blob
	cargo run --release --locked --quiet -- bench produce
	cargo run --release --locked --quiet -- bench scale
	cargo run --release --locked --quiet -- bench telemetry
	cargo run --release --locked --quiet -- bench cdc
	cargo run --release --locked --quiet -- bench consumer
	cargo run --release --locked --quiet -- bench aws
	bench/peers

tools:
	@tools/install

clean: ## remove build output
	rm -rf "$(CARGO_TARGET_DIR)"
