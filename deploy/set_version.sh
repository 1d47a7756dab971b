#!/usr/bin/env bash
# Writes a release's version, and today as its date, wherever they stand.
#
#   deploy/set_version.sh VERSION
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?usage: deploy/set_version.sh VERSION}
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || { echo "a version is three numbers, as 0.2.0; got $version" >&2; exit 1; }
today=$(date -u +%F)

# replace FILE PATTERN TEXT: in the line that the pattern finds.
replace() {
  grep -qE "$2" "$1" || { echo "$1 has no line of the pattern $2" >&2; exit 1; }
  sed -i -E "s/$2/$3/" "$1"
}
replace platform/version.h '(kVersion\[\] = )".*"' "\\1\"$version\""
replace python/pyproject.toml '^version = ".*"' "version = \"$version\""
replace python/lengthwise/version.py '^__version__ = ".*"' "__version__ = \"$version\""
replace CITATION.cff '^version: .*' "version: $version"
replace CITATION.cff '^date-released: .*' "date-released: $today"
for part in server workers; do
  replace "deploy/kubernetes/example/$part/kustomization.yaml" '(newTag: )"[^"]*"' "\\1\"$version\""
done
grep -q '^## \[Unreleased\]' CHANGELOG.md || { echo "CHANGELOG.md has no part [Unreleased]" >&2; exit 1; }
sed -i "s/^## \[Unreleased\]/&\n\n## [$version] - $today/" CHANGELOG.md
