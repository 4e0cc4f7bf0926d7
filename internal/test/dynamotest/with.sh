#!/bin/sh
# with.sh COMMAND ARGUMENT...: runs the command with one DynamoDB Local for all test
# processes that it starts, instead of one for each, by DUESDAY_DYNAMODB_ENDPOINT. What
# starts it is the code that starts one for a package, kept running by a test of this one;
# it ends with this script, however that ends. Where it cannot be had the command runs
# without.
set -eu

here="$(dirname "$0")"
new="$(mktemp -d)"
trap 'rm -rf "$new"' EXIT
trap 'exit 1' HUP INT TERM

if [ -z "${DUESDAY_DYNAMODB_ENDPOINT:-}" ] && (cd "$here" && go test -c -o "$new/keeper" .) && mkfifo "$new/hold" "$new/said"; then
	DUESDAY_TEST_CHILD=1 "$new/keeper" -test.run='^TestBeAChild$' -test.v <"$new/hold" >"$new/said" 2>/dev/null &
	exec 3>"$new/hold" 4<"$new/said" # the keeper stays until 3 is closed
	while read -r word url <&4; do
		if [ "$word" = endpoint ]; then
			export DUESDAY_DYNAMODB_ENDPOINT="$url"
			echo "one DynamoDB Local for all tests: $url"
			break
		fi
	done
fi
"$@" 3>&- 4<&-
