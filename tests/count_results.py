#!/usr/bin/env python3
"""Counts the test cases of `bazel test` runs and prints "N passed, N failed[, N skipped]" as the last line.

  count_results.py BUILD_EVENTS.json...

Reads the build events for the tests that ran and each test's JUnit XML for its cases. A test that failed without a failed
case in its XML (a crash, a time-out, no build) counts as one failure. Exits with 1 when something failed or nothing ran.
"""

import json
import pathlib
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree


def main() -> int:
    passed, failed, skipped = 0, [], []
    for line in (line for path in sys.argv[1:] for line in pathlib.Path(path).read_text().splitlines()):
        event = json.loads(line)
        label = event["id"].get("testResult", {}).get("label")
        if label is None:
            # A test target whose build failed has a summary without a result.
            target = event["id"].get("targetCompleted", {}).get("label")
            if target and event.get("aborted"):
                failed.append(f"{target}: not built ({event['aborted'].get('reason', 'unknown')})")
            elif target and not event.get("completed", {}).get("success"):
                failed.append(f"{target}: not built")
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
