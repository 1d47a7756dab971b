#!/bin/sh
# Bazel's --workspace_status_command. Prints the source revision that platform/version.h reports.
revision=$(git rev-parse --short=12 HEAD 2>/dev/null) || exit 0
git diff --quiet HEAD 2>/dev/null || revision="$revision-modified"
echo "STABLE_SOURCE_REVISION $revision"
