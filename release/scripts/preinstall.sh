#!/bin/sh
# An upgrade stops the service before its files are replaced, and notes that it was running. dpkg calls this with
# "upgrade", rpm with 2.
set -e
case "$1" in
upgrade | 2)
	if [ -d /run/systemd/system ]; then
		case "$(systemctl is-active duesday.service || true)" in
		active | activating | reloading)
			: >/run/duesday-was-running
			systemctl stop duesday.service
			;;
		esac
	fi
	;;
esac
