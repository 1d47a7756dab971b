#include "tasks/numeric/relational_query.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tasks/all_tasks.h"
#include "tasks/chomsky/testing/chi_squared.h"
#include "tasks/numeric/testing/drawn_vector.h"

namespace lengthwise::tasks::numeric {
namespace {

catalogue::Parameters Operation(const std::string& operation) {
  catalogue::Parameters parameters;
  parameters.Set("operation", operation);
  return parameters;
}

catalogue::Parameters Noisy(const std::string& operation = "min") {
  catalogue::Parameters parameters = Operation(operation);
  parameters.Set("distractors", int64_t{2});
  return parameters;
}

std::string Text(const DrawnVector& drawn) { return RelationalText(drawn.inputs, drawn.tokens); }

// A sample's meaning, parsed from its text instead of its tokens.
struct Reading {
  std::map<int, double> values;
  std::vector<int> listed, asked;
  std::vector<std::string> marked;  // "+7"
  std::string operation;
};

Reading Read(const std::string& text) {
  Reading reading;
  const size_t query = text.find("Find ");
  const std::string list = text.substr(0, query), question = text.substr(query);
  static const std::regex item(R"(Cat([-+*_])?(\d+)|(\d+\.\d\d))");
  for (auto it = std::sregex_iterator(list.begin(), list.end(), item); it != std::sregex_iterator();
       ++it) {
    if ((*it)[3].matched) {
      reading.values[reading.listed.back()] = std::stod((*it)[3]);
    } else if ((*it)[1].matched) {
      reading.marked.push_back((*it)[1].str() + (*it)[2].str());
    } else {
      reading.listed.push_back(std::stoi((*it)[2]));
    }
  }
  reading.operation = question.substr(5, 3);
  for (auto it = std::sregex_iterator(question.begin(), question.end(), item);
       it != std::sregex_iterator(); ++it) {
    reading.asked.push_back(std::stoi((*it)[2]));
  }
  return reading;
}

double Answer(const Reading& reading) {
  std::vector<double> values;
  for (const int category : reading.asked) values.push_back(reading.values.at(category));
  if (reading.operation == "min") return *std::min_element(values.begin(), values.end());
  if (reading.operation == "max") return *std::max_element(values.begin(), values.end());
  double sum = 0;
  for (const double value : values) sum += value;
  return sum;
}

class EveryVariantTest : public ::testing::TestWithParam<catalogue::Parameters> {};

TEST_P(EveryVariantTest, TargetAnswersTheText) {
  const EntryTask task(RelationalQuery(), GetParam());
  for (const bool unseen : {false, true}) {
    for (uint32_t i = 0; i < 300; ++i) {
      const Domain domain{.n = 8, .scale = unseen ? 4.0 : 1.0, .unseen = unseen};
      ASSERT_TRUE(task->Check(domain).ok());
      const DrawnVector drawn = task.Draw(domain, i);
      for (const int32_t token : drawn.tokens) {
        ASSERT_GE(token, kNumberRow);
        ASSERT_LT(token, task->vocabulary());
      }
      const std::string text = Text(drawn);
      const Reading reading = Read(text);
      EXPECT_NEAR(drawn.targets[0], Answer(reading), 1e-9) << text;
      EXPECT_EQ(std::count(drawn.targets.begin() + 1, drawn.targets.end(), 0.0),
                static_cast<std::ptrdiff_t>(drawn.targets.size()) - 1);
      ASSERT_EQ(reading.listed.size(), 8U) << text;
      EXPECT_EQ(reading.values.size(), 8U) << text;
      EXPECT_TRUE(std::is_sorted(reading.listed.begin(), reading.listed.end()));
      EXPECT_GE(reading.listed.front(), unseen ? 21 : 1);
      EXPECT_LE(reading.listed.back(), unseen ? 40 : 20);
      EXPECT_EQ(std::set<int>(reading.asked.begin(), reading.asked.end()).size(), 4U) << text;
      for (const auto& [category, value] : reading.values) {
        EXPECT_GE(value, 0);
        EXPECT_LE(value, 5 * domain.scale);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Variants, EveryVariantTest, ::testing::ValuesIn([] {
                           std::vector<catalogue::Parameters> variants;
                           for (const char* operation : {"min", "max", "sum", "min_or_max"}) {
                             variants.push_back(Operation(operation));
                             variants.push_back(Noisy(operation));
                             variants.push_back(Noisy(operation));
                             variants.back().Set("tokenize_numbers", true);
                             variants.push_back(Operation(operation));
                             variants.back().Set("query_says_categories", false);
                           }
                           return variants;
                         }()));

TEST(RelationalQueryTest, ReadsAsThePapersExamples) {
  static const std::regex papers(
      R"((Cat\d+ \d+\.\d\d ){8}Find min of Cat\d+, Cat\d+, Cat\d+ and Cat\d+)");
  static const std::regex programs(
      R"((Cat\d+ \d+\.\d\d ){8}Find min of categories Cat\d+, Cat\d+, Cat\d+ and Cat\d+)");
  const EntryTask program(RelationalQuery());
  EXPECT_TRUE(std::regex_match(Text(program.Draw({}, 0)), programs)) << Text(program.Draw({}, 0));
  catalogue::Parameters parameters;
  parameters.Set("query_says_categories", false);
  const EntryTask paper(RelationalQuery(), parameters);
  EXPECT_TRUE(std::regex_match(Text(paper.Draw({}, 0)), papers)) << Text(paper.Draw({}, 0));
}

// 8 names of 4 characters and 8 numbers, "Find min of categories ", 4 names, 2 commas with a blank,
// " and " and the scratchpad. A distractor has 5 characters.
TEST(RelationalQueryTest, RowsAreCharactersNamesAndNumbers) {
  EXPECT_EQ(EntryTask(RelationalQuery())->Rows(8), 8 * 4 + 8 + 23 + 4 * 4 + 2 * 2 + 5 + 1);
  EXPECT_EQ(EntryTask(RelationalQuery(), Noisy())->Rows(8),
            EntryTask(RelationalQuery())->Rows(8) + 2 * 5);
  catalogue::Parameters tokens;
  tokens.Set("tokenize_numbers", true);
  EXPECT_EQ(EntryTask(RelationalQuery(), tokens)->Rows(8),
            EntryTask(RelationalQuery())->Rows(8) + 8 * 4);
}

TEST(RelationalQueryTest, OnlyTheFirstOutputCounts) {
  const std::vector<uint8_t> mask = EntryTask(RelationalQuery()).Mask(8);
  EXPECT_EQ(mask[0], 1);
  EXPECT_EQ(std::count(mask.begin(), mask.end(), uint8_t{0}),
            static_cast<std::ptrdiff_t>(mask.size()) - 1);
}

TEST(RelationalQueryTest, DistractorsAreMarkedAtAnyPlace) {
  for (const bool unseen : {false, true}) {
    const EntryTask task(RelationalQuery(), Noisy());
    std::set<char> marks;
    std::set<size_t> places;
    for (uint32_t i = 0; i < 2000; ++i) {
      const DrawnVector drawn = task.Draw({.unseen = unseen}, i);
      const std::string text = Text(drawn);
      const Reading reading = Read(text);
      ASSERT_EQ(reading.marked.size(), 2U) << text;
      EXPECT_NE(reading.marked[0].substr(1), reading.marked[1].substr(1)) << text;
      for (const std::string& marked : reading.marked) {
        marks.insert(marked[0]);
        EXPECT_EQ(reading.values.count(std::stoi(marked.substr(1))), 1U) << text;
      }
      places.insert(text.find_first_of("+-*_"));
    }
    EXPECT_EQ(marks, unseen ? (std::set<char>{'*', '_'}) : (std::set<char>{'+', '-'}));
    // The first of two among 18 elements has 17 places; names of one and two digits add more.
    EXPECT_GE(places.size(), 17U);
  }
}

TEST(RelationalQueryTest, UnseenMarksFollowThePapersText) {
  catalogue::Parameters parameters = Noisy();
  parameters.Set("unseen_marks", std::string("-*"));
  const EntryTask task(RelationalQuery(), parameters);
  std::set<char> marks;
  for (uint32_t i = 0; i < 50; ++i) {
    for (const std::string& marked : Read(Text(task.Draw({.unseen = true}, i))).marked) {
      marks.insert(marked[0]);
    }
  }
  EXPECT_EQ(marks, (std::set<char>{'-', '*'}));
}

TEST(RelationalQueryTest, TokenizedNumbersAreUnchanged) {
  catalogue::Parameters parameters;
  parameters.Set("tokenize_numbers", true);
  const EntryTask task(RelationalQuery(), parameters), numbers(RelationalQuery());
  for (uint32_t i = 0; i < 100; ++i) {
    const DrawnVector drawn = task.Draw({.scale = 10}, i);
    EXPECT_EQ(std::count(drawn.tokens.begin(), drawn.tokens.end(), kNumberRow), 0);
    EXPECT_EQ(std::count(drawn.inputs.begin(), drawn.inputs.end(), 0.0),
              static_cast<std::ptrdiff_t>(drawn.inputs.size()));
    EXPECT_EQ(Read(Text(drawn)).values, Read(Text(numbers.Draw({.scale = 10}, i))).values);
  }
}

TEST(RelationalQueryTest, QueriesAndOperationsAreUniform) {
  const EntryTask task(RelationalQuery(), Operation("min_or_max"));
  std::vector<int64_t> operations(2), first_asked(8);
  for (uint32_t i = 0; i < 4000; ++i) {
    const Reading reading = Read(Text(task.Draw({}, i)));
    ++operations.at(reading.operation == "min" ? 0 : 1);
    const auto place =
        std::find(reading.listed.begin(), reading.listed.end(), reading.asked.front());
    ++first_asked.at(static_cast<size_t>(place - reading.listed.begin()));
  }
  EXPECT_TRUE(chomsky::FitsUniform(operations));
  EXPECT_TRUE(chomsky::FitsUniform(first_asked));
}

TEST(RelationalQueryTest, RefusesDomainsWithoutSamples) {
  catalogue::Parameters parameters;
  parameters.Set("tokenize_numbers", true);
  const EntryTask task(RelationalQuery()), tokens(RelationalQuery(), parameters);
  EXPECT_FALSE(task->Check({.n = 3}).ok());
  EXPECT_FALSE(task->Check({.n = 21}).ok());
  EXPECT_FALSE(task->Check({.n = 8, .scale = 0}).ok());
  EXPECT_TRUE(task->Check({.n = 20, .scale = 50}).ok());
  EXPECT_TRUE(tokens->Check({.n = 8, .scale = 10}).ok());
  EXPECT_FALSE(tokens->Check({.n = 8, .scale = 20}).ok()) << "100.00 has three digits";
}

}  // namespace
}  // namespace lengthwise::tasks::numeric
