#!/bin/sh
# Removing the package stops and disables the service; an upgrade does not come here. dpkg calls this with "remove",
# rpm with 0.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now duesday.service
	fi
	rm -f /run/duesday-was-running
	;;
esac
