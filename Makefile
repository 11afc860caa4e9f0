# `make run` shows it, `make test` tests it. Nothing else needs to be set up first.

.PHONY: run test test-fast test-e2e lint generate bench

## Build, make a development certificate, start the server, and show what a person sees of three requests
run:
	cargo build
	cargo run --quiet --example demo

## Everything, the end-to-end tests against a real kube-apiserver included
test: test-fast test-e2e

## Everything but the end-to-end tests
test-fast:
	cargo test --locked

## The end-to-end tests: with KUBEBUILDER_ASSETS, or with a kube-apiserver that Go builds once
test-e2e:
	cargo test --locked --test e2e

## Formatting, lints, and, where cargo-deny is installed, licences and advisories
lint:
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	@if cargo deny --version >/dev/null 2>&1; then cargo deny check; \
	else echo "cargo-deny is not installed: licences and advisories were not checked (cargo install cargo-deny)"; fi

## Write what is derived from the rules: their pages, webhook-config/
generate:
	cargo run --quiet -- rules --write docs/rules
	cargo run --quiet -- manifests --out webhook-config
	cargo run --quiet -- manifests --chart --out charts/portcullis/templates

## CPU per request against a floor, and memory; the table goes into docs/performance.md
bench:
	cargo bench --locked --bench admission -- --write
