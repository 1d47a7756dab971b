#!/usr/bin/env bash
# Writes assets.cc: the style sheet and the script of reports as C++ string literals.
set -euo pipefail
echo '// Made by embed.sh.'
echo '#include "client/report/assets.h"'
echo 'namespace lengthwise::client {'
printf 'const absl::string_view kReportStyle = R"asset('
cat "$1"
echo ')asset";'
printf 'const absl::string_view kAttentionViewer = R"asset('
cat "$2"
echo ')asset";'
echo '}  // namespace lengthwise::client'
