// Runs the tests of one file of a program that holds the tests of several (cc_tests in
// bazel/cc.bzl):
//
//   PROGRAM --tests_of=server/coordination/core_test.cc [flags of GoogleTest]
//
// Without --tests_of it runs all. A filter (--gtest_filter, or Bazel's --test_filter) and shards
// select among the file's tests.
#include <fnmatch.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace {

constexpr char kFlag[] = "--tests_of=";

// The path of a source as the build names it: one that another file includes begins with "./".
std::string PathOf(const testing::TestInfo& test) {
  const std::string path = test.file();
  return path.compare(0, 2, "./") == 0 ? path.substr(2) : path;
}

// GoogleTest's own syntax: patterns separated by ":"; those after the first "-" exclude.
bool MatchesAny(const std::string& patterns, const std::string& name) {
  size_t begin = 0;
  while (begin <= patterns.size()) {
    const size_t end = std::min(patterns.find(':', begin), patterns.size());
    if (fnmatch(patterns.substr(begin, end - begin).c_str(), name.c_str(), 0) == 0) return true;
    begin = end + 1;
  }
  return false;
}

bool Matches(const std::string& filter, const std::string& name) {
  const size_t minus = filter.find('-');
  const std::string wanted = minus == 0 ? "*" : filter.substr(0, minus);
  return MatchesAny(wanted, name) &&
         (minus == std::string::npos || !MatchesAny(filter.substr(minus + 1), name));
}

// Selects the tests of `file` that the filter accepts. Returns false if the file has no tests.
bool SelectTestsOf(const std::string& file) {
  const std::string filter = testing::GTEST_FLAG(filter);
  std::string selected;
  bool found = false;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *all.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j) {
      const testing::TestInfo& test = *suite.GetTestInfo(j);
      if (PathOf(test) != file) continue;
      found = true;
      const std::string name = std::string(suite.name()) + "." + test.name();
      if (Matches(filter, name)) selected += (selected.empty() ? "" : ":") + name;
    }
  }
  // Without patterns every test would match.
  testing::GTEST_FLAG(filter) = selected.empty() ? "none" : selected;
  return found;
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleMock(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], kFlag, std::strlen(kFlag)) != 0) {
      std::fprintf(stderr, "unknown argument %s\n", argv[i]);
      return 2;
    }
    const std::string file = argv[i] + std::strlen(kFlag);
    if (!SelectTestsOf(file)) {
      std::fprintf(stderr, "this program has no tests of %s\n", file.c_str());
      return 2;
    }
  }
  return RUN_ALL_TESTS();
}
