GOFUMPT := go run mvdan.cc/gofumpt@v0.12.0
LINT := go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X github.com/prometheus/common/version.Version=$(VERSION)
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
RULES := ../thresholds.yml ../recording.yml ../alerts.yml ../review.yml

# need installs the packages $(2) where the command $(1) is missing.
need = command -v $(1) >/dev/null || { $(SUDO) apt-get update -q && $(SUDO) apt-get install -qy --no-install-recommends $(2); }

.PHONY: help build demo test test-full lint format golden bench deps

help: ## This list.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

build: ## The binary, static and stripped.
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o roce_exporter .

demo: build ## A made-up fabric with incidents on demand, with Prometheus and Alertmanager where installed.
	@$(call need,curl,curl)
	@deploy/demo/run.sh $(ARGS)

test: deps ## Everything that a change must pass.
	@out=$$($(GOFUMPT) -l .); [ -z "$$out" ] || { echo "not formatted, run make format: $$out"; exit 1; }
	go vet ./...
	go test -race ./...
	go test -run 'TestEverySampleIsTrue|TestHistoryIs' .
	cd alerts/lint && go vet ./... && go test -count=1 ./... # The rules are outside of this module: Go does not see them change.

test-full: test lint bench ## The same, with the linters, the cost, the rules by promtool 3, every incident, five of them live, and the dashboards on VictoriaMetrics.
	cd alerts/lint && go tool promtool check rules $(RULES)
	cd alerts/lint && go tool promtool test rules ../tests/*.yml
	cd alerts/lint && go test -count=1 -timeout 90m ./matrix -all
	go test -timeout 20m -run TestLive ./alerts -live
	go test -count=1 -timeout 30m -run TestQueries ./dashboards -all -pictures "$$(mktemp -d)"
	dir=$$(mktemp -d) && GOBIN=$$dir go install github.com/VictoriaMetrics/VictoriaMetrics/app/victoria-metrics@v1.136.23 && \
		PATH="$$dir:$$PATH" go test -count=1 -run TestVictoriaMetrics -v ./dashboards && rm -r "$$dir"

lint: ## golangci-lint.
	$(LINT) run
	cd alerts/lint && $(LINT) run

format: ## gofumpt.
	$(GOFUMPT) -w .

golden: ## Write the golden files anew: read the diff.
	go test . -run TestCapturesOfTheDemo -update
	go test ./collectors ./alerts -update
	go test ./dashboards -run TestGolden -update

bench: deps ## What a scrape costs, against a client that drops the replies.
	go test -p 1 -run '^TestCost' -count=1 -v . ./collectors -cost

deps: ## What the tests need beside Go, on Debian.
	@$(call need,redis-server,redis-server)
	@$(call need,gcc,gcc libc6-dev)
	@$(call need,amtool,prometheus-alertmanager)
	@$(call need,promtool,prometheus)
