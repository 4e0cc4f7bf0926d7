#!/bin/sh
# Build a release of the commit that is checked out, into the new folder OUT:
#
#   release/build.sh OUT [GOOS_GOARCH...]
#
# It needs Go, git and the usual tools of Linux, and no network once the modules are in the cache. The result only
# depends on the commit, the Go version and the modules in go.sum: other folders, other days and other users get the
# same bytes.
set -eu
umask 022
out=$1
shift
[ $# -gt 0 ] || set -- linux_amd64 linux_arm64 darwin_amd64 darwin_arm64
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir "$out"
out=$(cd "$out" && pwd)
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT
cd "$root"
if [ -n "$(git status --porcelain)" ]; then
	echo "release: the sources differ from the commit; commit or remove:" >&2
	git status --short >&2
	exit 1
fi
export CGO_ENABLED=0 GOFLAGS=-mod=readonly GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT=
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) # for nfpm
export SOURCE_DATE_EPOCH

go -C release build -o "$temp/release" .
go -C release build -o "$temp/nfpm" github.com/goreleaser/nfpm/v2/cmd/nfpm
cp -r release/scripts "$temp/scripts"
go build -trimpath -buildvcs=true -ldflags="-s -w" -o "$temp/own" ./cmd/duesday # of this machine, for manual and completions

# dpkg and rpm then order versions as Go does: a pseudo-version comes before the tag that it leads to.
PACKAGE_VERSION=$("$temp/own" --version | sed 's/^duesday v//; s/,.*//; s/-/~/; s/-/./g')
export PACKAGE_VERSION

# Most licenses ask for their text beside the binary.
licenses() {
	go list -deps -f '{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}	{{.Dir}}{{end}}{{end}}' ./cmd/duesday | sort -u |
		{
			cat
			printf 'the Go standard library\t%s\n' "$(go env GOROOT)"
		} | while IFS="$(printf '\t')" read -r name dir; do
		found=
		for file in "$dir"/[Ll][Ii][Cc][Ee][Nn][CcSs][Ee]* "$dir"/COPYING* "$dir"/NOTICE*; do
			[ -f "$file" ] || continue
			found=yes
			printf '==== %s: %s\n\n' "$name" "${file##*/}"
			cat "$file"
			echo
		done
		[ "$found" ] || {
			echo "release: $name has no license" >&2
			return 1
		}
	done
}

for target in "$@"; do
	export GOOS="${target%_*}" GOARCH="${target#*_}"
	stage=$temp/$target
	mkdir -p "$stage/completions" "$stage/man"
	go build -trimpath -buildvcs=true -ldflags="-s -w" -o "$stage/duesday" ./cmd/duesday
	licenses >"$stage/LICENSES-OF-MODULES"
	cp LICENSE NOTICE README.md CHANGELOG.md docs/install.md "$stage"
	"$temp/own" man "$stage/man/man1" >/dev/null
	gzip -9n "$stage"/man/man1/*.1
	"$temp/own" completion bash >"$stage/completions/duesday.bash"
	"$temp/own" completion zsh >"$stage/completions/_duesday"
	"$temp/own" completion fish >"$stage/completions/duesday.fish"
	if [ "$GOOS" = linux ]; then
		cp -r release/systemd "$stage/systemd"
		image=$stage.image # the root of a container
		mkdir -p "$image/usr/bin" "$image/usr/share/doc/duesday" "$image/etc" "$image/tmp" "$image/var/lib/duesday"
		cp "$stage/duesday" "$image/usr/bin"
		cp LICENSE NOTICE "$stage/LICENSES-OF-MODULES" "$image/usr/share/doc/duesday"
		echo "duesday:x:65532:65532::/var/lib/duesday:/sbin/nologin" >"$image/etc/passwd"
		echo "duesday:x:65532:" >"$image/etc/group"
		for format in deb rpm; do
			(cd "$stage" && "$temp/nfpm" package -f "$root/release/nfpm.yaml" -p $format -t "$out/" >"$temp/nfpm.log") ||
				{
					cat "$temp/nfpm.log"
					exit 1
				}
		done
	fi
	set -- "$@" "$stage"
	shift
done
unset GOOS GOARCH
"$temp/release" "$out" "$@"
cd "$out"
sha256sum -- * >"$temp/checksums.txt"
mv "$temp/checksums.txt" .
touch -d "@$SOURCE_DATE_EPOCH" -- *
