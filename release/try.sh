#!/bin/sh
# Try the packages of two releases as a stranger would:
#
#   sudo release/try.sh OLDER NEWER
#
# OLDER and NEWER are folders that build.sh has made. The script needs root, and from Debian: debootstrap,
# systemd-container, crun, iproute2, curl and python3. It installs the deb in a Debian that it boots, kills, upgrades, breaks, removes and purges the
# service, and it starts the archive's binary and the image's without Go. ROOT names a folder with an unpacked Debian that has
# systemd, dbus and ca-certificates; without it, debootstrap fetches one. What cannot be tried is listed at the end, and
# makes the script fail.
set -eu
older=$(cd "$1" && pwd)
newer=$(cd "$2" && pwd)
work=$(mktemp -d)
machine=duesday-try-$$
lacks=
arch=$(dpkg --print-architecture)
say() { echo "== $*"; }
lack() { lacks="$lacks
  $*"; }
fail() {
	echo "FAILED: $*" >&2
	exit 1
}
one() { # the only file that matches
	[ $# = 1 ] && [ -e "$1" ] || fail "no single file: $*"
	echo "$1"
}
has() { command -v "$1" >/dev/null; }
finish() {
	code=$?
	trap - EXIT
	[ -z "${leader-}" ] || kill -KILL "$leader" 2>/dev/null || true
	[ -z "${booted-}" ] || wait "$booted" || true
	ip netns delete "$machine" 2>/dev/null || true
	rm -rf "$work"
	exit $code
}
trap finish EXIT
until_true() { # for up to a minute
	n=0
	until "$@" >/dev/null 2>&1; do
		n=$((n + 1))
		[ $n -lt 120 ] || fail "never came true: $*"
		sleep 0.5
	done
}

try_archive() {
	say "the archive's binary, with nothing else in PATH"
	mkdir "$work/archive"
	tar -xzf "$(one "$newer"/*_linux_"$arch".tar.gz)" -C "$work/archive" --strip-components=1
	(cd "$work/archive" && env -i ./duesday --version && env -i ./duesday demo --accounts 20 >/dev/null) || fail "the archive's binary"
}

try_image() {
	for tool in crun ip curl python3; do # iproute2 has ip
		has $tool || {
			lack "the image: no $tool"
			return
		}
	done
	say "the image, by crun, with a read-only root and no capabilities"
	mkdir -p "$work/layout" "$work/bundle/rootfs" "$work/data"
	tar -xf "$(one "$newer"/*_image.tar)" -C "$work/layout"
	ip netns add "$machine"
	ip -n "$machine" addr add 10.9.8.7/32 dev lo # what a proxy would reach
	ip -n "$machine" link set lo up
	NETWORK=$machine python3 - "$work" "$arch" <<'PY' || fail "the image's layout"
import json, os, sys, tarfile
work, arch = sys.argv[1:]
blob = lambda d: os.path.join(work, "layout/blobs/sha256", d["digest"].split(":")[1])
read = lambda d: json.load(open(blob(d)))
index = read(json.load(open(work + "/layout/index.json"))["manifests"][0])
manifest = read(next(m for m in index["manifests"] if m["platform"]["architecture"] == arch))
config = read(manifest["config"])["config"]
for layer in manifest["layers"]:
    tarfile.open(blob(layer)).extractall(work + "/bundle/rootfs")
uid, gid = map(int, config["User"].split(":"))
assert uid != 0
network = {"type": "network", "path": "/run/netns/" + os.environ["NETWORK"]}
def bundle(args):
    return {"ociVersion": "1.0.0", "root": {"path": "rootfs", "readonly": True},
        "process": {"user": {"uid": uid, "gid": gid}, "args": args, "env": config["Env"], "cwd": config["WorkingDir"], "noNewPrivileges": True},
        "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"}, {"destination": "/dev", "type": "tmpfs", "source": "tmpfs"}, {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs"},
            {"destination": "/var/lib/duesday", "type": "bind", "source": work + "/data", "options": ["bind", "rw"]}],
        "linux": {"namespaces": [network] + [{"type": t} for t in ("pid", "ipc", "uts", "mount")]}}
os.chown(work + "/data", uid, gid)
for name, args in (("create", ["store", "create"]), ("serve", config["Cmd"]), ("status", ["status"])):
    os.makedirs(f"{work}/{name}")
    os.symlink(work + "/bundle/rootfs", f"{work}/{name}/rootfs")
    json.dump(bundle(config["Entrypoint"] + args), open(f"{work}/{name}/config.json", "w"))
PY
	# crun refuses hosts that mount both versions of control groups, so it does not see the newer one.
	crun() {
		unshare --mount sh -c 'umount /sys/fs/cgroup/unified 2>/dev/null; exec crun --cgroup-manager=disabled --root "$0" "$@"' "$work/crun" "$@"
	}
	crun run -b "$work/create" "$machine-create" || fail "store create in the image"
	crun run -b "$work/serve" "$machine-serve" >"$work/serve.log" 2>&1 &
	serving=$!
	get() { ip netns exec "$machine" curl -sf "http://$1" >/dev/null; }
	until_true get 10.9.8.7:8080/readyz
	get 127.0.0.1:8081/readyz || fail "the API does not answer in the container"
	get 10.9.8.7:8081/readyz && fail "other machines reach the API"
	get 10.9.8.7:8082/sign-in && fail "other machines reach the pages"
	crun kill "$machine-serve" TERM
	wait $serving || {
		cat "$work/serve.log"
		fail "serve in the image did not stop cleanly"
	}
}

inside() { nsenter -t "$leader" -a -- env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin /bin/sh -c "$*"; }
active() { [ "$(inside 'systemctl is-active duesday || true')" = active ]; }

boot() {
	has systemd-nspawn || {
		lack "the deb under systemd: no systemd-nspawn (systemd-container)"
		return 1
	}
	if [ -z "${ROOT-}" ]; then
		has debootstrap || {
			lack "the deb under systemd: no debootstrap, and no ROOT"
			return 1
		}
		ROOT=$work/debian
		debootstrap --variant=minbase --include=systemd,dbus,ca-certificates bookworm "$ROOT" >"$work/debootstrap.log" || fail "debootstrap"
	fi
	mkdir "$work/debs"
	cp "$(one "$older"/*_"$arch".deb)" "$work/debs/older.deb"
	cp "$(one "$newer"/*_"$arch".deb)" "$work/debs/newer.deb"
	# Its own /run, because systemd-nspawn needs one in memory.
	# shellcheck disable=SC2016
	unshare --mount sh -c 'mount -t tmpfs tmpfs /run && mkdir -p /run/systemd /run/lock &&
		exec systemd-nspawn --quiet --boot --register=no --keep-unit --volatile=overlay --private-network --machine="$0" --directory="$1" \
			--bind-ro="$2:/debs"' "$machine" "$ROOT" "$work/debs" >"$work/boot.log" 2>&1 </dev/null &
	booted=$!
	n=0
	until leader=$(pgrep -P $booted -x systemd) && inside 'systemctl is-active multi-user.target' >/dev/null 2>&1; do
		n=$((n + 1))
		if [ $n -gt 120 ] || ! kill -0 $booted 2>/dev/null; then
			cat "$work/boot.log"
			lack "the deb under systemd: the container did not boot"
			return 1
		fi
		sleep 0.5
	done
}

try_deb() {
	say "install: disabled, and nothing runs"
	inside 'dpkg -i /debs/older.deb' || fail "install"
	[ "$(inside 'systemctl is-enabled duesday || true')" = disabled ] || fail "the service is enabled"
	active && fail "the service runs"
	[ "$(inside 'stat -c "%a %U %G" /etc/duesday/duesday.env /var/lib/duesday' | tr '\n' ' ')" = "640 root duesday 700 duesday duesday " ] ||
		fail "permissions"
	inside 'systemd-analyze security --threshold=20 --no-pager duesday | tail -1' || fail "the exposure is above 2.0"
	inside 'ls /usr/share/man/man1/duesday-serve.1.gz /usr/share/bash-completion/completions/duesday' >/dev/null || fail "man pages, completions"

	say "start, and sign of life"
	inside 'duesday-service store create && duesday-service settings set daily=06:10 && systemctl enable --now duesday' || fail "start"
	inside 'systemctl show -p StatusText -p Type -p WatchdogUSec -p LimitNOFILE duesday'
	inside 'duesday-service status --all' || true
	inside 'duesday-service store backup --to /var/backups/duesday --keep 2 && ls /var/backups/duesday/*/BACKUP.json' || fail "a backup of the running service"

	say "rehearse an upgrade on the backup, with the newer package unpacked"
	inside 'newer=$(mktemp -d) && chmod 755 $newer && dpkg-deb -x /debs/newer.deb $newer && export BINARY=$newer/usr/bin/duesday && duesday-service --version &&
		duesday-service store restore --from "$(ls -d /var/backups/duesday/*)" --store pebble:/var/lib/duesday/check &&
		duesday-service verify --store pebble:/var/lib/duesday/check && rm -r /var/lib/duesday/check' || fail "the rehearsal"

	say "kill -9: systemd starts it again"
	before=$(inside 'systemctl show -p MainPID --value duesday')
	inside "kill -9 $before"
	again() { active && [ "$(inside 'systemctl show -p MainPID --value duesday')" != "$before" ]; }
	until_true again

	say "SIGSTOP: the watchdog ends a server that hangs"
	inside 'mkdir -p /run/systemd/system/duesday.service.d && printf "[Service]\nWatchdogSec=3\nTimeoutAbortSec=2\n" >/run/systemd/system/duesday.service.d/try.conf && systemctl daemon-reload && systemctl restart duesday'
	before=$(inside 'systemctl show -p MainPID --value duesday')
	inside "kill -STOP $before"
	until_true again
	inside 'journalctl -u duesday --no-pager | grep -i "watchdog timeout"' || fail "no watchdog in the journal"
	inside 'rm -r /run/systemd/system/duesday.service.d && systemctl daemon-reload && systemctl restart duesday'

	say "upgrade: stopped, checked, started"
	inside 'dpkg -i /debs/newer.deb' || fail "upgrade"
	active || fail "the service was not started again"
	inside 'duesday --version'

	say "upgrade whose start fails: dpkg says so, and starts it after the repair"
	inside 'cp /etc/duesday/duesday.env /etc/duesday/kept && echo SERVE_FLAGS=--no-such-flag >>/etc/duesday/duesday.env'
	inside 'dpkg -i /debs/older.deb' && fail "an upgrade whose start fails has succeeded"
	inside 'until [ "$(systemctl is-active duesday)" = failed ]; do sleep 1; done; mv /etc/duesday/kept /etc/duesday/duesday.env && dpkg --configure duesday' || fail "configured again"
	active || fail "the service was not started after its settings were repaired"

	say "upgrade of a stopped service: it stays stopped"
	inside 'systemctl stop duesday && dpkg -i /debs/older.deb' || fail "downgrade"
	active && fail "a stopped service was started"

	say "upgrade over a damaged store: it stays stopped, and dpkg says so"
	inside 'systemctl start duesday && cp -r /var/lib/duesday/store /var/lib/duesday/kept && rm /var/lib/duesday/store/MANIFEST*'
	inside 'dpkg -i /debs/newer.deb' && fail "an upgrade over a damaged store has succeeded"
	active && fail "the service was started over a damaged store"
	inside 'rm -r /var/lib/duesday/store && mv /var/lib/duesday/kept /var/lib/duesday/store && chown -R duesday: /var/lib/duesday/store && dpkg --configure duesday' ||
		fail "repaired"
	active || fail "the service was not started after the repair"

	say "an upgrade whose start failed, undone: the older version does not start"
	inside 'cp /etc/duesday/duesday.env /etc/duesday/kept && echo SERVE_FLAGS=--no-such-flag >>/etc/duesday/duesday.env'
	inside 'dpkg -i /debs/newer.deb' && fail "an upgrade whose start fails has succeeded"
	inside 'mv /etc/duesday/kept /etc/duesday/duesday.env; systemctl stop duesday; rm -f /run/duesday-was-running; dpkg -i /debs/older.deb' || fail "the way back"
	active && fail "the way back started the older version"
	inside 'systemctl start duesday'

	say "remove and purge: stopped, disabled, and the data is there"
	inside ': >/run/duesday-was-running; dpkg -r duesday && ! [ -e /run/duesday-was-running ]' || fail "remove"
	active && fail "the service runs without its package"
	inside 'dpkg -P duesday' || fail "purge"
	inside '! [ -e /etc/duesday ] && ls -d /var/lib/duesday/store/MANIFEST* /var/backups/duesday/*/BACKUP.json' || fail "what purging leaves"
	inside 'dpkg -i /debs/newer.deb && duesday-service store describe && duesday-service settings show | grep 06:10' || fail "the data after installing again"
}

[ "$(id -u)" = 0 ] || fail "this needs root"
try_archive
try_image
if boot; then
	try_deb
fi
if [ -n "$lacks" ]; then
	echo "NOT TRIED:$lacks"
	exit 1
fi
say "all tried"
