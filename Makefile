# What can be done with this repository? `make help` lists it.
#
# Every target sets up what it needs (scripts/setup.sh). Recipes longer than a few lines are in
# scripts/.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Words for the program that `make up` or `make bench` starts: make up ARGS="--workers 5 --fast"
ARGS ?=

.PHONY: help up test cluster-api sim mutants lint audit bench page page-test crds webhooks manifests docs reference tools venv clean clean-cache

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: ## Start a whole cluster on this machine (ARGS="..." go to `machinist up`); Ctrl-C removes it
	@scripts/up.sh $(ARGS)

test: ## Lint, then run every test; prints the minutes of each stage
	@scripts/test.sh

cluster-api: ## Run only the tests with Cluster API's own provider and core manager
	@scripts/setup.sh c rust go
	@scripts/with-environment.sh tools/build.sh capi
	@scripts/with-environment.sh cargo build --locked --workspace
	@# One after the other: each has the one in-memory provider that a machine can have.
	@scripts/with-environment.sh cargo test --locked --workspace --test e2e cluster_api -- --include-ignored --skip guide::
	@scripts/with-environment.sh cargo test --locked --workspace --test e2e guide::cluster_api

sim: ## Run the whole system under virtual time, with fixed seeds (ARGS="..." go to `machinist-sim check`)
	@scripts/setup.sh c rust
	@scripts/with-environment.sh scripts/sim.sh check $(ARGS)

mutants: ## Put known bugs into a scratch copy, one at a time, and see the simulator catch each
	@scripts/setup.sh c rust
	@scripts/with-environment.sh scripts/mutants.sh $(ARGS)

lint: ## Check formatting, clippy, the layers of the crates, and cargo-deny's bans, licenses and sources
	@scripts/setup.sh c rust deny
	@scripts/lint.sh

audit: ## Check the dependencies for published advisories (needs the network)
	@scripts/setup.sh c rust deny
	@scripts/audit.sh

bench: ## Run machines from zero to Running and back, and print what it cost (ARGS="..." go to bench/run.sh)
	@scripts/bench.sh $(ARGS)

page: ## Build the page into web/dist, which the operator embeds
	@scripts/setup.sh node
	@scripts/page.sh build

page-test: ## Lint and test the page, in a real browser too; writes its screenshots into docs/page
	@scripts/setup.sh node browser
	@scripts/page.sh build
	@scripts/page.sh test
	@scripts/page.sh screenshots

crds: ## Write deploy/crds anew from the types of crates/api
	@scripts/setup.sh c rust
	@scripts/with-environment.sh env UPDATE=1 cargo test --package machinist-api --test api crds

webhooks: ## Write deploy/webhooks anew from the configurations of crates/core
	@scripts/setup.sh c rust
	@scripts/with-environment.sh env UPDATE=1 cargo test --package machinist-operator --lib goldens

manifests: crds ## Write deploy/openshift anew out of deploy/kustomize
	@scripts/setup.sh c rust go
	@scripts/with-environment.sh env UPDATE=1 cargo test --package machinist-cli --test e2e install::openshift::the_manifests_are

docs: ## Build the site of docs/ into target/docs
	@scripts/setup.sh c rust mdbook
	@scripts/with-environment.sh scripts/docs.sh

reference: ## Write docs/reference and the list of waiting reasons anew from the code
	@scripts/setup.sh c rust
	@scripts/with-environment.sh env UPDATE=1 cargo test --locked --workspace --lib reference
	@scripts/with-environment.sh env UPDATE=1 cargo test --locked --workspace --test docs

tools: ## Build the Go programs of the testbed and the tests into the user's cache folder
	@scripts/setup.sh go
	@scripts/with-environment.sh tools/build.sh kube
	@scripts/with-environment.sh tools/build.sh kwok
	@scripts/with-environment.sh tools/build.sh helm

venv: ## Make the Python environment of the tests (.venv)
	@scripts/setup.sh python
	@scripts/venv.sh

clean: ## Remove what was built in this checkout; the user's cache folder stays
	@if [ -e .machinist/up.json ] && [ -x target/debug/machinist ]; then target/debug/machinist down; fi
	@scripts/with-environment.sh cargo clean
	@rm -rf .venv .machinist web/dist web/.units web/node_modules

clean-cache: ## Remove what all checkouts share in the user's cache folder: Go programs, cargo-deny, mdBook
	@scripts/clean-cache.sh
