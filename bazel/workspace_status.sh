#!/bin/sh
# Bazel's workspace status: what platform/version.h says of the source.
revision=$(git rev-parse --short=12 HEAD 2>/dev/null) || exit 0
git diff --quiet HEAD 2>/dev/null || revision="$revision-modified"
echo "STABLE_SOURCE_REVISION $revision"
