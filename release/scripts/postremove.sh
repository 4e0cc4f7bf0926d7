#!/bin/sh
# The data stays, also when dpkg purges the package: it says whom you may charge, and when. dpkg calls this with
# "remove" or "purge", rpm with 0, or with 1 for an upgrade.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
case "$1" in
purge | 0)
	if [ -d /var/lib/duesday ]; then
		echo "duesday: /var/lib/duesday was kept. It has your customers and their payments."
	fi
	;;
esac
