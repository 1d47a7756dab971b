#!/usr/bin/env bash
# What a report looks like at a desk and on a phone, with Debian's package chromium.
#
#   docs/report_pictures.sh REPORT.html
set -euo pipefail
report=$(realpath "$1")
cd "$(dirname "$0")"
picture() {
  chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --force-device-scale-factor="$4" \
    --window-size="$2,$3" --screenshot="$1" "file://$report" 2>/dev/null
}
picture report_desktop.png 1280 1400 1
picture report_phone.png 390 1400 1
