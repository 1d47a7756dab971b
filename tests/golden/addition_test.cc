// Additions are written in every format exactly as in the reference's samples.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tasks/addition/format.h"
#include "tasks/text_task.h"
#include "tests/golden/golden_folder.h"

namespace lengthwise::tasks::addition {
namespace {

using Json = nlohmann::json;
using Tokens = std::vector<int32_t>;

class GoldenAdditionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string path = golden::Folder("encodings_and_networks") + "/addition_samples.json";
    std::ifstream file(path);
    if (!file) GTEST_SKIP() << path << " is absent";
    golden_ = Json::parse(file);
  }
  Json golden_;
};

// `n` digits, least significant first.
Digits Operand(const Json& text, size_t n) {
  const auto written = text.get<std::string>();
  Digits digits;
  for (auto c = written.rbegin(); c != written.rend(); ++c) {
    digits.push_back(static_cast<uint8_t>(*c - '0'));
  }
  digits.resize(n, 0);
  return digits;
}

Tokens Parse(const std::vector<std::string>& texts) {
  Tokens tokens;
  for (const std::string& text : texts) tokens.push_back(ParseToken(text).value());
  return tokens;
}

TEST_F(GoldenAdditionTest, EveryFormatMatchesTheReference) {
  for (const Json& sample : golden_.at("samples")) {
    const auto n = sample.at("n").get<size_t>();
    const auto first_hint = sample.at("hint_start").get<int32_t>();
    const Problem problem{Operand(sample.at("a"), n), Operand(sample.at("b"), n)};
    const auto expect = [&](const char* name, Order order, bool padding) {
      const TextExample written =
          Write(problem, {.order = order, .zero_padding = padding, .index_hints = false}, 0);
      EXPECT_EQ(FormatTokens(written.tokens), sample.at(name).get<std::string>() + "<eos>");
    };
    expect("standard", Order::kStandard, false);
    expect("reversed", Order::kReversed, false);
    expect("standard_padded", Order::kStandard, true);
    expect("reversed_padded", Order::kReversed, true);
    expect("paired_reversed", Order::kPaired, true);

    EXPECT_EQ(Write(problem, {.order = Order::kStandard}, first_hint).tokens,
              Parse(sample.at("standard_hinted_tokens").get<std::vector<std::string>>()));
    const TextExample reversed = Write(problem, {.order = Order::kReversed}, first_hint);
    EXPECT_EQ(reversed.tokens,
              Parse(sample.at("reversed_hinted_tokens").get<std::vector<std::string>>()));
    EXPECT_EQ(Tokens(reversed.Prompt().begin(), reversed.Prompt().end()),
              Parse(sample.at("prompt_tokens").get<std::vector<std::string>>()));
    EXPECT_EQ(Tokens(reversed.Answer().begin(), reversed.Answer().end()),
              Parse(sample.at("answer_tokens").get<std::vector<std::string>>()));
    EXPECT_EQ(static_cast<int64_t>(reversed.tokens.size()),
              LongestWritten(static_cast<int64_t>(n), {}));
  }
  EXPECT_FALSE(golden_.at("samples").empty());
}

TEST_F(GoldenAdditionTest, CarriesMatchTheReference) {
  for (const Json& sample : golden_.at("samples")) {
    const auto n = sample.at("n").get<size_t>();
    Digits into = CarriesInto({Operand(sample.at("a"), n), Operand(sample.at("b"), n)});
    // The carry out of a digit goes into the next. The added digit has none.
    into.erase(into.begin());
    into.push_back(0);
    EXPECT_EQ(into, sample.at("carry_out_lsd_first").get<Digits>());
  }
}

TEST_F(GoldenAdditionTest, BlanksMatchTheReference) {
  for (const Json& sample : golden_.at("random_space")) {
    TextExample example;
    for (const char c : sample.at("text").get<std::string>()) {
      example.tokens.push_back(ParseToken(std::string(1, c)).value());
    }
    example.tokens.push_back(kEnd);
    const auto blanks = sample.at("spaces_before").get<std::vector<int>>();
    EXPECT_EQ(FormatTokens(InsertBlanks(example, blanks).tokens),
              sample.at("augmented").get<std::string>() + "<eos>");
  }
}

TEST_F(GoldenAdditionTest, HintCountMatchesTheReference) {
  EXPECT_EQ(kHints, golden_.at("hint_symbols").get<int32_t>());
}

// Null if the file is absent.
Json Baseline(const std::string& name) {
  std::ifstream file(golden::Folder("baselines") + "/" + name + ".json");
  return file ? Json::parse(file) : Json();
}

// Only digits and the two signs matter for ids; other characters are blanks here.
Tokens Characters(const std::string& text) {
  Tokens tokens;
  for (const char c : text) {
    tokens.push_back(c >= '0' && c <= '9' ? c - '0'
                     : c == '+'           ? kPlus
                     : c == '='           ? kEquals
                                          : kBlank);
  }
  return tokens;
}

// Adds an offset to the ids above 0.
Tokens Moved(Tokens ids, int32_t offset) {
  for (int32_t& id : ids) id += id > 0 ? offset : 0;
  return ids;
}

TEST(GoldenPositionIdsTest, AbacusMatchesTheReference) {
  const Json golden = Baseline("abacus");
  if (golden.is_null()) GTEST_SKIP() << "abacus.json is absent";
  int compared = 0;
  for (const Json& sample : golden.at("samples")) {
    const auto text = sample.at("text").get<std::string>();
    EXPECT_EQ(Moved(AbacusIds(Characters(text)), sample.at("offset").get<int32_t>()),
              sample.at("ids").get<Tokens>())
        << text;
    ++compared;
  }
  EXPECT_EQ(compared, 100);
}

TEST(GoldenPositionIdsTest, CouplingMatchesTheReference) {
  const Json golden = Baseline("position_coupling");
  if (golden.is_null()) GTEST_SKIP() << "position_coupling.json is absent";
  int compared = 0;
  for (const char* samples : {"addition", "addition_many"}) {
    for (const Json& sample : golden.at(samples)) {
      const auto query = sample.at("query").get<std::string>() + "=";
      const auto response = sample.at("response").get<std::string>();
      const Tokens ids = CoupledIds(
          Characters(query + response), query.size(), static_cast<int64_t>(response.size()),
          sample.at("reverse_input").get<bool>(), sample.at("reverse_output").get<bool>());
      EXPECT_EQ(Moved(ids, sample.at("start").get<int32_t>() - 1),
                sample.at("position_ids").get<Tokens>())
          << query << response;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 112);
}

}  // namespace
}  // namespace lengthwise::tasks::addition
