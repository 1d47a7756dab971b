// Checks that a training step which a device records (worker/training/device_graph.h) neither waits
// for the device nor copies numbers from the host: a replay would do neither.
#include <memory>
#include <string>
#include <vector>

#include "ATen/ops/ones.h"
#include "ATen/ops/tensor.h"
#include "ATen/ops/zeros.h"
#include "catalogue/testing/resolved.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/encodings/catalogue.h"
#include "models/encodings/encoding.h"
#include "models/encodings/testing/test_formula.h"
#include "models/layers/cross_entropy.h"
#include "models/layers/testing/far_device.h"
#include "models/networks/catalogue.h"
#include "models/networks/network.h"
#include "models/optimizers/catalogue.h"
#include "models/optimizers/optimizer.h"

namespace lengthwise::models {
namespace {

using catalogue::Resolved;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kMembers = 2, kStepSequences = 3, kStepTokens = 9, kStepOutputs = 4;

at::Tensor Zeros(at::IntArrayRef shape, at::ScalarType type) {
  return at::zeros(shape, at::TensorOptions(FarDevice()).dtype(type));
}

struct Case {
  std::string network, encoding;
  bool randomized = false;
  std::string attention = "softmax";
  std::string optimizer = "adamw";
  bool bfloat16 = false;
};

void PrintTo(const Case& of, std::ostream* out) {
  *out << of.network << ", " << (of.randomized ? "randomized " : "") << of.encoding << ", "
       << of.attention << ", " << of.optimizer << (of.bfloat16 ? ", bfloat16" : "");
}

// An encoder for each encoding that does not only give vectors.
std::vector<Case> Encoders() {
  std::vector<Case> cases;
  for (const auto* entry : EncodingEntries()) {
    if (!entry->is_added) continue;
    cases.push_back({"encoder", entry->name});
    for (const auto& parameter : entry->parameters) {
      if (parameter.name == "randomized") cases.push_back({"encoder", entry->name, true});
    }
  }
  cases.push_back({"encoder", "relative", true, "geometric"});
  cases.push_back({"encoder", "sin_cos", true, "softmax", "sgd"});
  cases.push_back({"encoder", "relative", true, "softmax", "adam", /*bfloat16=*/true});
  return cases;
}

catalogue::Parameters SmallNetwork(const std::string& name,
                                   const catalogue::Parameters& given = {}) {
  return catalogue::ResolvedSmall(NetworkEntries(), name, given);
}

// The other networks, except those of text, each with an encoding that it takes.
std::vector<Case> OtherNetworks() {
  std::vector<Case> cases;
  for (const auto* entry : NetworkEntries()) {
    if (entry->name == "encoder" || entry->Learns(tasks::TaskKind::kText)) continue;
    const bool as_vectors = entry->encoding_context(SmallNetwork(entry->name)).as_vectors;
    cases.push_back({entry->name, as_vectors ? "one_hot" : "none"});
  }
  return cases;
}

class RecordableStepTest : public testing::TestWithParam<Case> {};

TEST_P(RecordableStepTest, NeitherWaitsNorCopiesFromTheHost) {
  const Case& of = GetParam();
  const NetworkEntry* const entry = catalogue::Named(NetworkEntries(), of.network);
  ASSERT_NE(entry, nullptr);
  const bool of_numbers = entry->Learns(tasks::TaskKind::kRegression);
  catalogue::Parameters given;
  if (of.network == "encoder") given.Set("attention", of.attention);
  const catalogue::Parameters parameters = SmallNetwork(of.network, given);
  catalogue::Parameters options;
  if (of.randomized) options.Set("randomized", true);
  GiveFormula(of.encoding, options);
  options = Resolved(EncodingEntries(), of.encoding, options);
  ParameterLayout layout;
  auto network = CreateNetwork(of.network, parameters, of.encoding, options,
                               {.input_columns = of_numbers ? 0 : 4,
                                .output_columns = of_numbers ? 1 : 3,
                                .has_numbers = of_numbers,
                                .longest_sequence = kStepTokens},
                               layout);
  ASSERT_TRUE(network.ok()) << network.status();
  if (of.bfloat16) *network = WithBfloat16Products(*std::move(network));
  if ((*network)->DrawsInTraining()) GTEST_SKIP() << "has dropout, which is not recorded";
  ParameterArena arena(layout, kMembers, at::kFloat, FarDevice());
  const auto optimizer =
      CreateOptimizer(of.optimizer, Resolved(OptimizerEntries(), of.optimizer, {})).value();
  const NetworkInput input = {
      .tokens =
          of_numbers ? at::Tensor() : Zeros({kMembers, kStepSequences, kStepTokens}, at::kLong),
      .numbers =
          of_numbers ? Zeros({kMembers, kStepSequences, kStepTokens}, at::kFloat) : at::Tensor()};
  const at::Tensor positions = Zeros({kMembers, 1, kStepTokens}, at::kLong);
  const at::Tensor classes = Zeros({kMembers, kStepSequences, kStepOutputs}, at::kLong);
  const at::Tensor mask = Zeros({kMembers, kStepSequences, kStepOutputs}, at::kBool);
  const at::Tensor numbers =
      Zeros({static_cast<int64_t>(optimizer->StepNumbers(1, {1, 1}).size())}, at::kDouble);

  const auto step = [&] {
    arena.ZeroGradients(0, kMembers);
    const DropoutNumbers dropout = {.seeds = {1, 2}};
    const at::Tensor outputs = (*network)->Forward(arena.Members(0, kMembers), input, positions,
                                                   kStepOutputs, &dropout, nullptr);
    const at::Tensor losses = of_numbers ? outputs.square().flatten(1).mean(1)
                                         : CrossEntropy(outputs, classes, mask).losses;
    losses.sum().backward();
    const Clipping clipping = MeasureGradients(arena, 0, kMembers, 1);
    optimizer->Step(arena, 0, kMembers, numbers, clipping.factors);
  };
  step();  // fills caches on the device
  TakeWaits();
  step();
  EXPECT_THAT(TakeWaits(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Encoders, RecordableStepTest, testing::ValuesIn(Encoders()));
INSTANTIATE_TEST_SUITE_P(OtherNetworks, RecordableStepTest, testing::ValuesIn(OtherNetworks()));

// Terms of the attention kernels, which a step on this device does not use.
class RecordableTermsTest : public testing::TestWithParam<Case> {};

TEST_P(RecordableTermsTest, NeitherWaitNorCopyFromTheHost) {
  const Case& of = GetParam();
  catalogue::Parameters options;
  if (of.randomized) options.Set("randomized", true);
  GiveFormula(of.encoding, options);
  ParameterLayout layout;
  layout.Add("first", {1}, {.kind = Initializer::Kind::kZeros});
  const auto encoding =
      CreateEncoding(of.encoding, Resolved(EncodingEntries(), of.encoding, options),
                     {.blocks = 1, .heads = 2, .d_model = 16}, layout);
  ASSERT_TRUE(encoding.ok()) << encoding.status();
  ParameterArena arena(layout, kMembers, at::kFloat, FarDevice());
  const ParameterSet parameters = arena.Members(0, kMembers);
  const at::Tensor positions = Zeros({kMembers, kStepTokens}, at::kLong);
  const auto make = [&] { (*encoding)->Terms(parameters, 0, positions, 0, kStepTokens); };
  make();
  TakeWaits();
  make();
  EXPECT_THAT(TakeWaits(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Encoders, RecordableTermsTest, testing::ValuesIn(Encoders()));

// Checks the means of this test.
TEST(FarDeviceTest, ReportsCopiesAndWaits) {
  const at::Tensor host = at::ones({3});
  TakeWaits();
  const at::Tensor far = host.to(FarDevice());
  EXPECT_THAT(TakeWaits(), ElementsAre("from the host"));
  const at::Tensor sum = far.add(far).sum();
  EXPECT_THAT(TakeWaits(), IsEmpty());
  EXPECT_EQ(sum.item<float>(), 6);
  EXPECT_THAT(TakeWaits(), ElementsAre("aten::_local_scalar_dense"));
  EXPECT_EQ(at::tensor(std::vector<float>{1, 2}, far.options()).device(), FarDevice());
  EXPECT_THAT(TakeWaits(), ElementsAre("from the host"));
}

}  // namespace
}  // namespace lengthwise::models
