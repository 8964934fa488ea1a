# Sallyport. "make help" lists what can be done here.

GO      ?= go
SHELL   := /bin/bash
LINT    := $(GO) tool -modfile=tools/go.mod golangci-lint
FUZZ    ?= 20s

.PHONY: run test check build desktop package release reproducible package-darwin package-darwin-headless bench fuzz help

run: ## start the sidecar on a data folder of its own (.cache/run), with the example plugin
	@scripts/setup run
	@scripts/run

test: ## run every test, with the race detector, after installing or naming what is missing
	@scripts/setup test
	@scripts/pages
	@cd frontend && npm run --silent check && npm run --silent format:check && npm test --silent
	@scripts/companion .cache/companion >/dev/null
	@scripts/warm
	$(GO) test -race -timeout 60m ./...

check: ## what a change must pass: format, vet, lint, generated code, scripts, all tests
	@scripts/setup check
	@scripts/gofmt-check
	$(LINT) run ./...
	@scripts/generated-check
	shellcheck $$(git grep -lE '^#!/bin/bash' -- scripts .ci)
	@$(MAKE) --no-print-directory test

build: ## build bin/sallyport for this system, without cgo
	@scripts/setup run
	@scripts/pages
	@mkdir -p bin
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags "$$(scripts/version ldflags)" -o bin/ .

package: ## make what is shipped from Linux, in dist/: .deb, .rpm, .tar.gz, .exe, installer, .app
	@scripts/setup package
	@scripts/package linux-headless linux-desktop darwin-headless windows

release: ## make and check all of it in dist/, with lists of what is in it and checksums
	@scripts/setup package
	@scripts/release

reproducible: ## make it again elsewhere, and compare byte for byte
	@scripts/reproducible

package-darwin-headless: ## make dist/*macos*.zip: Sallyport.app around the headless program, on any system
	@scripts/setup run
	@scripts/package darwin-headless

package-darwin: ## on a Mac: Sallyport.app with the window
	@scripts/setup run
	@scripts/package darwin

desktop: ## build bin/sallyport-desktop: the same program with the window
	@scripts/setup desktop
	@scripts/pages
	@mkdir -p bin
	CGO_ENABLED=1 $(GO) build -trimpath -buildvcs=false -tags desktop,production,webkit2_41 -ldflags "$$(scripts/version ldflags)" -o bin/sallyport-desktop .

bench: ## measure, and print ratios to the programs that others would use
	@scripts/setup test
	@scripts/bench

fuzz: ## run every fuzz target for FUZZ=20s each
	@scripts/fuzz $(FUZZ)

help: ## list what can be done here
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-24s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
