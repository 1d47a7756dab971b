#!/usr/bin/env bash
# Writes published_files.cc: the given JSON files as C++ string literals.
set -euo pipefail
echo '// Made by embed.sh.'
echo '#include "client/commands/commands.h"'
echo 'namespace lengthwise::client {'
echo 'absl::Span<const PublishedFile> PublishedFiles() {'
echo '  static constexpr PublishedFile kFiles[] = {'
for file in $(printf '%s\n' "$@" | LC_ALL=C sort); do
  printf '{"%s", R"published(' "$(basename "$file" .json)"
  cat "$file"
  printf ')published"},\n'
done
echo '  };'
echo '  return kFiles;'
echo '}'
echo '}  // namespace lengthwise::client'
