#!/usr/bin/env python3
"""The count at the end of tests/run.sh, from build events as Bazel writes them."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

XML = '<testsuites><testsuite><testcase name="%s" status="run"/></testsuite></testsuites>'


def result(label: str, status: str, xml: pathlib.Path) -> dict:
    outputs = [{"name": "test.xml", "uri": xml.as_uri()}]
    return {"id": {"testResult": {"label": label}}, "testResult": {"status": status, "testActionOutput": outputs}}


class CountResultsTest(unittest.TestCase):
    def count(self, *events: dict) -> tuple[int, str]:
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory) / "events.json"
            path.write_text("".join(json.dumps(event) + "\n" for event in events))
            done = subprocess.run(
                [sys.executable, "tests/count_results.py", path], capture_output=True, text=True, check=False
            )
            self.assertEqual(done.stderr, "")
            return done.returncode, done.stdout.splitlines()[-1]

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.xml = pathlib.Path(directory.name) / "test.xml"
        self.xml.write_text(XML % "Works")

    def test_counts_cases(self) -> None:
        self.assertEqual(self.count(result("//:a", "PASSED", self.xml)), (0, "1 passed, 0 failed"))
        self.assertEqual(self.count(result("//:a", "TIMEOUT", self.xml)), (1, "1 passed, 1 failed"))
        self.assertEqual(self.count(), (1, "0 passed, 0 failed"))

    def test_interrupted_tests_are_skipped(self) -> None:
        aborted = {"reason": "USER_INTERRUPTED"}
        events = [
            result("//:done", "PASSED", self.xml),
            {"id": {"testResult": {"label": "//:running"}}, "aborted": aborted},
            {"id": {"testSummary": {"label": "//:running"}}, "aborted": aborted},
            {"id": {"targetCompleted": {"label": "//:late"}}, "aborted": aborted, "lastMessage": True},
        ]
        self.assertEqual(self.count(*events), (0, "1 passed, 0 failed, 1 skipped"))

    def test_aborted_tests_fail(self) -> None:
        for reason in {"reason": "INTERNAL"}, {}:  # {}: Bazel cannot make the test's directory; it says so twice
            aborted = {"id": {"testResult": {"label": "//:a"}}, "aborted": reason}
            self.assertEqual(self.count(result("//:b", "PASSED", self.xml), aborted, aborted), (1, "1 passed, 1 failed"))

    def test_unbuilt_targets_fail(self) -> None:
        broken = {"id": {"targetCompleted": {"label": "//:broken"}}, "completed": {}}
        self.assertEqual(self.count(result("//:a", "PASSED", self.xml), broken), (1, "1 passed, 1 failed"))


if __name__ == "__main__":
    unittest.main()
