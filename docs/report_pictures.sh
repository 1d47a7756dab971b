#!/usr/bin/env bash
# What a report looks like at a desk and on a phone, with Debian's package chromium.
#
#   docs/report_pictures.sh REPORT.html
set -euo pipefail
here=$(dirname "$0")
python3 "$here/../tests/python/chromium.py" "$1" "$here/report_desktop.png" 1280 1400
python3 "$here/../tests/python/chromium.py" "$1" "$here/report_phone.png" 390 1400
