// Runs the commands that the documents show (run_documented.py selects them) and compares their
// output.
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "platform/child_process.h"

namespace lengthwise {
namespace {

// Exit code of run_documented.py if a program that the document runs is not installed.
constexpr int kNotInstalled = 77;

class DocumentationTest : public testing::TestWithParam<const char*> {};

TEST_P(DocumentationTest, CommandsPrintTheDocumentedOutput) {
  if (std::getenv("LENGTHWISE_TEST_PYTHON") == nullptr) {
    GTEST_SKIP()
        << "LENGTHWISE_TEST_PYTHON is not set to a Python with the packages of the command line; "
           "tests/run.sh installs one";
  }
  const std::string log = testing::TempDir() + "/log";
  std::ofstream(log, std::ios::trunc).close();
  const auto process = platform::ChildProcess::Start(
      {.arguments = {"/usr/bin/python3", "tests/documentation/run_documented.py", GetParam(),
                     "--lengthwise", "client/lengthwise", "--lengthwise_server",
                     "server/lengthwise_server", "--lengthwise_worker", "worker/lengthwise_worker"},
       .environment = {{"TEST_TMPDIR", testing::TempDir()}},
       .output_file = log});
  ASSERT_TRUE(process.ok()) << process.status();
  const auto exit = (*process)->WaitFor(absl::Minutes(14));
  std::ifstream file(log);
  const std::string said((std::istreambuf_iterator<char>(file)), {});
  ASSERT_TRUE(exit.has_value()) << said;
  if (exit->code == kNotInstalled) GTEST_SKIP() << said;
  EXPECT_TRUE(exit->ok()) << said;
}

// Turns "docs/using.md" into docs_using.
std::string NameOf(const testing::TestParamInfo<const char*>& document) {
  return absl::StrReplaceAll(document.param, {{"/", "_"}, {".md", ""}});
}

INSTANTIATE_TEST_SUITE_P(
    Documents, DocumentationTest,
    testing::Values("README.md", "docs/access.md", "docs/installing.md", "docs/operations.md",
                    "docs/papers.md", "docs/releasing.md", "docs/service.md", "docs/using.md",
                    "docs/your_own_data.md", "docs/your_own_encoding.md",
                    "docs/your_own_network.md", "experiments/README.md",
                    "experiments/chomsky_hierarchy/README.md",
                    "experiments/decimal_addition/README.md", "experiments/latin_square/README.md",
                    "experiments/positional_attention/README.md", "experiments/published/README.md",
                    "experiments/randomized_positional_encodings/README.md",
                    "experiments/positions/README.md", "experiments/state_tracking/README.md"),
    NameOf);

}  // namespace
}  // namespace lengthwise
