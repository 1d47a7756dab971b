// The reference implementation's networks in float32 on a GPU, with our kernels and with LibTorch's
// operators, and the same on the CPU, so that the test can fail where there is no GPU.
#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "gtest/gtest.h"
#include "models/layers/kernel_choice.h"
#include "models/layers/testing/cuda_for_tests.h"
#include "tests/golden/golden_folder.h"
#include "tests/golden/reference_model.h"

namespace lengthwise::golden {
namespace {

using models::KernelChoice;
using models::KernelScope;
using nlohmann::json;

// As in full_models_test: both sides round to float32, in different orders. Gradients' norms are
// compared in parts of the global norm.
constexpr double kDeviceTolerance = 1e-4;

const std::string kFolders[] = {"randomized_positional_encodings/model",
                                "randomized_positional_encodings/model_full"};

// Folder, device, and whether our kernels are used.
class DeviceModelTest : public ::testing::TestWithParam<std::tuple<std::string, bool, bool>> {
 protected:
  static at::Device device() {
    return std::get<1>(GetParam()) ? at::Device(at::kCUDA, 0) : at::Device(at::kCPU);
  }

  static void Check(const ReferenceModel& model) {
    models::ParameterArena arena(model.layout(), 1, at::kFloat, device());
    arena.parameters().copy_(model.Arena(at::kFloat)->parameters());
    const at::Tensor logits =
        model.network()
            .Forward(arena.Members(0, 1), {.tokens = model.tokens().to(device())},
                     model.positions().to(device()), model.output_length(), nullptr, nullptr)
            .to(at::kCPU);
    const json& reference = model.file();
    EXPECT_LE(LargestDifference(logits, Float32Values(reference.at("logits"))), kDeviceTolerance);
    const at::Tensor loss = model.Loss(logits);
    EXPECT_NEAR(loss.item<double>(), reference.at("loss").get<double>(), kDeviceTolerance);
    loss.backward();
    const at::Tensor gradients = arena.gradients().to(at::kCPU, at::kDouble);
    const double norm = reference.at("grad_global_norm");
    EXPECT_NEAR(gradients.norm().item<double>() / norm, 1, kDeviceTolerance);
    if (reference.contains("grads")) {
      EXPECT_LE(LargestDifference(gradients, model.Row(reference.at("grads"))),
                kDeviceTolerance * norm);
    }
  }
};

TEST_P(DeviceModelTest, LogitsLossAndGradientsMatch) {
  const auto& [folder, cuda, fused] = GetParam();
  if (cuda) {
    LENGTHWISE_SKIP_WITHOUT_CUDA();
  }
  const KernelScope scope(fused ? KernelChoice::Fused() : KernelChoice::Plain());
  const std::vector<std::string> files = Files(folder, {});
  ASSERT_FALSE(files.empty()) << "no files in " << Folder(folder);
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    const ReferenceModel model(folder, file);
    ASSERT_EQ(model.unsupported(), "");
    Check(model);
  }
}

std::string CaseName(const ::testing::TestParamInfo<DeviceModelTest::ParamType>& test) {
  const auto& [folder, cuda, fused] = test.param;
  return TestName(folder.substr(folder.find('/') + 1)) + (cuda ? "_cuda" : "_cpu") +
         (fused ? "_fused" : "_plain");
}

INSTANTIATE_TEST_SUITE_P(Folders, DeviceModelTest,
                         ::testing::Combine(::testing::ValuesIn(kFolders), ::testing::Bool(),
                                            ::testing::Bool()),
                         CaseName);

}  // namespace
}  // namespace lengthwise::golden
