#include "server/coordination/names.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

using ::testing::HasSubstr;

TEST(NamesTest, NamesReadBack) {
  EXPECT_EQ(*ParseExperimentName(ExperimentName("sort-1")), "sort-1");
  const auto path = ParseTrialName(TrialName("sort-1", "lr0.1-seed0"));
  EXPECT_EQ(path->experiment, "sort-1");
  EXPECT_EQ(path->trial, "lr0.1-seed0");
}

TEST(NamesTest, OthersAreRefusedByField) {
  for (const char* name :
       {"", "quickstart-3", "experiments/", "experiments/a/", "experiments/a/b", "experiments/a b",
        "experiments/..\n", "trials/a", "experiments/a/trials", "experiments/a/trials/",
        "experiments//trials/t", "experiments/a/b/c", "experiments/a/trials/b/c"}) {
    const absl::Status refused = ParseExperimentName(name, "parent").status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("parent: is")) << name;
    EXPECT_THAT(ParseTrialName(name).status().ToString(), HasSubstr("name: is")) << name;
    EXPECT_THAT(ParseExperimentOrTrialName(name).status().ToString(), HasSubstr("name: is"))
        << name;
  }
  EXPECT_TRUE(ParseExperimentOrTrialName("experiments/a").ok());
  EXPECT_TRUE(ParseExperimentOrTrialName("experiments/a/trials/b").ok());
  EXPECT_FALSE(ParseExperimentName("experiments/a/trials/b").ok());
  EXPECT_FALSE(ParseTrialName("experiments/a").ok());
}

TEST(NamesTest, LongNameIsTruncatedInErrors) {
  // A cut by bytes would be in the middle of a two-byte character.
  std::string name = "experiments/a";
  while (name.size() < 10'000) name += "\u00e9";
  const absl::Status refused = ParseExperimentName(name).status();
  EXPECT_LT(refused.message().size(), 300u);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("(10001 bytes)"));
}

TEST(NamesTest, PageTokenIsBoundToItsList) {
  const std::string token = EncodePageToken("trials of a", 17);
  EXPECT_EQ(*DecodePageToken("trials of a", token), 17);
  EXPECT_EQ(*DecodePageToken("trials of a", ""), 0);
  EXPECT_FALSE(DecodePageToken("trials of b", token).ok());
  for (size_t i = 0; i < token.size(); ++i) {
    std::string bent = token;
    bent[i] = bent[i] == 'A' ? 'B' : 'A';
    if (i + 1 < token.size()) {
      EXPECT_FALSE(DecodePageToken("trials of a", bent).ok()) << bent;
    }
  }
  EXPECT_FALSE(DecodePageToken("trials of a", std::string(10'000, 'A')).ok());
}

TEST(NamesTest, PagesHaveADefaultSize) {
  EXPECT_EQ(PageSize(0), 100);
  EXPECT_EQ(PageSize(1000), 1000);
}

}  // namespace
}  // namespace lengthwise::server
