// Recall and state-tracking tasks solve the samples of their authors' programs, and draw as these
// do.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tasks/chomsky/testing/chi_squared.h"
#include "tasks/chomsky/testing/drawn_sample.h"
#include "tests/golden/golden_folder.h"

namespace lengthwise::tasks {
namespace {

using chomsky::CatalogueTask;
using chomsky::DrawnSample;
using Json = nlohmann::json;
using Tokens = std::vector<int32_t>;

// Null if the file is absent.
Json Golden(const std::string& name) {
  std::ifstream file(golden::Folder("baselines") + "/" + name + ".json");
  return file ? Json::parse(file) : Json();
}

CatalogueTask Recall(const Json& parameters, bool random_fillers) {
  catalogue::Parameters given;
  given.Set("vocabulary", parameters.at("vocab_size").get<int64_t>());
  given.Set("pairs", parameters.at("num_kv_pairs").get<int64_t>());
  given.Set("power", parameters.value("power_a", 0.01));
  given.Set("random_fillers", random_fillers);
  return CatalogueTask("associative_recall", given);
}

TEST(GoldenRecallTest, AnswersWhatTheReferenceAsks) {
  const Json golden = Golden("mqar");
  if (golden.is_null()) GTEST_SKIP() << "baselines/mqar.json is absent";
  for (const Json& sample : golden.at("samples")) {
    const bool random_fillers = sample.at("random_non_queries").get<bool>();
    const CatalogueTask task = Recall(sample, random_fillers);
    const auto labels = sample.at("labels").get<Tokens>();
    const Tokens target = task.Solve(sample.at("inputs").get<Tokens>(), labels.size());
    EXPECT_EQ(task->InputLength(sample.at("input_seq_len").get<int64_t>()),
              static_cast<int64_t>(labels.size()));
    for (size_t i = 0; i < labels.size(); ++i) {
      // A random filler can be a key that the reference does not ask for.
      if (labels[i] == -100 && random_fillers) continue;
      EXPECT_EQ(target[i], labels[i] == -100 ? 0 : labels[i]) << sample;
    }
  }
  EXPECT_FALSE(golden.at("samples").empty());
}

TEST(GoldenRecallTest, QuestionsStandWhereTheReferenceDrawsThem) {
  const Json golden = Golden("mqar");
  if (golden.is_null()) GTEST_SKIP() << "baselines/mqar.json is absent";
  for (const Json& statistics : golden.at("statistics")) {
    const Json& parameters = statistics.at("parameters");
    const CatalogueTask task = Recall(parameters, /*random_fillers=*/true);
    const auto slots = statistics.at("slots").get<size_t>();
    const size_t context = 2 * parameters.at("num_kv_pairs").get<size_t>();
    std::vector<int64_t> any(slots), first(slots), fillers(2);
    for (uint32_t row = 0; row < parameters.at("num_examples").get<uint32_t>(); ++row) {
      const DrawnSample sample = task.Draw(parameters.at("input_seq_len").get<int64_t>(), row);
      for (size_t i = context; i < sample.input.size(); ++i) {
        if (sample.target[i] == 0) {
          ++fillers[sample.input[i] == 0 ? 0 : 1];
          continue;
        }
        ++any.at((i - context) / 2);
        if (sample.target[i] == sample.input[1]) ++first.at((i - context) / 2);
      }
    }
    EXPECT_TRUE(chomsky::Fits(first, statistics.at("p_of_one_draw").get<std::vector<double>>()));
    EXPECT_TRUE(chomsky::Fits(fillers, {1, parameters.at("vocab_size").get<double>() - 1}));
    // Pearson's test of homogeneity for two samples of the same size.
    const auto theirs = statistics.at("queries_in_slot").get<std::vector<int64_t>>();
    double statistic = 0;
    for (size_t slot = 0; slot < slots; ++slot) {
      const auto ours = static_cast<double>(any[slot]), other = static_cast<double>(theirs[slot]);
      statistic += std::pow(ours - other, 2) / (ours + other);
    }
    EXPECT_LT(statistic, chomsky::CriticalChiSquared(static_cast<double>(slots) - 1));
  }
}

TEST(GoldenFlipFlopTest, ReadsEveryDeterminedBit) {
  const Json golden = Golden("flip_flop");
  if (golden.is_null()) GTEST_SKIP() << "baselines/flip_flop.json is absent";
  const CatalogueTask task("flip_flop");
  for (const Json& sample : golden.at("samples")) {
    const auto ids = sample.at("ids").get<Tokens>();
    for (const Json& determined : sample.at("determined")) {
      const Tokens input(ids.begin(), ids.begin() + determined.at(0).get<int64_t>());
      EXPECT_EQ(task.Solve(input, 1), Tokens{determined.at(1).get<int32_t>()}) << sample;
    }
  }
  EXPECT_FALSE(golden.at("samples").empty());
}

TEST(GoldenWordProblemTest, ProductsAreTheReferences) {
  const Json golden = Golden("word_problem");
  if (golden.is_null()) GTEST_SKIP() << "baselines/word_problem.json is absent";
  for (const auto& [name, group] : golden.at("groups").items()) {
    catalogue::Parameters given;
    given.Set("group", name);
    const CatalogueTask task("word_problem", given);
    EXPECT_EQ(task->input_size(), group.at("size").get<int32_t>()) << name;
    EXPECT_EQ(task->output_size(), task->input_size()) << name;
    for (const Json& sample : group.at("samples")) {
      const auto target = sample.at("target").get<Tokens>();
      EXPECT_EQ(task.Solve(sample.at("input").get<Tokens>(), target.size()), target) << name;
    }
    if (!group.contains("permutations")) continue;
    const auto permutations = group.at("permutations").get<std::vector<Tokens>>();
    for (int32_t a = 0; a < task->input_size(); ++a) {
      for (int32_t b = 0; b < task->input_size(); ++b) {
        const Tokens& product = permutations[static_cast<size_t>(task.Solve({a, b}, 2)[1])];
        for (size_t i = 0; i < product.size(); ++i) {
          ASSERT_EQ(product[i], permutations[static_cast<size_t>(a)][static_cast<size_t>(
                                    permutations[static_cast<size_t>(b)][i])])
              << name << " " << a << " " << b;
        }
      }
    }
  }
  EXPECT_FALSE(golden.at("groups").empty());
}

}  // namespace
}  // namespace lengthwise::tasks
