#include "server/coordination/names.h"

#include <string>

#include "gtest/gtest.h"

namespace lengthwise::server {
namespace {

TEST(NamesTest, NamesReadBack) {
  EXPECT_EQ(*ParseExperimentName(ExperimentName("sort-1")), "sort-1");
  const auto path = ParseTrialName(TrialName("sort-1", "lr0.1-seed0"));
  EXPECT_EQ(path->experiment, "sort-1");
  EXPECT_EQ(path->trial, "lr0.1-seed0");
}

TEST(NamesTest, MalformedNamesAreRefused) {
  for (const std::string name :
       {"", "sort-1", "experiments/", "experiments//trials/t", "experiments/a/trials/",
        "experiments/a/b/c", "experiments/a/trials/b/c", "trials/a"}) {
    EXPECT_EQ(ParseExperimentOrTrialName(name).status().code(), absl::StatusCode::kInvalidArgument)
        << name;
  }
  EXPECT_FALSE(ParseExperimentName("experiments/a/trials/b").ok());
  EXPECT_FALSE(ParseTrialName("experiments/a").ok());
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
