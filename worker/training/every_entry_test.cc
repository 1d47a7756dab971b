// Trains every task and every network of the catalogues, every choice of positions and every place
// of a formula for a few steps, from a specification.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gtest/gtest.h"
#include "models/networks/catalogue.h"
#include "specification/resolve.h"
#include "specification/training_data.h"
#include "tasks/catalogue.h"
#include "worker/training/blueprint.h"
#include "worker/training/device.h"
#include "worker/training/pack_model.h"
#include "worker/training/testing/train_step.h"

namespace lengthwise::worker::training::every_entry {
namespace {

constexpr int64_t kSteps = 60;
constexpr double kRate = 3e-3;
constexpr uint64_t kDataSeed = 2;

struct Pair {
  std::string task, network;
  std::string parameters = {};  // the task's, such as ", operands: 3"
  std::string encoding = {};    // if it is not "none", or "one_hot" for vectors of numbers
};

void PrintTo(const Pair& pair, std::ostream* out) {
  *out << pair.task << pair.parameters << ", " << pair.network << " " << pair.encoding;
}

std::string NetworkFor(tasks::TaskKind kind) {
  switch (kind) {
    case tasks::TaskKind::kRegression:
      return "positional_attention";
    case tasks::TaskKind::kText:
      return "causal_decoder";
    case tasks::TaskKind::kTransduction:
    case tasks::TaskKind::kPuzzle:
      break;
  }
  return "encoder";
}

std::string SinCos(absl::string_view positions) {
  return absl::StrCat("{name: sin_cos, max_position: 64, positions: ", positions, "}");
}

// Each task with a network of its kind, each network with a task of its kind, forms of tasks that
// are not the default, each choice of positions, and formulas in each place.
std::vector<Pair> Pairs() {
  std::vector<Pair> pairs;
  for (const tasks::TaskEntry* task : tasks::TaskEntries()) {
    pairs.push_back({task->name, NetworkFor(task->kind)});
  }
  for (const models::NetworkEntry* network : models::NetworkEntries()) {
    pairs.push_back({network->Learns(tasks::TaskKind::kText)         ? "copy_string_text"
                     : network->Learns(tasks::TaskKind::kRegression) ? "cumulative_sum"
                                                                     : "copy_string",
                     network->name});
  }
  pairs.push_back({"associative_recall", "encoder", ", updates: 1"});
  pairs.push_back({"associative_recall", "encoder", ", compositional: true"});
  pairs.push_back({"decimal_addition", "causal_decoder", ", operands: 3"});
  for (const char* positions :
       {"subset", "uniform_reals", "shift", "augmented", "skips", "subset, draws: per_sequence"}) {
    pairs.push_back({"bucket_sort", "encoder", "", SinCos(positions)});
  }
  for (const char* formulas :
       {"logits: -abs(q - k), embedding: sin(p + c)", "angle: p / (i + 1), magnitude: 0.9^p",
        "angle: p / (i + 1), scale: s * log(n), parameters: {s: {per: head, initial: 0.4}}"}) {
    pairs.push_back(
        {"bucket_sort", "encoder", "", absl::StrCat("{name: formula, ", formulas, "}")});
  }
  pairs.push_back(
      {"copy_string_text", "causal_decoder", "", SinCos("subset, draws: per_sequence")});
  for (const char* coupling : {"digits", "abacus"}) {
    pairs.push_back({"decimal_addition", "causal_decoder",
                     absl::StrCat(", index_hints: false, coupling: ", coupling),
                     SinCos("data, random_offset: 10, beside: {name: fire}")});
  }
  return pairs;
}

bool Has(const models::NetworkEntry& network, const std::string& parameter) {
  return absl::c_any_of(network.parameters, [&](const auto& own) { return own.name == parameter; });
}

Blueprint BlueprintOf(const Pair& pair) {
  const tasks::TaskKind kind = tasks::FindTask(pair.task)->kind;
  std::string task = absl::StrCat("{name: ", pair.task, pair.parameters), lengths = "4..4", network,
              training;
  if (kind == tasks::TaskKind::kPuzzle) {
    absl::StrAppend(&task, ", training_puzzles: 64, held_out_puzzles: 8, validation_puzzles: 6, ",
                    "minimum_dissimilarity: 0.0");
    lengths = "16..16";
    training = ", examples: 64";
  }
  for (const auto& [name, size] : std::vector<std::pair<std::string, int>>{
           {"blocks", 2}, {"heads", 2}, {"loops", 2}, {"d_model", 32}, {"hidden_size", 32}}) {
    for (const models::NetworkEntry* entry : models::NetworkEntries()) {
      if (entry->name == pair.network && Has(*entry, name)) {
        absl::StrAppend(&network, ", ", name, ": ", size);
      }
    }
  }
  const std::string encoding = !pair.encoding.empty()                 ? pair.encoding
                               : kind == tasks::TaskKind::kRegression ? "one_hot"
                                                                      : "none";
  const std::string text = absl::StrCat(
      "{name: every, tasks: ", task, "}, networks: {name: ", pair.network, network,
      "}, encodings: ", encoding, ", learning_rates: ", kRate, ", training: {steps: ", kSteps,
      ", batch_size: ", kind == tasks::TaskKind::kText ? 4 : 32, ", lengths: ", lengths, training,
      kind == tasks::TaskKind::kText ? ", packing: {tokens: 128}" : "",
      "}, evaluation: {lengths: ", kind == tasks::TaskKind::kPuzzle ? "1..3" : "4", "}}");
  v1::SpecificationText specification;
  specification.set_format(v1::SpecificationText::YAML);
  specification.set_text(text);
  const auto grid = specification::Resolve(specification, {});
  EXPECT_TRUE(grid.ok()) << grid.status() << " of " << text;
  auto blueprint = MakeBlueprint(grid->trials.at(0).Specification());
  EXPECT_TRUE(blueprint.ok()) << blueprint.status();
  return *std::move(blueprint);
}

std::unique_ptr<PackModel> ModelOf(const Blueprint& blueprint) {
  const Device device = OpenDevice("cpu", 1).value();
  PrepareThread(device);
  auto model = CreatePackModel(blueprint, {{1, kDataSeed}}, device);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

class EveryEntryTest : public testing::TestWithParam<Pair> {};

TEST_P(EveryEntryTest, LossFallsAndAResumedStepIsTheSame) {
  const Blueprint blueprint = BlueprintOf(GetParam());
  ASSERT_TRUE(
      blueprint.source().Prepare(specification::DataSetSeed(blueprint.training, kDataSeed)).ok());
  const auto model = ModelOf(blueprint), resumed = ModelOf(blueprint);
  double first = 0, last = 0;
  for (int64_t step = 1; step <= kSteps; ++step) {
    const StepMeasurement measured = TrainStep(*model, step, {0}, {kRate}).at(0);
    if (step <= 10) first += measured.loss / 10;
    if (step > kSteps - 10) last += measured.loss / 10;
    if (step == 11) {
      EXPECT_EQ(TrainStep(*resumed, step, {0}, {kRate}).at(0).loss, measured.loss);
      EXPECT_EQ(resumed->Save(0, {.step = step, .fingerprint = "f"}),
                model->Save(0, {.step = step, .fingerprint = "f"}));
    }
    if (step == 10) {
      const auto loaded = resumed->Load(0, model->Save(0, {.step = step, .fingerprint = "f"}), "f");
      ASSERT_TRUE(loaded.ok()) << loaded.status();
    }
  }
  EXPECT_LT(last, 0.99 * first);
}

INSTANTIATE_TEST_SUITE_P(Catalogues, EveryEntryTest, testing::ValuesIn(Pairs()),
                         [](const auto& info) {
                           return absl::StrCat(info.index, "_", info.param.task, "_",
                                               info.param.network);
                         });

}  // namespace
}  // namespace lengthwise::worker::training::every_entry
