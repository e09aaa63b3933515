# The front door. Nothing has to be done first on a machine with the Rust toolchain.

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c

# The steps of `test` stand in an order, whatever -j says.
.NOTPARALLEL:
.PHONY: run release reproduce test bench bench-instructions bench-growth bench-shell foreign hostile storm interop cuts advice advice-cuts soak fuzz mutants package format lint docs unit elsewhere against python notebooks wheel site

# What each retransmission policy does to a download over a fast path with a slow one beside it. The profile `quick` builds
# in half the time of `release`, and shows what it builds.
run:
	cargo run --profile quick --package anabranch -- run scenarios/headline.toml \
		--vary flow.download.sctp.retransmit=same,alternate,timeout-alternate

# The fastest program, target/profile-guided/anabranch: built by a profile that the scenarios and UDP make (needs rustup's component llvm-tools; without it
# a plain release build), and laid out anew by a second profile if BOLT is installed (Debian package bolt-19).
release:
	bench/release

# What the papers say, beside what comes out; fails if any claim comes otherwise than expected.
reproduce:
	cargo run --profile quick --package anabranch -- reproduce

# Everything that must hold. The tests come last, so that their results are the last lines. With a feature that is off by default:
# make test FEATURES=anabranch/parquet
features = $(if $(FEATURES),--features $(FEATURES))
test: format lint docs unit

# What things cost: a data packet in the core, a packet in the codec, a gigabyte of messages beside another
# stack, a gigabyte on simulated links beside ns-2, and a gigabyte over UDP beside usrsctp. Prints each figure beside what is asked, with
# the command that repeats it, and adds it to bench/history.csv.
bench:
	bench/all

# What becomes dearer as a simulation grows: flows, short runs, associations. Some minutes; instructions need valgrind.
bench-growth:
	bench/growth

# What packets of real programs meet in `anabranch shell`: delay, rate, loss, the kernel's TCP, the most that a link carries, and ten transfers
# beside their simulations. For root, on a quiet machine; five minutes.
bench-shell:
	cargo build --profile quick --package anabranch
	bench/shell.py target/quick/anabranch

# Instructions a data packet, beside those recorded in bench/instructions.csv: fails above 3 % more. Needs valgrind.
bench-instructions:
	bench/instructions

# Beside other people's stacks, dcsctp, (with Debian's libusrsctp-dev and a C compiler) usrsctp and (with user-mode-linux, for root)
# the Linux kernel: every row of a matrix, with the peer in both roles. About nine minutes with its build; writes docs/interop.md if everything ran.
interop:
	cargo test --quiet --manifest-path interop/Cargo.toml
	cargo run --quiet --manifest-path interop/Cargo.toml

# Other people's stacks as flows of the simulator, beside ours: tests, and the table of docs/foreign.md. A few minutes with its build.
foreign:
	cargo test --quiet --manifest-path foreign/Cargo.toml
	cargo run --quiet --manifest-path foreign/Cargo.toml -- compare --write docs/foreign.md

# The cut of the link in use of two, ten times each: with usrsctp and with ourselves, over UDP and raw IP, either link, both roles. For root;
# six minutes. The table goes into interop/cuts.md, and from there into docs/interop.md with the next `make interop`.
cuts:
	cargo run --quiet --manifest-path interop/Cargo.toml -- --cuts 10

# Whether advice about failovers holds: 50 random tasks, each checked with seeds that its search has not used. Minutes.
advice:
	cargo run --profile quick --package anabranch -- advise failover --random 50

# The same on a real network: the advised parameters, and CUTS cuts of the link in use, between two hosts in namespaces. For root; four minutes.
CUTS = 50
advice-cuts:
	cargo build --profile quick --package anabranch
	bench/advice-cuts target/quick/anabranch --cuts $(CUTS)

# A hundred random failures of links in the middle of transfers, in network namespaces (for root): minutes.
soak:
	ANABRANCH_CUTS=100 cargo test --package anabranch-net --test networks random_cuts -- --nocapture

# What hostile bytes cost beside full packets in order: processor time a megabyte.
hostile:
	cargo bench --quiet --package anabranch-proto --bench hostile

# Two honest endpoints in a storm of lost, doubled, broken, replayed and mutated packets: make storm PACKETS=10000000
PACKETS ?= 1000000
storm:
	ANABRANCH_STORM=$(PACKETS) cargo test --workspace $(features) --test storm -- --nocapture

# Every fuzz target for so many seconds: make fuzz SECONDS=60
SECONDS ?= 60
fuzz:
	fuzz/run $(SECONDS)

# Changes the core line by line: the packet scripts and the other fast tests must notice. Under an hour; needs
# cargo-mutants. A part of it: tests/mutants/run --shard 0/8
mutants:
	tests/mutants/run

# Whether the program compiles for macOS and Windows, and whether a program for Windows, under wine, passes the packet scripts and computes
# the same bits: a quarter of an hour.
elsewhere:
	tests/elsewhere/run

# How far `explain --against` can be trusted: captures of random runs, each beside its own settings, and with one key changed.
against:
	tests/against/run own 300
	tests/against/run changed 320

# The Python package (docs/python.md): builds it into a virtual environment below target/, checks types and stubs, and tests it.
python:
	py/run

# Executes a notebook for each publication, which redraws its figures.
notebooks:
	py/run notebooks

# A wheel for this platform in target/wheels, tried in an empty virtual environment.
wheel:
	py/run wheel

# One static site in target/site: README, guides, every publication with its report, and the API documentation. A draft of it:
# make site PAPERS=receive-buffer-blocking SEEDS=1
PAPERS ?= $(notdir $(patsubst %/paper.toml,%,$(wildcard papers/*/paper.toml)))
TARGET := $(or $(CARGO_TARGET_DIR),target)
SITE := $(TARGET)/site
site:
	CARGO_TARGET_DIR=$(TARGET)/site-build cargo run --quiet --manifest-path site/Cargo.toml -- . $(SITE)
	cargo build --profile quick --package anabranch
	for paper in $(PAPERS); do \
		$(TARGET)/quick/anabranch reproduce "papers/$$paper" $(if $(SEEDS),--seeds $(SEEDS)) \
			--report "$(SITE)/papers/$$paper/report.html" --home index.html --force >/dev/null || [ $$? -eq 1 ]; \
	done
	cargo doc --workspace --no-deps --quiet
	rm -rf $(SITE)/api && cp -r $(TARGET)/doc $(SITE)/api
	@echo "The site begins at $(SITE)/index.html"

# Whether every crate could be published: each is packed with what it needs, and its dependencies are found.
package:
	cargo publish --workspace --dry-run --no-verify --allow-dirty

format:
	cargo fmt --all --check

lint:
	cargo clippy --workspace --all-targets $(features) -- -D warnings

docs:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps $(features)

# A test that needs a tool which is missing says `skipped: NAME: why`; with ANABRANCH_REQUIRE=all it fails.
unit:
	@log=$$(mktemp); trap 'rm -f "$$log"' EXIT; status=0; \
	cargo test --workspace $(features) --no-fail-fast 2>&1 | tee "$$log" || status=$$?; \
	.ci/summary "$$log"; exit $$status
