#!/bin/sh
# Draws docs/mail/KIND.png, each kind of mail with sample data. It needs chromium.
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -trimpath -o "$work/duesday" ./cmd/duesday
DUESDAY_STORE=pebble:$work/data; export DUESDAY_STORE
"$work/duesday" account create 1001 --email ada@example.com > "$work/log"
"$work/duesday" settings set "merchant-name=Ada's Gym" 'postal-address=12 Bridge Street, Birmingham' > "$work/log"
for kind in reminder card_expires receipt declined failed action_required refund cancelled price_change; do
	"$work/duesday" mail preview "$kind" --html > "$work/$kind.html"
	chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=0.8 \
		--window-size=620,770 --screenshot="$work/$kind.png" "file://$work/$kind.html" > "$work/log" 2>&1
	mv "$work/$kind.png" "docs/mail/$kind.png"
done
