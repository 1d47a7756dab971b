// Networks of the paper's size (5 blocks, 8 heads, d_model 64) agree with the reference
// implementation's in float32.

#include <string>

#include "gtest/gtest.h"
#include "models/optimizers/optimizer.h"
#include "tests/golden/golden_folder.h"
#include "tests/golden/reference_model.h"

namespace lengthwise::golden {
namespace {

using nlohmann::json;

constexpr char kFullModelFolder[] = "randomized_positional_encodings/model_full";
// Both sides round to float32, in different orders. For gradients, whose norms reach 28, this
// bounds the relative error.
constexpr double kFullModelTolerance = 1e-4;

class FullModelTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(model_.unsupported().empty() || !model_.exists()) << model_.unsupported();
    if (!model_.exists()) GTEST_SKIP() << model_.unsupported();
  }

  at::Tensor Logits(const models::ParameterArena& arena) const {
    return model_.network().Forward(arena.Members(0, 1), {.tokens = model_.tokens()},
                                    model_.positions(), model_.output_length(), nullptr, nullptr);
  }

  const ReferenceModel model_{kFullModelFolder, GetParam()};
};

TEST_P(FullModelTest, LogitsLossAndGradientsMatch) {
  const json& reference = model_.file();
  const auto arena = model_.Arena(at::kFloat);
  const at::Tensor logits = Logits(*arena);
  EXPECT_LE(logits.detach()
                .to(at::kDouble)
                .flatten()
                .sub(Float32Values(reference.at("logits")))
                .abs()
                .max()
                .item<double>(),
            kFullModelTolerance);
  const at::Tensor loss = model_.Loss(logits);
  EXPECT_NEAR(loss.item<double>(), reference.at("loss").get<double>(), kFullModelTolerance);
  loss.backward();
  const double norm = reference.at("grad_global_norm");
  for (const auto& [name, expected] : reference.at("grad_norm_per_param").items()) {
    for (const auto& slot : model_.layout().slots()) {
      if (slot.name != SlotName(name, model_.relative())) continue;
      EXPECT_NEAR(arena->gradients().narrow(1, slot.offset, slot.size).norm().item<double>(),
                  expected.get<double>(), kFullModelTolerance * norm)
          << name;
    }
  }
  EXPECT_NEAR(models::MeasureGradients(*arena, 0, 1, 1.0).norms.item<double>() / norm, 1,
              kFullModelTolerance);
}

INSTANTIATE_TEST_SUITE_P(
    Files, FullModelTest,
    ::testing::ValuesIn(Files(kFullModelFolder,
                              {"full_none", "full_sin_cos", "full_relative", "full_rotary",
                               "full_alibi", "full_noisy_sin_cos", "full_noisy_relative_fixed"})),
    [](const auto& test) { return test.param; });

}  // namespace
}  // namespace lengthwise::golden
