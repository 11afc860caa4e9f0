# `make run` shows Portcullis, and `make test` tests it. No other setup is needed.

.PHONY: run test test-fast test-compiled test-browser screenshot test-under-load test-registry test-e2e test-systems systems-assets systems-table test-differential differential differential-plan history chaos fuzz lint generate schema entropy-tables book bench limiter memory-soak overload soak \
	image image-archive image-push packages test-kind test-cluster chart dist sbom checksums

# All targets build with the features of the releases, so there is one build.
FEATURES := --features otlp

## Build, create a development certificate, start the server, and show the answers to three requests
run:
	cargo build $(FEATURES)
	cargo run --quiet $(FEATURES) --example demo

## Run all tests, including the end-to-end tests with a real kube-apiserver
test: test-fast test-registry test-e2e test-differential

## Build the controllers of Flux, Landscaper and Crossplane with Go, once, into the user's cache
systems-assets:
	cargo test --locked $(FEATURES) --test systems -- --assets

## Run these controllers on a real kube-apiserver, each scenario without and with Portcullis; see docs/systems.md
test-systems:
	cargo test --locked $(FEATURES) --test systems

## The same, and write the table into docs/systems.md
systems-table:
	cargo test --locked $(FEATURES) --test systems -- --write

PAIRS ?= 2000

## Compare the plans of many pairs of revisions with what kustomize-controller does, with another seed each time
differential-plan:
	cargo test --locked $(FEATURES) --test systems -- plan:: --pairs $(PAIRS) --seed $(SEED)

## Run all tests that need no kube-apiserver
test-fast:
	cargo test --locked $(FEATURES)

LOOPS ?= 10
ROUNDS ?= 3

## Everything beside busy loops, ten per processor, three times: `make test-under-load LOOPS=10 ROUNDS=3`
test-under-load:
	cargo test --locked $(FEATURES) --no-run
	$(MAKE) test-compiled
	@loops=; trap 'kill $$loops' EXIT; trap 'exit 130' INT TERM; \
	for _ in $$(seq $$(($(LOOPS) * $$(nproc)))); do while :; do :; done & loops="$$loops $$!"; done; \
	for round in $$(seq $(ROUNDS)); do \
		echo "round $$round of $(ROUNDS), beside $(LOOPS) busy loops per processor"; \
		$(MAKE) test || exit 1; \
	done

## Run the tests with OCI registries, one of which is real and built with Go, once
test-registry:
	cargo test --locked $(FEATURES) --test registry

## Test the HTML page of `portcullis diff` in headless Chromium
test-browser:
	cargo test --locked $(FEATURES) --test browser

## Take the screenshot in docs/changes.md
screenshot:
	cargo test --locked $(FEATURES) --test browser -- --write

## Run the end-to-end tests, with the programs in KUBEBUILDER_ASSETS, or with a kube-apiserver that Go builds once
test-e2e:
	cargo test --locked $(FEATURES) --test e2e

## Compare some random kustomize trees with kubectl and kustomize
test-differential:
	cargo test --locked $(FEATURES) --test differential
	cargo test --locked $(FEATURES) --test render

TREES ?= 10000
SEED ?= $(shell date +%s)

## Compare many random kustomize trees with kubectl and kustomize, byte for byte, with another seed each time
differential:
	cargo test --locked $(FEATURES) --test differential -- --trees $(TREES) --seed $(SEED)
	cargo test --locked $(FEATURES) --test render -- --trees $(TREES) --seed $(SEED)

COMMITS ?= 200

## Compare the plans of commits of public repositories with kustomize; see docs/changes.md. With WRITE=1, write the times into docs/performance.md
history:
	cargo build --release --locked $(FEATURES) --bin portcullis
	PORTCULLIS=$(CURDIR)/target/release/portcullis PORTCULLIS_CHECKOUTS=$(PORTCULLIS_CHECKOUTS) \
		cargo test --locked $(FEATURES) --test render -- --history $(COMMITS) $(if $(WRITE),--write)

## Cause restarts, rotations and faults of the cluster during calls, and write the table into docs/reliability.md
chaos:
	cargo test --locked $(FEATURES) --test chaos_cluster -- --write

TARGET ?= analysis
SECONDS ?= 60
# Stable Rust has libFuzzer's instrumentation, which is part of LLVM; only the sanitizers need nightly
SANCOV := --cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
	-Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
	-Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1

## Run one fuzz target: `make fuzz TARGET=yaml SECONDS=180`; see docs/fuzzing.md
fuzz:
	cargo run --quiet --locked $(FEATURES) --example fuzz_seeds -- fuzz/corpus
	mkdir -p fuzz/artifacts
	cd fuzz && RUSTFLAGS="$(SANCOV)" cargo run --release --target $$(rustc -vV | sed -n 's/^host: //p') --bin $(TARGET) -- \
		-max_total_time=$(SECONDS) -timeout=20 -rss_limit_mb=2048 -max_len=20000 -artifact_prefix=artifacts/$(TARGET)- \
		-print_final_stats=1 corpus/$(TARGET)

ON_DEMAND_TESTS := browser chaos_cluster cluster differential e2e registry render systems

## Compile the tests that `cargo test` leaves out
test-compiled:
	cargo test --locked $(FEATURES) --no-run $(addprefix --test ,$(ON_DEMAND_TESTS))

## Check formatting and lints and, if cargo-deny and promtool are installed, licences, advisories and alerts
lint:
	cargo fmt --check
	tools/glossary/check.sh
	cargo clippy --locked $(FEATURES) --all-targets -- -D warnings
	# tests that --all-targets leaves out, because they have test = false
	cargo clippy --locked $(FEATURES) $(addprefix --test ,$(ON_DEMAND_TESTS)) -- -D warnings
	# without the feature otlp: the library and the binary only
	cargo clippy --locked -- -D warnings
	# the fuzz targets, a workspace of their own
	cargo check --locked --manifest-path fuzz/Cargo.toml --bins --target-dir target/fuzz
	@if cargo deny --version >/dev/null 2>&1; then cargo deny check; \
	else echo "cargo-deny is not installed: licences and advisories were not checked (cargo install cargo-deny)"; fi
	@if promtool --version >/dev/null 2>&1; then promtool check rules charts/portcullis/monitoring/alerts.yaml; \
	else echo "promtool is not installed: the alerts were not checked (it is part of Prometheus)"; fi

## Write the files that are derived from the code: pages of rules and limits, webhook-config/, parts of the chart
generate:
	cargo run --quiet $(FEATURES) -- rules --output markdown > target/rules.md && mv target/rules.md docs/rules/README.md
	cargo run --quiet $(FEATURES) -- manifests --out webhook-config
	cargo run --quiet $(FEATURES) -- manifests --chart --out charts/portcullis/templates
	cargo run --quiet $(FEATURES) -- explain deployer --output svg > docs/deployer-contract.svg
	cargo run --quiet $(FEATURES) --example chart_schema > target/schema.json && mv target/schema.json charts/portcullis/values.schema.json
	cargo run --quiet $(FEATURES) --example bounds > target/bounds.md && mv target/bounds.md docs/bounds.md

## Compute the entropy tables for the compression of stored objects, after a change of the recordings (needs Python and zstd)
entropy-tables:
	python3 tools/entropy_tables/main.py

## Extract the parts of kustomize's built-in schema that merging needs, after a change of the version in tools/openapi/go.mod (needs Go)
schema:
	cd tools/openapi && go run . > ../../src/kustomize/schema/built_in.txt

## Build the documentation as a site in target/site/docs (needs mdbook: cargo install mdbook)
book:
	mdbook build docs
	cp -r README.md CONTRIBUTING.md examples certs charts .pre-commit-hooks.yaml action.yml target/site/
	# links to pages outside the book keep the .md
	find target/site/docs -name '*.html' -exec sed -i -E 's#(href="(\.\./)+(README|CONTRIBUTING|examples/|certs/|charts/)[^"\#]*)\.html#\1.md#g' {} +

# If this machine can build them, `make bench` measures the command line of `make dist`, and the server of `make dist PROFILED=1`.
RUSTLIB = $(shell rustc --print sysroot)/lib/rustlib
DIST = $(and $(wildcard $(RUSTLIB)/$(TRIPLE)/lib),$(shell command -v musl-gcc),--target $(TRIPLE))
CAN_PROFILE = $(and $(DIST),$(wildcard $(RUSTLIB)/*/bin/llvm-profdata))
# Builds the binary that is optimized by a profile, and prints its path.
PROFILED_BINARY = tools/packages/profiled.sh $(TRIPLE) $(FEATURES)
BUILD_SERVER = $(if $(CAN_PROFILE),$(PROFILED_BINARY))
SERVER = $(if $(CAN_PROFILE),--binary=$(CURDIR)/target/profiled/$(TRIPLE)/release/portcullis)

## Measure CPU per request and memory, and write the tables into docs/performance.md
bench:
	$(BUILD_SERVER)
	cargo bench --locked $(FEATURES) --bench admission -- --write $(SERVER)
	cargo bench --locked $(FEATURES) $(DIST) --bench kustomize -- --write
	cargo bench --locked $(FEATURES) --bench trees -- --write
	cargo bench --locked $(FEATURES) --bench reconcile -- --write
	cargo bench --locked $(FEATURES) --bench environment -- --write
	cargo bench --locked $(FEATURES) --bench delivery -- --write
	cargo bench --locked $(FEATURES) --bench crates -- --write
	cargo bench --locked $(FEATURES) --bench load -- latency --write $(SERVER)
	cargo bench --locked $(FEATURES) --bench memory -- --write $(SERVER)

## Change 200 objects per second for ten minutes, and write the memory into docs/performance.md
memory-soak:
	$(BUILD_SERVER)
	cargo bench --locked $(FEATURES) --bench memory -- soak --write $(SERVER)

## Simulate the limiter of decisions with all parameters and without each of them; docs/reliability.md has the figures
limiter:
	cargo run --quiet --release --manifest-path tools/limiter/Cargo.toml --target-dir target/tools

## Send three times the server's capacity for a minute, and write the table into docs/reliability.md
overload:
	cargo bench --locked $(FEATURES) --bench load -- overload --write

# An hour, unless SECONDS is given.
soak: SECONDS := $(if $(filter command line environment,$(origin SECONDS)),$(SECONDS),3600)

## Send mixed requests for an hour, or SECONDS=…, and write the table into docs/reliability.md
soak:
	cargo bench --locked $(FEATURES) --bench load -- soak --write --seconds=$(SECONDS)

VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
IMAGE ?= portcullis:$(VERSION)
# On Linux, the binary is linked statically with musl. It runs on every distribution, and starts in a third of the time.
TRIPLE ?= $(patsubst %-linux-gnu,%-linux-musl,$(shell rustc -vV | sed -n 's/^host: //p'))

# `make image QUICK=1` builds a slower binary in a fraction of the time, to try Portcullis out.
IMAGE_ARGUMENTS := $(if $(QUICK),--build-arg LTO=off --build-arg CODEGEN_UNITS=16)

## Build the image for the platform of this machine; needs docker with buildx
image:
	docker buildx build --load $(IMAGE_ARGUMENTS) --build-arg VERSION=$(VERSION) --build-arg REVISION=$$(git rev-parse HEAD) \
		--build-arg SOURCE=https://github.com/$(REPOSITORY) --file Containerfile --tag $(IMAGE) .

# The C compiler of a musl target; empty if there is none.
c_compiler = $(or $(CC_$(subst -,_,$(1))),$(shell command -v $(firstword $(subst -, ,$(1)))-linux-musl-gcc),$(and $(filter $(1),$(TRIPLE)),$(shell command -v musl-gcc)))
# Platforms of the image archive: those whose musl target and C compiler are installed, else the one of this machine.
ARCHIVE_TRIPLES ?= $(or $(strip $(foreach triple,x86_64-unknown-linux-musl aarch64-unknown-linux-musl,$(if $(wildcard $(shell rustc --print sysroot)/lib/rustlib/$(triple)/lib),$(if $(call c_compiler,$(triple)),$(triple))))),$(TRIPLE))
CERTIFICATES ?= /etc/ssl/certs/ca-certificates.crt
# OWNER/NAME on GitHub, for links in packages and labels.
REPOSITORY ?= $(or $(GITHUB_REPOSITORY),OWNER/portcullis)
platform = linux/$(patsubst x86_64,amd64,$(patsubst aarch64,arm64,$(firstword $(subst -, ,$(1)))))
# With RELEASED=1, the binaries come from the archives of `make dist` in dist/.
RELEASED_IN := target/released
binary = $(if $(RELEASED),$(RELEASED_IN)/$(1)/portcullis; mkdir -p $(RELEASED_IN)/$(1); \
		tar -xzf dist/portcullis-$(VERSION)-$(1).tar.gz -C $(RELEASED_IN)/$(1),$$(tools/packages/static.sh $(1) $(FEATURES)))

## Write an OCI image archive into dist/, without a container engine: the static binary on an empty base, the same bytes each time
image-archive:
	mkdir -p dist
	set -e; binaries=""; \
	$(if $(QUICK),export CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16;) \
	$(foreach triple,$(ARCHIVE_TRIPLES), \
		binary=$(call binary,$(triple)); binaries="$$binaries $(call platform,$(triple))=$$binary";) \
	python3 tools/packages/image.py --out dist/portcullis-$(VERSION)-image.tar --name $(IMAGE) --version $(VERSION) \
		--revision $$(git rev-parse HEAD) --source https://github.com/$(REPOSITORY) --created $$(git log -1 --format=%ct) \
		--certificates $(CERTIFICATES) $$binaries

# The repository that the image is pushed to, without a tag.
PUSH_TO ?= ghcr.io/$(REPOSITORY)

## Push the image archive with the version as its tag, and write its digest into dist/image-digest; needs skopeo, and a login
image-push:
	skopeo copy --all --digestfile dist/image-digest $(SKOPEO_ARGUMENTS) \
		oci-archive:dist/portcullis-$(VERSION)-image.tar docker://$(PUSH_TO):$(VERSION)

## Write wheels, krew archives and manifest, Homebrew formula and aqua entry for the archives in dist/
packages:
	python3 tools/packages/packages.py --version $(VERSION) --repository $(REPOSITORY) --dist dist

## Run the chart on a node with a kubelet: needs root, containerd and Go; see CONTRIBUTING.md. With WRITE=1, write the table into docs/reliability.md
test-cluster: QUICK := 1
test-cluster: image-archive
	PORTCULLIS_IMAGE_ARCHIVE=$(CURDIR)/dist/portcullis-$(VERSION)-image.tar \
		cargo test --locked $(FEATURES) --test cluster -- $(if $(WRITE),--write) $(SCENARIOS)

## Test the image and the chart on a kind cluster; needs docker, kind, kubectl and helm
test-kind:
	tests/kind/run.sh $(IMAGE)

## Package the chart into dist/
chart:
	helm package charts/portcullis --destination dist

## Package the binary of a platform into dist/: `make dist TRIPLE=aarch64-unknown-linux-musl`. With PROFILED=1, as for a release on
## Linux: optimized by a profile that is recorded on this machine. Takes three times as long, and needs llvm-tools of rustup
dist:
	mkdir -p dist
	$(if $(PROFILED),binary=$$($(PROFILED_BINARY)),binary=target/$(TRIPLE)/release/portcullis; \
		cargo build --release --locked $(FEATURES) --bin portcullis --target $(TRIPLE)) && \
	tar -czf dist/portcullis-$(VERSION)-$(TRIPLE).tar.gz -C $$(dirname "$$binary") portcullis

## Write the bill of materials as CycloneDX into dist/; needs cargo-cyclonedx
sbom:
	mkdir -p dist
	cargo cyclonedx $(FEATURES) --format json --override-filename portcullis-$(VERSION).cdx
	mv portcullis-$(VERSION).cdx.json dist/

## Write the SHA-256 sums of the files in dist/
checksums:
	cd dist && sha256sum -- * > SHA256SUMS
