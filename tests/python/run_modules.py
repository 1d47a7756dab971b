"""Runs unittest modules and writes JUnit XML to $XML_OUTPUT_FILE for Bazel and tests/count_results.py."""
import os
import pathlib
import sys
import time
import unittest
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator


class Recorder(unittest.TextTestResult):
    """Records an XML element for each case."""

    def __init__(self, *arguments, **keywords):
        super().__init__(*arguments, **keywords)
        self.suite = ElementTree.Element("testsuite", name="python")

    def startTest(self, test):
        super().startTest(test)
        self.started = time.monotonic()

    def _add(self, test, kind=None, message=""):
        name = getattr(test, "_testMethodName", str(test))
        took = f"{time.monotonic() - getattr(self, 'started', time.monotonic()):.3f}"
        case = ElementTree.SubElement(self.suite, "testcase", classname=type(test).__name__, name=name, time=took)
        if kind:
            ElementTree.SubElement(case, kind, message=message)

    def addSuccess(self, test):
        super().addSuccess(test)
        self._add(test)

    def addFailure(self, test, error):
        super().addFailure(test, error)
        self._add(test, "failure", self.failures[-1][1])

    def addError(self, test, error):
        super().addError(test, error)
        self._add(test, "error", self.errors[-1][1])

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._add(test, "skipped", reason)


def cases_of(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from cases_of(one)
        else:
            yield one


def of_this_shard(suite: unittest.TestSuite) -> unittest.TestSuite:
    """The cases that Bazel wants of this process; all without shards."""
    if status := os.environ.get("TEST_SHARD_STATUS_FILE"):
        pathlib.Path(status).touch()
    shard, shards = (int(os.environ.get(name, default)) for name, default in (("TEST_SHARD_INDEX", 0), ("TEST_TOTAL_SHARDS", 1)))
    return unittest.TestSuite(list(cases_of(suite))[shard::shards])


def main() -> int:
    modules = [pathlib.Path(path) for path in sys.argv[1:]]
    sys.path[:0] = [str(pathlib.Path(__file__).parent), *{str(module.parent) for module in modules}]
    names = [module.stem for module in modules]
    suite = of_this_shard(unittest.defaultTestLoader.loadTestsFromNames(names))
    result = unittest.TextTestRunner(verbosity=2, resultclass=Recorder).run(suite)
    if path := os.environ.get("XML_OUTPUT_FILE"):
        root = ElementTree.Element("testsuites")
        root.append(result.suite)
        ElementTree.ElementTree(root).write(path)
    return 0 if result.wasSuccessful() and result.testsRun > 0 else 1


if __name__ == "__main__":
    sys.exit(main())
