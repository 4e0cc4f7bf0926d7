#!/bin/sh
# Check that a release only depends on its commit: build it in two clones in different folders, the second one with an
# empty build cache and another umask, zone and home, and compare all files.
#
#   release/check.sh [GOOS_GOARCH...]
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
mkdir "$temp/a" "$temp/b"
git clone -q "$root" "$temp/a/duesday"
git clone -q "$root" "$temp/b/another-name"
"$temp/a/duesday/release/build.sh" "$temp/one" "$@"
(
	modules=$(go env GOMODCACHE)
	umask 077
	export TZ=Asia/Tokyo LC_ALL=C HOME="$temp/b" GOCACHE="$temp/cache" GOMODCACHE="$modules" TMPDIR="$temp/b"
	"$temp/b/another-name/release/build.sh" "$temp/two" "$@"
)
diff -r "$temp/one" "$temp/two"
(cd "$temp/one" && sha256sum --check --quiet checksums.txt)
cat "$temp/one/checksums.txt"
echo "equal byte for byte"
