# Every target sets up what it needs; `make test` is what CI runs.
CARGO ?= cargo
STUDY ?= studies/calendar.study.yaml
SPEED ?= 60
TIMES ?= 10
DUTY ?= 60
SEED ?= 1
KILLS ?= 1000
FAULTS ?= 1000
AT_ONCE ?= 6
CRASHES ?= 1000
ALIKE ?= studies/self.study.yaml
SECONDS ?= 60
KNOWN ?= 20

.PHONY: abuse alike known explained browser nats test test-disturbed fmt lint tests measure bench crashes faults faults-store kills demo deny fuzz help deb crashes-server

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 16

test: fmt lint tests ## formatting, lints, docs, tidy, and all tests
	@echo "all checks passed"

fmt:
	$(CARGO) fmt --all --check

# What is built to be tested is linted and documented as it is built, and is compiled in whole crates and without lines
# for debuggers, for a quarter of the CPU time less; where a panic was is told anyway. What `cargo test` builds stands
# beside it.
lint tests test-disturbed: export RUSTC_WORKSPACE_WRAPPER = $(CURDIR)/tests/checked.sh
lint tests test-disturbed: export CARGO_INCREMENTAL ?= 0
lint tests test-disturbed: export CARGO_PROFILE_DEV_DEBUG ?= 0
# Properties are tried with the same inputs each time, so that no change fails for a fault that was there before; further
# seeds, and PROPTEST_CASES, look for those.
tests test-disturbed: export PROPTEST_RNG_SEED ?= $(SEED)

lint: ## builds all there is by the linter, and the documentation in target/doc; a warning is an error
	$(CARGO) build --workspace --all-targets --locked

# The whole-product tests start the real program, which is built with the tests. Tidy is one of the tests.
tests: browser nats
	$(CARGO) run --locked --quiet --example programs -- --workspace --locked

test-disturbed: browser nats ## the tests, TIMES times, while DUTY % of each core is taken; goes on where Ctrl-C ended it; hours
	$(CARGO) test --workspace --locked --no-run
	target/debug/disturbed --times 1 --duty $(DUTY) --seed $(SEED) \
	  $(CARGO) run --locked --quiet --example programs -- \
	  --times $(TIMES) --kept target/disturbed/$(DUTY)-$(SEED) --workspace --locked

abuse: ## all abuse in full on the released program, the neighbour's times judged: minutes, a quiet machine
	$(CARGO) test --release --locked --package plimsoll-tests --test abuse -- --full

alike: ## 20 studies of a server beside itself (ALIKE=STUDY SPEED=N): at most one may tell them apart; hours
	$(CARGO) run --release --locked --package plimsoll-tests --bin alike -- --seed $(SEED) $(ALIKE) --speed $(SPEED)

known: ## KNOWN (20) times beside programs that come and go: how many duets, and sequences, find 5 % more work; hours
	$(CARGO) build --release --locked --package plimsoll --package plimsoll-tests
	target/release/disturbed --times 1 --nice 0 --duty 40 --drift 8 --span 20 --seed $(SEED) \
	  target/release/duets --times $(KNOWN) --seed $(SEED) --set checks.other_programs=100% --patience 0

explained: ## KNOWN (20) studies of forty functions: how often profiles name the one that differs, and nothing else; an hour, root
	$(CARGO) build --release --locked --package plimsoll --package plimsoll-tests
	target/release/explained --times $(KNOWN) --seed $(SEED) --set checks.other_programs=100% --patience 0

browser: ## install the browser that tests of the pages drive, where that is possible
	@tests/browser.sh

nats: ## install the server that tests of agents meet at, where that is possible
	@tests/nats.sh

demo: ## run the calendar study at 60 times real speed and print where its report is
	$(CARGO) run --release --locked -- run $(STUDY) --speed $(SPEED)

measure: ## whether measured times are the true ones, over real sockets; says where it can't tell
	$(CARGO) run --release --locked --quiet --package plimsoll-bench --bin plimsoll-measure

crashes: ## CRASHES (1,000) seeded crashes of a disk that forgets, for each that keeps something (SEED=N for others)
	PLIMSOLL_CRASHES=$(CRASHES) PLIMSOLL_SEED=$(SEED) $(CARGO) test --locked --package plimsoll-forgetful -- survive nothing_acknowledged errors_of the_log_leads

crashes-server: ## as many of the whole server alone, under a load of all services; says how far it is
	PLIMSOLL_CRASHES=$(CRASHES) PLIMSOLL_SEED=$(SEED) $(CARGO) test --locked --package plimsoll-forgetful --test server -- --nocapture survives

faults: ## FAULTS (1,000) faults by a seed against trials that AT_ONCE (6) fleets drive; goes on where Ctrl-C ended it, and tells a complete one again (SEED=N for others); an hour
	PLIMSOLL_FAULTS=$(FAULTS) PLIMSOLL_SEED=$(SEED) PLIMSOLL_AT_ONCE=$(AT_ONCE) \
	  PLIMSOLL_FAULTS_KEPT=$(CURDIR)/target/faults/$(FAULTS)-$(SEED).jsonl \
	  $(CARGO) test --locked --package plimsoll-tests --test faults

faults-store: ## FAULTS (1,000) faults by a seed against servers over PostgreSQL; then what it relies on is taken away
	$(CARGO) test --locked --package groupware-postgres --test storm --no-run
	PLIMSOLL_FAULTS=$(FAULTS) PLIMSOLL_SEED=$(SEED) $(CARGO) test --locked --package groupware-postgres --test storm
	for it in marker locks standby; do PLIMSOLL_WITHOUT=$$it PLIMSOLL_FAULTS=8 PLIMSOLL_SEED=$(SEED) \
	  $(CARGO) test --locked --package groupware-postgres --test storm || exit 1; done

kills: ## KILLS times (1,000) kill -9 on the server under a load of all services
	PLIMSOLL_KILLS=$(KILLS) $(CARGO) test --locked --package plimsoll-tests --test kills -- --nocapture

bench: ## the measurer measured, and side-by-side benchmarks against peers, as ratios
	bench/run.sh

deb: ## a Debian package in target/debian: the program, man pages, completions, units of systemd
	CARGO="$(CARGO)" packaging/deb.sh

deny: ## licences, bans, advisories (needs cargo-deny)
	$(CARGO) deny check

fuzz: ## every fuzz target for SECONDS (60): no input breaks it, or costs too much (needs a C++ compiler)
	fuzz/run.sh $(SECONDS)
