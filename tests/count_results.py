#!/usr/bin/env python3
"""Counts the test cases of `bazel test` runs and prints "N passed, N failed[, N skipped]" as the last line.

  count_results.py FILE...

A FILE.json has the build events of a run. Each test's cases are read from its JUnit XML. A test that failed without
a failed case in its XML (a crash, a time-out, no build) counts as one failure. A failed.txt or skipped.txt has a
line for each other thing that failed or did not run. Exits with 1 if something failed or nothing ran.
"""

import json
import pathlib
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree


def main() -> int:
    passed, failed, skipped, interrupted = 0, [], [], 0
    lines = []
    for path in map(pathlib.Path, sys.argv[1:]):
        if path.suffix == ".json":
            lines += path.read_text().splitlines()
        else:
            (failed if path.stem == "failed" else skipped).extend(path.read_text().splitlines())
    for line in lines:
        try:
            event = json.loads(line)
        except json.JSONDecodeError:  # the last line of a run that was killed
            interrupted += 1
            continue
        label = event["id"].get("testResult", {}).get("label")
        if label is None:
            # A test target whose build failed has a summary without a result.
            target = event["id"].get("targetCompleted", {}).get("label")
            if target and event.get("aborted", {}).get("reason") == "USER_INTERRUPTED":
                interrupted += 1
            elif target and "aborted" in event:
                failed.append(f"{target}: not built ({event['aborted'].get('reason', 'unknown')})")
            elif target and not event.get("completed", {}).get("success"):
                failed.append(f"{target}: not built")
            continue
        if event.get("aborted", {}).get("reason") == "USER_INTERRUPTED":  # while it ran
            interrupted += 1
            continue
        if "aborted" in event:  # empty where Bazel has no reason, as when a test's directory cannot be made
            failed.append(f"{label}: not run ({event['aborted'].get('reason', 'unknown')})")
            continue
        result = event["testResult"]
        outputs = {output["name"]: output.get("uri", "") for output in result.get("testActionOutput", [])}
        cases = failures = 0
        if "test.xml" in outputs:
            path = urllib.parse.unquote(urllib.parse.urlparse(outputs["test.xml"]).path)
            for case in ElementTree.parse(path).iter("testcase"):
                name = f"{label} {case.get('classname', '')}.{case.get('name', '')}"
                cases += 1
                if case.find("failure") is not None or case.find("error") is not None:
                    failures += 1
                    failed.append(name)
                elif case.find("skipped") is not None or case.get("result") == "skipped":
                    reason = case.find("skipped")
                    message = reason.get("message", "") if reason is not None else ""
                    skipped.append(f"{name}: {' '.join(message.split()) or 'no reason given'}")
                elif case.get("status", "run") != "notrun":
                    passed += 1
        if result["status"] not in ("PASSED", "FLAKY") and failures == 0:
            failed.append(f"{label}: {result['status'].lower()}")
        elif cases == 0:
            failed.append(f"{label}: ran no test case")
    if interrupted:
        skipped.append(f"{interrupted} targets that did not finish")
    failed = list(dict.fromkeys(failed))
    for name in failed:
        print(f"failed: {name}")
    for name in skipped:
        print(f"skipped: {name}")
    line = f"{passed} passed, {len(failed)} failed"
    if skipped:
        line += f", {len(skipped)} skipped"
    print(line)
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
