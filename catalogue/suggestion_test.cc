#include "catalogue/suggestion.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace lengthwise::catalogue {
namespace {

TEST(NameDistanceTest, CountsEditsAndOneForATransposition) {
  EXPECT_EQ(NameDistance("rope", "rope"), 0);
  EXPECT_EQ(NameDistance("rotery", "rotary"), 1);
  EXPECT_EQ(NameDistance("kitten", "sitting"), 3);
  EXPECT_EQ(NameDistance("seeds", "sedes"), 1);
  EXPECT_EQ(NameDistance("", "abc"), 3);
}

TEST(NameDistanceTest, IgnoresCaseAndSeparators) {
  EXPECT_EQ(NameDistance("SinCos", "sin_cos"), 0);
  EXPECT_EQ(NameDistance("bucket-sort", "bucket_sort"), 0);
}

TEST(SuggestionTest, NamesTheNearestOrListsAcceptedNames) {
  const std::vector<std::string> accepted = {"rope", "alibi", "none"};
  EXPECT_EQ(Suggestion("alibbi", accepted), "; did you mean \"alibi\"?");
  EXPECT_EQ(Suggestion("transformer_xl", accepted), "; accepted: alibi, none, rope");
  EXPECT_EQ(Suggestion("", accepted), "; accepted: alibi, none, rope");
  EXPECT_EQ(Suggestion("x", {}), "");
}

TEST(SuggestionTest, PrefersNamesWithThePrefix) {
  const std::vector<std::string> accepted = {"even_pairs", "reverse_string", "reversal"};
  EXPECT_EQ(Suggestion("revers", accepted), "; did you mean \"reversal\"?");
  EXPECT_EQ(Suggestion("reverse", accepted), "; did you mean \"reverse_string\"?");
  EXPECT_EQ(Suggestion("string", accepted), "; did you mean \"reverse_string\"?");
  EXPECT_EQ(Suggestion("cosine", {"constant", "plateau", "warmup_cosine"}),
            "; did you mean \"warmup_cosine\"?");
}

TEST(SuggestionTest, KnowsSynonymsAndTheirMisspellings) {
  const std::vector<std::string> accepted = {"binary", "rope", "none"};
  EXPECT_EQ(Suggestion("rotary", accepted), "; did you mean \"rope\"?");
  EXPECT_EQ(Suggestion("Rotery", accepted), "; did you mean \"rope\"?");
  // Suggests accepted names only.
  EXPECT_EQ(Suggestion("rotary", {"binary", "none"}), "; accepted: binary, none");
}

TEST(SuggestionTest, SuggestsNothingFar) {
  for (const char* given : {"xyz", "fo", "training", "constrained"}) {
    EXPECT_EQ(Suggestion(given, {"binary", "rope"}), "; accepted: binary, rope") << given;
  }
}

TEST(SuggestionTest, NearestIsTheNameThatIsSuggested) {
  const std::vector<std::string> accepted = {"binary", "rope"};
  EXPECT_EQ(Nearest("rotary", accepted), &accepted[1]);
  EXPECT_EQ(Nearest("training", accepted), nullptr);
}

TEST(SuggestionTest, CutsALongList) {
  std::vector<std::string> accepted;
  accepted.reserve(25);
  for (int i = 0; i < 25; ++i) accepted.push_back("name_number_" + std::to_string(i));
  const std::string text = Suggestion("zebra", accepted);
  EXPECT_NE(text.find(", ..."), std::string::npos);
  EXPECT_LT(text.size(), 400U);
}

}  // namespace
}  // namespace lengthwise::catalogue
