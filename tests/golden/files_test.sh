#!/usr/bin/env bash
# The reference values are those that the READMEs describe: no file is missing, changed or new. A comparison whose file
# is missing skips itself, because $LENGTHWISE_GOLDEN_DIR may hold fewer files.
set -euo pipefail
cd tests/golden
sha256sum --check --strict --quiet SHA256SUMS
diff <(sed 's/^[0-9a-f]*  //' SHA256SUMS) <(find -L baselines encodings_and_networks randomized_positional_encodings -type f ! -name README.md | LC_ALL=C sort)
echo "$(wc -l <SHA256SUMS) files"
