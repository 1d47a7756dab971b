// Trains and evaluates every network with every encoding, several batch sizes and 1, 2, 3, 5 and 8
// threads, and compares all bits.
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "google/protobuf/struct.pb.h"
#include "gtest/gtest.h"
#include "models/encodings/catalogue.h"
#include "models/layers/kernel_calls.h"
#include "models/networks/catalogue.h"
#include "worker/testing/tiny_trials.h"
#include "worker/training/blueprint.h"
#include "worker/training/device.h"
#include "worker/training/pack_model.h"
#include "worker/training/testing/train_step.h"

namespace lengthwise::worker::training {
namespace {

constexpr int kBatches[] = {1, 2, 3, 4, 8, 16, 33, 64};
constexpr int kOtherThreads[] = {2, 3, 5, 8};

// A network with its defaults, or with one of its parameters changed, and an encoding.
struct Model {
  const models::NetworkEntry* network;
  std::map<std::string, google::protobuf::Value> changed;
  const models::EncodingEntry* encoding;
  std::string precision = "float32";
  std::string name;
};

void PrintTo(const Model& model, std::ostream* out) { *out << model.name; }

// Small for small batches. Large enough for large ones that LibTorch would split its loops.
v1::TrialSpecification TrialOf(const Model& model, int batch) {
  const bool text = model.network->Learns(tasks::TaskKind::kText);
  v1::TrialSpecification trial = text ? TinyTextTrial() : TinyTrial();
  if (model.network->Learns(tasks::TaskKind::kRegression))
    trial.mutable_task()->set_name("cumulative_sum");
  trial.mutable_network()->set_name(model.network->name);
  auto& network = *trial.mutable_network()->mutable_parameters();
  network.clear();
  for (const auto& parameter : model.network->parameters) {
    if (parameter.name == "d_model" || parameter.name == "hidden_size") {
      network[parameter.name].set_number_value(batch < 16 ? 16 : 64);
    }
    for (const char* name : {"heads", "blocks", "loops"}) {
      if (parameter.name == name) network[name].set_number_value(2);
    }
  }
  for (const auto& [name, value] : model.changed) network[name] = value;
  trial.mutable_encoding()->clear_parameters();
  SetEncoding(model.encoding->name, trial);
  for (const auto& parameter : model.encoding->parameters) {
    if (parameter.name == "max_position") {
      (*trial.mutable_encoding()->mutable_parameters())["max_position"].set_number_value(256);
    }
  }
  v1::Training& training = *trial.mutable_training();
  training.set_batch_size(batch);
  training.mutable_lengths()->set_max(text ? 3 : batch < 16 ? 8 : 20);
  training.set_precision(model.precision);
  return trial;
}

std::vector<Model> Models() {
  std::vector<Model> models;
  for (const auto* network : models::NetworkEntries()) {
    std::vector<std::pair<std::string, std::map<std::string, google::protobuf::Value>>> variants = {
        {"", {}}};
    // A looped network is another with a loop around it, whose cases cover the rest.
    const bool is_looped = absl::StartsWith(network->name, "looped_");
    for (const auto& parameter : network->parameters) {
      if (is_looped) break;
      for (const std::string& value : parameter.allowed) {
        google::protobuf::Value changed;
        changed.set_string_value(value);
        if (catalogue::FormatValue(parameter.default_value) == value) continue;
        variants.push_back({absl::StrCat("_", value), {{parameter.name, changed}}});
      }
    }
    for (const auto& [label, changed] : variants) {
      for (const auto* encoding : models::EncodingEntries()) {
        if (is_looped && encoding->name != "relative") continue;
        Model model = {.network = network,
                       .changed = changed,
                       .encoding = encoding,
                       .name = absl::StrCat(network->name, label, "_", encoding->name)};
        // The others do not go together.
        if (!MakeBlueprint(TrialOf(model, 1)).ok()) continue;
        models.push_back(model);
        if (!changed.empty()) continue;
        const std::string name = model.name;
        for (const char* precision : {"bfloat16", "float64"}) {
          model.precision = precision;
          model.name = absl::StrCat(name, "_", precision);
          models.push_back(model);
        }
      }
    }
  }
  return models;
}

// Returns true if ATEN_CPU_CAPABILITY asks for the instructions that this processor has anyway: the
// test without it is the same.
bool IsTwice() {
  return std::getenv("ATEN_CPU_CAPABILITY") != nullptr && !__builtin_cpu_supports("avx512f");
}

// The model after two steps, of which the second sees all that the first changed, and its scores if
// wanted.
std::string TrainedWith(int threads, const Blueprint& blueprint, const Device& device,
                        bool scored) {
  models::SetThreads(threads);
  auto pack = CreatePackModel(blueprint, {{1, 2}}, device);
  EXPECT_TRUE(pack.ok()) << pack.status();
  if (!pack.ok()) return "";
  std::string result;
  for (int64_t step = 1; step <= 2; ++step) {
    const StepMeasurement measured = TrainStep(**pack, step, {0}, {1e-3})[0];
    absl::StrAppendFormat(&result, "%a %a ", measured.loss, measured.gradient_norm);
  }
  for (const int length : blueprint.evaluation.lengths()) {
    if (!scored) break;
    const auto score = (*pack)->Score({0, 1}, length, 33, [] { return true; }, {});
    absl::StrAppendFormat(&result, "%a %a ", (*score)[0].loss, (*score)[0].accuracy);
  }
  return result + (*pack)->Save(0, {.step = 2, .program_version = "0", .fingerprint = "f"});
}

class ThreadsTest : public ::testing::TestWithParam<Model> {};

// One batch size and two other numbers of threads for each model, or all of them with
// LENGTHWISE_ALL_CASES.
TEST_P(ThreadsTest, BitsDoNotDependOnTheNumberOfThreads) {
  const Device device = OpenDevice("cpu", 1).value();
  PrepareThread(device);
  std::vector<int> batches(std::begin(kBatches), std::end(kBatches));
  std::vector<int> other_threads(std::begin(kOtherThreads), std::end(kOtherThreads));
  if (std::getenv("LENGTHWISE_ALL_CASES") == nullptr) {
    const size_t chosen = std::hash<std::string>()(GetParam().name);
    batches = {kBatches[chosen % batches.size()]};
    other_threads = {kOtherThreads[chosen / 8 % 2], kOtherThreads[2 + chosen / 16 % 2]};
  }
  for (const int batch : batches) {
    const auto blueprint = MakeBlueprint(TrialOf(GetParam(), batch));
    ASSERT_TRUE(blueprint.ok()) << blueprint.status();
    // The shapes of an evaluation follow the model's size, of which there are two, and not the
    // batch.
    const bool scored = batches.size() == 1 || batch == 8 || batch == 64;
    const std::string expected = TrainedWith(1, *blueprint, device, scored);
    for (const int threads : other_threads) {
      EXPECT_TRUE(TrainedWith(threads, *blueprint, device, scored) == expected)
          << threads << " threads, batch " << batch;
    }
  }
}

TEST(InstructionSetTest, IsTestedOnce) {
  if (IsTwice()) GTEST_SKIP() << "this processor has no AVX-512: the other target tests AVX2";
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ThreadsTest);
INSTANTIATE_TEST_SUITE_P(Catalogue, ThreadsTest,
                         testing::ValuesIn(IsTwice() ? std::vector<Model>() : Models()),
                         [](const testing::TestParamInfo<Model>& info) { return info.param.name; });

}  // namespace
}  // namespace lengthwise::worker::training
