#!/usr/bin/env bash
# Writes the text of child.py as a C++ string literal.
set -euo pipefail
echo '// Made by embed.sh.'
echo '#include "models/python_network/process.h"'
echo 'namespace lengthwise::models {'
echo 'absl::string_view ChildSource() {'
printf '  return R"python('
cat "$1"
echo ')python";'
echo '}'
echo '}  // namespace lengthwise::models'
