// New networks have the reference's number of parameters and its distribution of initial weights.

#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "models/encodings/catalogue.h"
#include "models/networks/catalogue.h"
#include "models/networks/network.h"
#include "tests/golden/golden_folder.h"
#include "tests/golden/reference_model.h"

namespace lengthwise::golden {
namespace {

using nlohmann::json;

constexpr char kReferenceFolder[] = "randomized_positional_encodings";

json ReadIfThere(const std::string& name) {
  std::ifstream file(Folder(std::string(kReferenceFolder) + "/" + name));
  return file ? json::parse(file) : json();
}

template <typename Entry>
catalogue::Parameters Defaults(absl::Span<const Entry* const> entries, const std::string& name) {
  std::vector<catalogue::Problem> problems;
  for (const Entry* entry : entries) {
    if (entry->name == name) return catalogue::Resolve(*entry, {}, name, problems);
  }
  return {};
}

// The paper's encoder: 5 blocks, 8 heads, d_model 64.
models::ParameterLayout PaperLayout(const std::string& encoding, int64_t inputs, int64_t outputs,
                                    int64_t extra_inputs = 0) {
  models::ParameterLayout layout;
  catalogue::Parameters encoder = Defaults(models::NetworkEntries(), "encoder");
  encoder.Set("extra_input_columns", extra_inputs);
  const auto network = models::CreateNetwork(
      "encoder", encoder, encoding, Defaults(models::EncodingEntries(), encoding),
      {.input_columns = inputs, .output_columns = outputs}, layout);
  EXPECT_TRUE(network.ok()) << network.status();
  return layout;
}

TEST(InitializationTest, ThereAreGoldenFiles) { EXPECT_EQ(WhyNothingIsIn(kReferenceFolder), ""); }

TEST(InitializationTest, NetworksHaveTheReferenceSize) {
  const json counts = ReadIfThere("param_counts.json");
  if (counts.is_null()) GTEST_SKIP() << "no " << kReferenceFolder << "/param_counts.json";
  for (const auto& [task, entry] : counts.at("counts").items()) {
    const std::vector<std::pair<std::string, std::string>> encodings = {
        {"none", "none"},   {"sin_cos", "sin_cos"}, {"learned", "learnt_2048"},
        {"alibi", "alibi"}, {"rope", "rotary"},     {"relative", "relative"}};
    for (const auto& [encoding, reference] : encodings) {
      const int64_t inputs = entry.at("input_size").get<int64_t>() + 1;
      const int64_t outputs = entry.at("output_size");
      EXPECT_EQ(PaperLayout(encoding, inputs, outputs).parameter_count(),
                entry.at("computation_steps_mult_0").at(reference))
          << task << " " << encoding;
      EXPECT_EQ(PaperLayout(encoding, inputs, outputs, 1).parameter_count(),
                entry.at("computation_steps_mult_1").at(reference))
          << task << " " << encoding;
    }
  }
}

TEST(InitializationTest, ExtraColumnGivesThePrintedSizes) {
  EXPECT_EQ(PaperLayout("sin_cos", 3, 2, 1).parameter_count(), 249'026);
  EXPECT_EQ(PaperLayout("relative", 3, 2, 1).parameter_count(), 270'146);
}

TEST(InitializationTest, WeightsHaveTheReferenceDistribution) {
  const json statistics = ReadIfThere("init_stats.json");
  if (statistics.is_null()) GTEST_SKIP() << "no " << kReferenceFolder << "/init_stats.json";
  const auto layout = PaperLayout("relative", 3, 2);
  std::vector<double> row(static_cast<size_t>(layout.row_size()));
  models::InitializeRow(layout, 17, absl::MakeSpan(row));

  std::map<std::string, json> expected;
  for (const auto& [name, values] : statistics.items()) {
    // The file also has statistics of a learned encoding's table, which is not a network parameter.
    if (absl::StrContains(name, '/')) expected[SlotName(name, true)] = values;
  }
  ASSERT_EQ(expected.size(), layout.slots().size());
  for (const auto& slot : layout.slots()) {
    SCOPED_TRACE(slot.name);
    const json& reference = expected.at(slot.name);
    EXPECT_EQ(json(slot.shape), reference.at("shape"));
    double sum = 0, squares = 0, largest = 0;
    for (int64_t i = slot.offset; i < slot.offset + slot.size; ++i) {
      const double value = row[static_cast<size_t>(i)];
      sum += value;
      squares += value * value;
      largest = std::max(largest, std::abs(value));
    }
    const double size = static_cast<double>(slot.size);
    const double stddev = std::sqrt(squares / size - std::pow(sum / size, 2));
    const double reference_stddev = reference.at("std");
    if (reference_stddev == 0) {
      EXPECT_EQ(sum / size, reference.at("mean").get<double>());
      EXPECT_EQ(largest, std::abs(reference.at("mean").get<double>()));
      continue;
    }
    // Both are samples of `size`: allows four standard errors of the difference of their standard
    // deviations.
    EXPECT_NEAR(stddev / reference_stddev, 1, 4 / std::sqrt(size));
    EXPECT_NEAR(sum / size, 0, 4 * reference_stddev / std::sqrt(size));
    // Truncation at two standard deviations shows in large matrices.
    if (slot.size >= 4096) {
      EXPECT_NEAR(largest / reference.at("max").get<double>(), 1, 0.01);
    }
  }
}

}  // namespace
}  // namespace lengthwise::golden
