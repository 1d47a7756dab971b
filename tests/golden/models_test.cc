// The networks, their gradients and Adam agree with the reference implementation's, file by file,
// in both precisions.

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "ATen/ops/abs.h"
#include "ATen/ops/minimum.h"
#include "ATen/ops/stack.h"
#include "ATen/ops/tensor.h"
#include "ATen/ops/where.h"
#include "c10/core/GradMode.h"
#include "gtest/gtest.h"
#include "models/optimizers/catalogue.h"
#include "models/optimizers/optimizer.h"
#include "tests/golden/golden_folder.h"
#include "tests/golden/reference_model.h"

namespace lengthwise::golden {
namespace {

using models::ParameterArena;
using models::ParameterSet;
using nlohmann::json;

constexpr char kFolder[] = "randomized_positional_encodings/model";
constexpr double kTolerance = 1e-5;

std::vector<std::string> RequiredFiles() {
  return {"none",
          "sin_cos",
          "learnt",
          "rotary",
          "alibi",
          "relative",
          "noisy_sin_cos",
          "noisy_learnt",
          "noisy_rotary",
          "noisy_rotary_shared",
          "noisy_alibi",
          "noisy_alibi_paper",
          "noisy_alibi_shared",
          "noisy_relative_paper",
          "noisy_relative_published",
          "noisy_relative_fixed",
          "noisy_relative_fixed_shared"};
}

// The reference rounds rotary angles to float32. At positions near 2,047 this rotates features by
// up to 2e-5. (With angles rounded this way, the first block's logits agree to 1e-7.)
constexpr double kRotaryLogitTolerance = 2e-5;

class ModelTest : public ::testing::TestWithParam<std::tuple<std::string, at::ScalarType>> {
 protected:
  void SetUp() override {
    model_.emplace(kFolder, std::get<0>(GetParam()));
    if (!model_->unsupported().empty()) {
      // Files that the paper needs must run if they exist. Another set of files may contain more.
      const std::vector<std::string> required = RequiredFiles();
      const bool needed =
          std::find(required.begin(), required.end(), std::get<0>(GetParam())) != required.end();
      ASSERT_TRUE(!needed || !model_->exists()) << model_->unsupported();
      GTEST_SKIP() << model_->unsupported();
    }
    arena_ = model_->Arena(dtype());
  }

  at::ScalarType dtype() const { return std::get<1>(GetParam()); }
  const json& reference() const { return model_->file(); }

  at::Tensor Forward(const ParameterSet& parameters, models::Capture* capture = nullptr) const {
    return model_->network().Forward(parameters, {.tokens = model_->tokens()}, model_->positions(),
                                     model_->output_length(), nullptr, capture);
  }

  // Leaves the gradients of the loss in the arena.
  double LossAndGradients(const ParameterSet& parameters) {
    arena_->gradients().zero_();
    const at::Tensor loss = model_->Loss(Forward(parameters));
    loss.backward();
    return loss.item<double>();
  }

  std::optional<ReferenceModel> model_;
  std::unique_ptr<ParameterArena> arena_;
};

TEST_P(ModelTest, EveryLayerMatches) {
  c10::NoGradGuard no_grad;
  models::Capture capture;
  const at::Tensor logits = Forward(arena_->Members(0, 1), &capture);
  EXPECT_LE(LargestDifference(logits, Float32Values(reference().at("logits"))), kTolerance);
  EXPECT_LE(LargestDifference(at::stack(capture.attention_logits),
                              Float32Values(reference().at("attention_logits_per_layer"))),
            reference().at("encoding") == "noisy_rotary" ? kRotaryLogitTolerance : kTolerance);
  EXPECT_LE(LargestDifference(at::stack(capture.attention_probabilities),
                              Float32Values(reference().at("attention_probs_per_layer"))),
            kTolerance);
  EXPECT_LE(LargestDifference(at::stack(capture.layer_outputs),
                              Float32Values(reference().at("layernorm_outputs"))),
            kTolerance);
}

TEST_P(ModelTest, LogitsLossAndGradientsMatch) {
  const ParameterSet parameters = arena_->Members(0, 1);
  EXPECT_LE(LargestDifference(Forward(parameters), Float32Values(reference().at("logits"))),
            kTolerance);
  EXPECT_NEAR(LossAndGradients(parameters), reference().at("loss").get<double>(), kTolerance);
  EXPECT_LE(LargestDifference(arena_->gradients(), model_->Row(reference().at("grads"))),
            kTolerance);
  const at::Tensor norm = models::MeasureGradients(*arena_, 0, 1, 1.0).norms;
  EXPECT_NEAR(norm.item<double>(), reference().at("grad_global_norm").get<double>(), kTolerance);
}

// Instantiated for at::kDouble only.
class Float64ModelTest : public ModelTest {};

TEST_P(Float64ModelTest, MatchesTheReferenceInFloat64) {
  if (!reference().contains("float64")) GTEST_SKIP() << "the file has no float64 run";
  // Some of the reference's float64 runs have angles and sinusoids in float32.
  constexpr double kFloat64Tolerance = 1e-6;
  const json& expected = reference().at("float64");
  const ParameterSet parameters = arena_->Members(0, 1);
  EXPECT_LE(LargestDifference(Forward(parameters), Float64Values(expected.at("logits"))),
            kFloat64Tolerance);
  EXPECT_NEAR(LossAndGradients(parameters), expected.at("loss").get<double>(), kFloat64Tolerance);
  for (const auto& [name, norm] : expected.at("grad_norm_per_param").items()) {
    for (const auto& slot : model_->layout().slots()) {
      if (slot.name != SlotName(name, model_->relative())) continue;
      EXPECT_NEAR(arena_->gradients().narrow(1, slot.offset, slot.size).norm().item<double>(),
                  norm.get<double>(), kFloat64Tolerance)
          << name;
    }
  }
}

TEST_P(ModelTest, AdamStepsMatch) {
  const json& adam = reference().at("adam");
  const double learning_rate = adam.at("lr");
  catalogue::Parameters options;
  options.Set("beta1", adam.at("b1").get<double>());
  options.Set("beta2", adam.at("b2").get<double>());
  options.Set("epsilon", adam.at("eps").get<double>());
  const auto optimizer = models::CreateOptimizer("adam", options);
  ASSERT_TRUE(optimizer.ok()) << optimizer.status();
  const ParameterSet parameters = arena_->Members(0, 1);
  const json& losses = adam.at("losses_before_each_step_and_after_last");
  const int64_t steps = adam.at("steps");

  at::Tensor smallest_gradient;
  for (int64_t step = 1; step <= steps; ++step) {
    EXPECT_NEAR(LossAndGradients(parameters), losses.at(step - 1).get<double>(), kTolerance)
        << "before step " << step;
    const at::Tensor factors =
        models::MeasureGradients(*arena_, 0, 1, adam.at("clip_global_norm").get<double>()).factors;
    const at::Tensor size = arena_->gradients().mul(factors.unsqueeze(1)).abs();
    smallest_gradient = step == 1 ? size : at::minimum(smallest_gradient, size);
    (*optimizer)
        ->Step(*arena_, 0, 1, at::tensor((*optimizer)->StepNumbers(step, {learning_rate})),
               factors);
  }
  EXPECT_NEAR(LossAndGradients(parameters), losses.at(steps).get<double>(), kTolerance);

  // Where a gradient is nearly 0, Adam divides rounding error by rounding error; the parameter may
  // then be anywhere within three steps.
  const at::Tensor difference =
      arena_->parameters().to(at::kDouble).sub(model_->Row(adam.at("params_after"))).abs();
  const at::Tensor firm = smallest_gradient.ge(1e-6);
  EXPECT_TRUE(firm.any().item<bool>());
  EXPECT_LE(difference.mul(firm).max().item<double>(), kTolerance);
  EXPECT_LE(difference.max().item<double>(), 3 * learning_rate);
}

TEST(ModelFolderTest, HasAModelThatThisBuildRuns) {
  ASSERT_EQ(WhyNothingIsIn("randomized_positional_encodings"), "");
  if (Files(kFolder, {}).empty()) GTEST_SKIP() << "no models: no .json file in " << Folder(kFolder);
  std::vector<std::string> runs;
  for (const std::string& name : Files(kFolder, {})) {
    if (ReferenceModel(kFolder, name).unsupported().empty()) runs.push_back(name);
  }
  EXPECT_FALSE(runs.empty()) << "this build runs none of the models in " << Folder(kFolder);
}

INSTANTIATE_TEST_SUITE_P(Files, ModelTest,
                         ::testing::Combine(::testing::ValuesIn(Files(kFolder, RequiredFiles())),
                                            ::testing::Values(at::kFloat, at::kDouble)),
                         [](const auto& test) {
                           return TestName(std::get<0>(test.param)) +
                                  (std::get<1>(test.param) == at::kFloat ? "_float32" : "_float64");
                         });

INSTANTIATE_TEST_SUITE_P(Files, Float64ModelTest,
                         ::testing::Combine(::testing::ValuesIn(Files(kFolder, RequiredFiles())),
                                            ::testing::Values(at::kDouble)),
                         [](const auto& test) { return TestName(std::get<0>(test.param)); });

}  // namespace
}  // namespace lengthwise::golden
