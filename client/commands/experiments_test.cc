#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/commands/commands_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::client {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(CommandsTest, SubmitsTheTextOnceWithARequestId) {
  EXPECT_EQ(Run({"submit", File("e.yaml", kSpecification), "--owner", "ada"}), kSuccess);
  EXPECT_THAT(out_, StartsWith("Submitted e-1: 6 trials in 2 packs\n  lengthwise watch e-1"));
  const auto requests = server_.create_requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_EQ(requests[0].specification_text().text(), kSpecification);
  EXPECT_EQ(requests[0].owner(), "ada");
  EXPECT_EQ(requests[0].request_id().size(), 24u);
}

TEST_F(CommandsTest, AdvisesUpgradeOfServerWithoutEncoding) {
  // The server rejects a comment that this client ignores.
  const std::string path = File("e.yaml", absl::StrCat(kSpecification, "# rotery\n"));
  EXPECT_EQ(Run({"submit", path}), kUsage);
  EXPECT_THAT(err_, HasSubstr("encodings[1]: unknown encoding \"rotery\""));
  EXPECT_THAT(err_, HasSubstr("This client accepts " + path +
                              ": the server is of an older "
                              "release; upgrade the server"));
}

TEST_F(CommandsTest, DryRunSubmitsNothing) {
  EXPECT_EQ(Run({"submit", File("e.yaml", kSpecification), "--dry-run"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("e: 6 trials in 2 packs; nothing was submitted\n"));
  EXPECT_THAT(out_, HasSubstr("Estimated time: unknown: no trials of the same"));
  EXPECT_TRUE(server_.create_requests().empty());
}

TEST_F(CommandsTest, ShowsTrialWithUnreadableHistory) {
  server_.AddExperiment("e-1", {"none"});
  EXPECT_EQ(Run({"show", "e/0"}), kSuccess);
  EXPECT_THAT(out_, HasSubstr("history       cannot be read: "));
}

TEST_F(CommandsTest, ShowsParametersInTheOrderOfTheirNames) {
  server_.AddExperiment("e-1", {"none"});
  v1::TrialSpecification specification;
  specification.mutable_network()->set_name("encoder");
  std::string sorted;
  for (int i = 29; i >= 10; --i) {
    const std::string name = absl::StrCat("p", i);
    (*specification.mutable_network()->mutable_parameters())[name].set_number_value(i);
    sorted = absl::StrCat(name, "=", i, sorted.empty() ? "" : ", ", sorted);
  }
  server_.SetSpecification("experiments/e-1/trials/bucket_sort-none", specification);
  EXPECT_EQ(Run({"show", "e/0"}), kSuccess);
  const std::string shown =
      absl::StrJoin(absl::StrSplit(out_, absl::ByAnyChar(" \n"), absl::SkipEmpty()), " ");
  EXPECT_THAT(shown, HasSubstr(absl::StrCat("encoder (", sorted, ")")));
}

}  // namespace
}  // namespace lengthwise::client
