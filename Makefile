# `make run` shows it, `make test` tests it. Nothing else needs to be set up first.

.PHONY: run test test-fast test-registry test-e2e test-systems systems-assets systems-table test-differential differential chaos fuzz lint generate schema book bench overload soak \
	image test-kind chart dist sbom checksums

# What is built, tested and measured here is what is shipped: with traces. One set of features, so one build.
FEATURES := --features otlp

## Build, make a development certificate, start the server, and show what a person sees of three requests
run:
	cargo build $(FEATURES)
	cargo run --quiet $(FEATURES) --example demo

## Everything, the end-to-end tests against a real kube-apiserver included
test: test-fast test-registry test-e2e test-differential

## The controllers of Flux, Landscaper and Crossplane, built with Go, once, into the user's cache
systems-assets:
	cargo test --locked $(FEATURES) --test systems -- --assets

## These controllers on a real kube-apiserver, each scenario without and with portcullis; see docs/systems.md
test-systems:
	cargo test --locked $(FEATURES) --test systems

## The same; the table goes into docs/systems.md
systems-table:
	cargo test --locked $(FEATURES) --test systems -- --write

## Everything but the end-to-end tests
test-fast:
	cargo test --locked $(FEATURES)

## Component descriptors out of OCI registries, a real one among them that Go builds once
test-registry:
	cargo test --locked $(FEATURES) --test registry

## The end-to-end tests: with KUBEBUILDER_ASSETS, or with a kube-apiserver that Go builds once
test-e2e:
	cargo test --locked $(FEATURES) --test e2e

## Random kustomize trees, judged by us and by kubectl: some
test-differential:
	cargo test --locked $(FEATURES) --test differential
	cargo test --locked $(FEATURES) --test render

TREES ?= 10000
SEED ?= $(shell date +%s)

## Random kustomize trees, judged by us and by kubectl, and rendered by us and by kustomize, byte for byte: many, other ones each time
differential:
	cargo test --locked $(FEATURES) --test differential -- --trees $(TREES) --seed $(SEED)
	cargo test --locked $(FEATURES) --test render -- --trees $(TREES) --seed $(SEED)

## Restarts, rotations, a change of the CA, and faults of the cluster under calls; the table goes into docs/reliability.md
chaos:
	cargo test --locked $(FEATURES) --test storm -- --write

TARGET ?= analysis
SECONDS ?= 60
# libFuzzer's instrumentation is part of LLVM, so that stable Rust has it; only the sanitizers need nightly
SANCOV := --cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
	-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1

## One fuzz target for a time: `make fuzz TARGET=yaml SECONDS=180`; see docs/fuzzing.md
fuzz:
	cargo run --quiet --locked $(FEATURES) --example fuzz_seeds -- fuzz/corpus
	mkdir -p fuzz/artifacts
	cd fuzz && RUSTFLAGS="$(SANCOV)" cargo run --release --target $$(rustc -vV | sed -n 's/^host: //p') --bin $(TARGET) -- \
		-max_total_time=$(SECONDS) -timeout=20 -rss_limit_mb=2048 -max_len=20000 -artifact_prefix=artifacts/$(TARGET)- \
		-print_final_stats=1 corpus/$(TARGET)

## Formatting, lints, and, where cargo-deny and promtool are installed, licences, advisories and alerts
lint:
	cargo fmt --check
	cargo clippy --locked $(FEATURES) --all-targets -- -D warnings
	# without traces: the library and the binary only
	cargo clippy --locked -- -D warnings
	@if cargo deny --version >/dev/null 2>&1; then cargo deny check; \
	else echo "cargo-deny is not installed: licences and advisories were not checked (cargo install cargo-deny)"; fi
	@if promtool --version >/dev/null 2>&1; then promtool check rules charts/portcullis/monitoring/alerts.yaml; \
	else echo "promtool is not installed: the alerts were not checked by it (it comes with Prometheus)"; fi

## Write what is derived from the code: the pages of rules and of bounds, webhook-config/
generate:
	cargo run --quiet $(FEATURES) -- rules --write docs/rules
	cargo run --quiet $(FEATURES) -- manifests --out webhook-config
	cargo run --quiet $(FEATURES) -- manifests --chart --out charts/portcullis/templates
	cargo run --quiet $(FEATURES) -- explain deployer --output svg > docs/deployer-contract.svg
	cargo run --quiet $(FEATURES) --example chart_schema > target/schema.json && mv target/schema.json charts/portcullis/values.schema.json
	cargo run --quiet $(FEATURES) --example bounds > target/bounds.md && mv target/bounds.md docs/bounds.md

## Make what merging needs of kustomize's built-in schema anew, after raising the version in tools/openapi/go.mod (needs Go)
schema:
	cd tools/openapi && go run . > ../../src/kustomize/schema/built_in.txt

## The documentation as a site, in target/site/docs (needs mdbook: cargo install mdbook)
book:
	mdbook build docs
	cp -r README.md CONTRIBUTING.md examples certs charts .pre-commit-hooks.yaml action.yml target/site/
	# pages outside of the book stay as they are
	find target/site/docs -name '*.html' -exec sed -i -E 's#(href="(\.\./)+(README|CONTRIBUTING|examples/|certs/|charts/)[^"\#]*)\.html#\1.md#g' {} +

# The command line is measured as `dist` builds it, where that can be built.
DIST = $(and $(wildcard $(shell rustc --print sysroot)/lib/rustlib/$(TRIPLE)/lib),$(shell command -v musl-gcc),--target $(TRIPLE))

## CPU per request against a floor, and memory; the table goes into docs/performance.md
bench:
	cargo bench --locked $(FEATURES) --bench admission -- --write
	cargo bench --locked $(FEATURES) $(DIST) --bench kustomize -- --write
	cargo bench --locked $(FEATURES) --bench trees -- --write
	cargo bench --locked $(FEATURES) --bench companion -- --write
	cargo bench --locked $(FEATURES) --bench environment -- --write
	cargo bench --locked $(FEATURES) --bench delivery -- --write
	cargo bench --locked $(FEATURES) --bench load -- latency --write
	cargo bench --locked $(FEATURES) --bench memory -- --write

## Three times what the server can do, for a minute; the table goes into docs/reliability.md
overload:
	cargo bench --locked $(FEATURES) --bench load -- overload --write

# An hour, unless SECONDS is given.
soak: SECONDS := $(if $(filter command line environment,$(origin SECONDS)),$(SECONDS),3600)

## Everything at once for an hour, or SECONDS=…; the table goes into docs/reliability.md
soak:
	cargo bench --locked $(FEATURES) --bench load -- soak --write --seconds=$(SECONDS)

VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
IMAGE ?= portcullis:$(VERSION)
# On Linux linked statically, with musl: it runs on every distribution, and starts in a third of the time.
TRIPLE ?= $(patsubst %-linux-gnu,%-linux-musl,$(shell rustc -vV | sed -n 's/^host: //p'))

# `make image QUICK=1` builds a slower binary in a fraction of the time, to try Portcullis out.
IMAGE_ARGUMENTS := $(if $(QUICK),--build-arg LTO=off --build-arg CODEGEN_UNITS=16)

## Build the image for the platform of this machine; needs docker with buildx
image:
	docker buildx build --load $(IMAGE_ARGUMENTS) --file Containerfile --tag $(IMAGE) .

## The image and the chart on a kind cluster; needs kind, kubectl and helm besides
test-kind:
	tests/kind/run.sh $(IMAGE)

## The chart as an archive in dist/
chart:
	helm package charts/portcullis --destination dist

## The binary of a platform as an archive in dist/: `make dist TRIPLE=aarch64-unknown-linux-musl`
dist:
	cargo build --release --locked $(FEATURES) --bin portcullis --target $(TRIPLE)
	mkdir -p dist
	tar -czf dist/portcullis-$(VERSION)-$(TRIPLE).tar.gz -C target/$(TRIPLE)/release portcullis

## What the binary is made of, as CycloneDX; needs cargo-cyclonedx
sbom:
	mkdir -p dist
	cargo cyclonedx $(FEATURES) --format json --override-filename portcullis-$(VERSION).cdx
	mv portcullis-$(VERSION).cdx.json dist/

## The SHA-256 sums of all that is in dist/
checksums:
	cd dist && sha256sum -- * > SHA256SUMS
