#!/usr/bin/env python3
"""Checks that headers which take seconds to compile are included only where they are needed.

    tests/documentation/check_includes.py        (from the root of the source tree; tests/run.sh does it)

Prints each other file that includes one, with what to include instead, and fails. Seconds are of g++ 12 for the
header alone, on one core.
"""
import re
import subprocess
import sys

# A header, the files that may include it, and what others do.
RULES = (
    (r"CLI/CLI\.hpp",  # 4 s, and 5 s more for each file that adds options
     r"command_line/\w+\.cc|.*(_main|benchmark)\.cc|benchmarks/.*"
     r"|server/simulation/simulate\.cc|tests/faults/scripted_worker\.cc",
     "commands describe their options with command_line/definition.h"),
    (r"proto/\w+\.grpc\.pb\.h",  # 4 s
     r"client/connection/connection\.cc|worker/connection/\w+\.(h|cc)"
     r"|.*_test\.cc|.*(fixture|fake_worker_service)\.h|tests/.*|benchmarks/.*",
     "messages alone are in the .pb.h; only a file that makes calls needs the stubs"),
    (r"(ATen/ATen|torch/torch|torch/all)\.h",  # 8 s
     r"models/layers/testing/far_device\.cc",
     "include ATen/core/Tensor.h and ATen/ops/NAME.h for each at::NAME"),
)
INCLUDE = re.compile(r'^#include ["<]([^">]+)[">]', re.MULTILINE)


def main():
    files = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.h", "*.cc", "*.cu"],
                           check=True, capture_output=True, text=True).stdout.split()
    problems = []
    for name in files:
        with open(name, encoding="utf-8") as file:
            included = INCLUDE.findall(file.read())
        for header, allowed, advice in RULES:
            for found in included:
                if re.fullmatch(header, found) and not re.fullmatch(allowed, name):
                    problems.append(f"{name}: includes {found}, which is slow to compile: {advice}")
    print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
