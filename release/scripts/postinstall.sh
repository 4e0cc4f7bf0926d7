#!/bin/sh
# Creates the user and its folder. The service stays disabled. After an upgrade, the new version first checks the
# store of a service that was running. If the store is not in order, the service stays stopped, and this script
# fails, so that the package manager reports it. dpkg calls this with "configure" and the version before, rpm with
# 1, or with 2 for an upgrade.
set -e
unset BINARY # of duesday-service
systemd-sysusers duesday.conf
systemd-tmpfiles --create duesday.conf
if [ "$1" = 1 ] || { [ "$1" = configure ] && [ -z "$2" ]; }; then
	chgrp duesday /etc/duesday/duesday.env # it did not exist when the files were unpacked
	echo "duesday is installed and not started. Next: edit /etc/duesday/duesday.env, create the store with"
	echo "duesday-service store create, then start it with systemctl enable --now duesday"
fi
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload

in_order() {
	if grep -q '^DUESDAY_STORE=pebble:' /etc/duesday/duesday.env; then
		duesday-service store check || return 1
	fi
	duesday-service store describe
}

if [ -e /run/duesday-was-running ]; then
	if said=$(in_order 2>&1); then
		systemctl reset-failed duesday.service 2>/dev/null || true # after ten failures, systemd starts it no more
		systemctl start duesday.service # this removes the note; after a failure, dpkg --configure starts it again
	else
		echo "$said" >&2
		echo "duesday: this version cannot use the store, so the service was NOT started again" >&2
		exit 1
	fi
fi
