#!/bin/sh
# Draws docs/receipts/LANGUAGE.png, a partly refunded receipt in each language, as its tests have it. It needs chromium.
set -eu
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for language in en de pt zh ko; do
	chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor=0.75 \
		--window-size=760,780 --screenshot="$work/$language.png" \
		"file://$PWD/internal/billing/document/testdata/$language-refunded.html" > "$work/log" 2>&1
	mv "$work/$language.png" "docs/receipts/$language.png"
done
