#!/bin/sh
# soak.sh MINUTES TEST: runs the long programmes, all (TEST is .) or those whose names match TEST,
# for about so many minutes, and prints how many cases each played. The whole output is in
# .cache/soak.log. Each top-level test has an equal share; two packages run at a time.
set -eu

minutes="$1" test="$2"
files="$(grep -rlE --include='*_test.go' 'soaktest\.(Start|Seeds)\(' . | grep -v /soaktest/)"
programmes=2
if [ "$test" = . ]; then
	programmes="$(echo "$files" | xargs cat | grep -cE 'soaktest\.(Start|Seeds)\(')"
fi
share="$(awk "BEGIN { printf \"%.2f\", 2 * $minutes / $programmes }")"
mkdir -p .cache
echo "$minutes minutes: $share for each test"
status=0
DUESDAY_SOAK=1 DUESDAY_SOAK_MINUTES="$share" internal/test/dynamotest/with.sh \
	go test -v -p 2 -count=1 -timeout "$(awk "BEGIN { print int(3 * $minutes) + 30 }")m" -run "$test" \
	$(echo "$files" | xargs -n 1 dirname | sort -u) >.cache/soak.log 2>&1 || status=1
sed -n 's/^ *[a-z0-9_]*\.go:[0-9]*: soak: //p' .cache/soak.log | sort
grep -E '^(ok|FAIL|panic:) ' .cache/soak.log || true
[ "$status" = 0 ] || grep -A20 -E '^ *--- FAIL|^panic:' .cache/soak.log | head -200
exit "$status"
