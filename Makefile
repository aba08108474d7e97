# Each target builds or installs what it needs. CI runs `make test`.
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

test: fmt lint tests ## check the formatting, lints, documentation, and tidy rules; run all tests
	@echo "all checks passed"

fmt:
	$(CARGO) fmt --all --check

# The wrapper lints and documents each crate while cargo compiles it for the tests. The crates are compiled whole and
# without debug information, which saves a quarter of the CPU time; a panic message still names its place. The files
# that a plain `cargo test` builds are kept beside these.
lint tests test-disturbed: export RUSTC_WORKSPACE_WRAPPER = $(CURDIR)/tests/checked.sh
lint tests test-disturbed: export CARGO_INCREMENTAL ?= 0
lint tests test-disturbed: export CARGO_PROFILE_DEV_DEBUG ?= 0
# Property tests use the same inputs each time, so that a change does not fail because of an older fault. To search for
# such faults, set another SEED or PROPTEST_CASES.
tests test-disturbed: export PROPTEST_RNG_SEED ?= $(SEED)

lint: ## lint all crates, and write the documentation to target/doc; a warning is an error
	$(CARGO) build --workspace --all-targets --locked

# The whole-product tests start the real program, which cargo builds with the tests. The tidy rules are a test, too.
tests: browser nats
	$(CARGO) run --locked --quiet --example programs -- --workspace --locked

test-disturbed: browser nats ## run the tests TIMES (10) times while another program uses DUTY % of each core; resumes after Ctrl-C; hours
	$(CARGO) test --workspace --locked --no-run
	target/debug/disturbed --times 1 --duty $(DUTY) --seed $(SEED) \
	  $(CARGO) run --locked --quiet --example programs -- \
	  --times $(TIMES) --kept target/disturbed/$(DUTY)-$(SEED) --workspace --locked

abuse: ## run the full abuse tests on the release build, and judge other users' response times; minutes, an idle machine
	$(CARGO) test --release --locked --package plimsoll-tests --test abuse -- --full

alike: ## compare a server with itself in 20 studies (ALIKE=STUDY SPEED=N): at most one may report a difference; hours
	$(CARGO) run --release --locked --package plimsoll-tests --bin alike -- --seed $(SEED) $(ALIKE) --speed $(SPEED)

known: ## run KNOWN (20) studies under varying background load: count duets, and sequences, that detect 5 % more work; hours
	$(CARGO) build --release --locked --package plimsoll --package plimsoll-tests
	target/release/disturbed --times 1 --nice 0 --duty 40 --drift 8 --span 20 --seed $(SEED) \
	  target/release/duets --times $(KNOWN) --seed $(SEED) --set checks.other_programs=100% --patience 0

explained: ## run KNOWN (20) studies of forty functions: count how often profiles name only the function that differs; an hour, root
	$(CARGO) build --release --locked --package plimsoll --package plimsoll-tests
	target/release/explained --times $(KNOWN) --seed $(SEED) --set checks.other_programs=100% --patience 0

browser: ## install the browser for the tests of the pages, if possible
	@tests/browser.sh

nats: ## install nats-server for the tests of agents, if possible
	@tests/nats.sh

demo: ## run the calendar study at 60 times real speed and print the path of its report
	$(CARGO) run --release --locked -- run $(STUDY) --speed $(SPEED)

measure: ## check over real sockets that measured times are true; reports the cases that it can't decide
	$(CARGO) run --release --locked --quiet --package plimsoll-bench --bin plimsoll-measure

crashes: ## simulate CRASHES (1,000) crashes for each storage component, on a disk that loses unsynced data (SEED=N)
	PLIMSOLL_CRASHES=$(CRASHES) PLIMSOLL_SEED=$(SEED) $(CARGO) test --locked --package plimsoll-forgetful -- survive nothing_acknowledged errors_of the_log_leads

crashes-server: ## simulate CRASHES (1,000) crashes of the whole server under a load of all services; reports progress
	PLIMSOLL_CRASHES=$(CRASHES) PLIMSOLL_SEED=$(SEED) $(CARGO) test --locked --package plimsoll-forgetful --test server -- --nocapture survives

faults: ## inject FAULTS (1,000) faults into trials that AT_ONCE (6) fleets drive (SEED=N); resumes after Ctrl-C; an hour
	PLIMSOLL_FAULTS=$(FAULTS) PLIMSOLL_SEED=$(SEED) PLIMSOLL_AT_ONCE=$(AT_ONCE) \
	  PLIMSOLL_FAULTS_KEPT=$(CURDIR)/target/faults/$(FAULTS)-$(SEED).jsonl \
	  $(CARGO) test --locked --package plimsoll-tests --test faults

faults-store: ## inject FAULTS (1,000) faults into servers over PostgreSQL (SEED=N); then disable each safeguard and expect a failure
	$(CARGO) test --locked --package groupware-postgres --test storm --no-run
	PLIMSOLL_FAULTS=$(FAULTS) PLIMSOLL_SEED=$(SEED) $(CARGO) test --locked --package groupware-postgres --test storm
	for it in marker locks standby; do PLIMSOLL_WITHOUT=$$it PLIMSOLL_FAULTS=8 PLIMSOLL_SEED=$(SEED) \
	  $(CARGO) test --locked --package groupware-postgres --test storm || exit 1; done

kills: ## kill the server KILLS (1,000) times with SIGKILL under a load of all services
	PLIMSOLL_KILLS=$(KILLS) $(CARGO) test --locked --package plimsoll-tests --test kills -- --nocapture

bench: ## check the measuring program, then run side-by-side benchmarks against peers, as ratios
	bench/run.sh

deb: ## build a Debian package in target/debian: the program, man pages, completions, systemd units
	CARGO="$(CARGO)" packaging/deb.sh

deny: ## check licences, banned crates, and advisories (needs cargo-deny)
	$(CARGO) deny check

fuzz: ## run each fuzz target for SECONDS (60); an input that crashes it or costs too much fails (needs a C++ compiler)
	fuzz/run.sh $(SECONDS)
