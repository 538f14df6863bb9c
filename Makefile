# What people type. `make demo` needs Rust, Python 3 and a C compiler; the rest sets up what it needs by itself.

STATE := $(CURDIR)/.selvedge
# Where cargo builds, wherever the user has it put.
TARGET = $(shell cargo metadata --format-version 1 --no-deps | sed 's/.*"target_directory":"\([^"]*\)".*/\1/')
NEXTEST := $(shell command -v cargo-nextest 2>/dev/null)
DENY := $(shell command -v cargo-deny 2>/dev/null)
# One selection of packages and targets for building and testing: another one would compile much twice.
ALL := --locked --workspace --all-targets
SIM_PLANS ?= 20000
FORKS ?= 10000

.PHONY: demo test bench lint sim forks clean

demo:
	@echo "building the binary (some minutes the first time)"
	cargo build --locked -p selvedge-cli
	@mkdir -p $(STATE)
	@TARGET="$(TARGET)" STATE="$(STATE)" bash scripts/demo.sh

test:
	@bash scripts/test-means.sh
	cargo build $(ALL)
ifdef NEXTEST
	cargo nextest run $(ALL)
else
	cargo test $(ALL)
endif
	cargo test --locked --workspace --doc
	BENCH_RUNS=1 $(TARGET)/debug/bench smoke

# Measurements; `cargo run --release -p selvedge-bench -- W1` and so on run one workload.
bench:
	cargo build --locked --release -p selvedge-bench
	$(TARGET)/release/bench all

lint:
	cargo fmt --all --check
	cargo clippy $(ALL) -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps
ifdef DENY
	cargo deny --locked check
else
	@echo "cargo-deny is not installed: licences and advisories are not checked"
endif

# The simulator over many more plans and workflows than `make test` takes: SIM_PLANS=1000000 make sim
sim:
	SELVEDGE_SIM_PLANS=$(SIM_PLANS) SELVEDGE_SIM_WORKFLOWS=$(SIM_PLANS) cargo test --locked --release -p selvedge-sim --test all -- properties:: workflows::

# Random edits of random documents and messages, each forked, driven to its end and held against a fresh run (E-19, E-29): so many of each kind.
forks:
	SELVEDGE_SIM_FORKS=$(FORKS) cargo test --locked --release -p selvedge-sim --test all -- forks_with_edited workflows_fork agents_fork

clean:
	cargo clean
	rm -rf $(STATE)
