// Compares training on a GPU with training on the CPU. Skipped without a GPU; pack_model_test does
// the same with recorded steps on the CPU.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "models/layers/testing/cuda_for_tests.h"
#include "worker/testing/tiny_trials.h"
#include "worker/training/blueprint.h"
#include "worker/training/device.h"
#include "worker/training/pack_model.h"
#include "worker/training/testing/replaying_graphs.h"
#include "worker/training/testing/train_step.h"

namespace lengthwise::worker::training {
namespace {

// Counts the device's graphs.
class CountingGraphs : public GraphPool {
 public:
  CountingGraphs(std::unique_ptr<GraphPool> graphs, GraphCounts& counts)
      : graphs_(std::move(graphs)), counts_(counts) {}

  std::unique_ptr<DeviceGraph> MakeGraph() override {
    return std::make_unique<Graph>(graphs_->MakeGraph(), counts_);
  }
  void FreeUnusedMemory() override { graphs_->FreeUnusedMemory(); }

 private:
  class Graph : public DeviceGraph {
   public:
    Graph(std::unique_ptr<DeviceGraph> graph, GraphCounts& counts)
        : graph_(std::move(graph)), counts_(counts) {}

    void Record(const std::function<void()>& work) override {
      ++counts_.recorded;
      graph_->Record(work);
    }
    void Replay() override {
      ++counts_.replayed;
      graph_->Replay();
    }

   private:
    const std::unique_ptr<DeviceGraph> graph_;
    GraphCounts& counts_;
  };

  const std::unique_ptr<GraphPool> graphs_;
  GraphCounts& counts_;
};

constexpr int64_t kSteps = 60;

// Returns the losses of three members at every step. On a GPU, steps are recorded unless `counts`
// is null. After step `moves_after`, another model resumes from the checkpoints of the first.
std::vector<float> Train(const std::string& encoding, const std::string& device_name,
                         GraphCounts* counts, int64_t moves_after = kSteps) {
  v1::TrialSpecification trial = TinyTrial();
  trial.mutable_encoding()->set_name(encoding);
  trial.mutable_training()->set_steps(kSteps);
  const Blueprint blueprint = MakeBlueprint(trial).value();
  Device device = OpenDevice(device_name, 1).value();
  PrepareThread(device);
  if (counts == nullptr) {
    device.make_graph_pool = nullptr;
  } else {
    device.make_graph_pool = [counts, make = device.make_graph_pool] {
      return std::make_unique<CountingGraphs>(make(), *counts);
    };
  }
  const auto create = [&] {
    return CreatePackModel(blueprint, {{1, 2}, {3, 4}, {5, 6}}, device,
                           [](const std::string& text) { ADD_FAILURE() << text; })
        .value();
  };
  std::unique_ptr<PackModel> model = create();
  std::vector<float> losses;
  for (int64_t step = 1; step <= kSteps; ++step) {
    for (const StepMeasurement& measured : TrainStep(*model, step, {0, 1, 2}, {1e-3, 1e-3, 1e-3})) {
      losses.push_back(measured.loss);
    }
    if (step != moves_after) continue;
    std::unique_ptr<PackModel> other = create();
    for (int64_t member = 0; member < 3; ++member) {
      const std::string bytes =
          model->Save(member, {.step = step, .program_version = "0", .fingerprint = "f"});
      EXPECT_TRUE(other->Load(member, bytes, "f").ok());
    }
    model = std::move(other);
  }
  return losses;
}

TEST(PackModelCudaTest, MatchesTheCpuAndRepeatsItsBits) {
  LENGTHWISE_SKIP_WITHOUT_CUDA();
  for (const char* encoding : {"sin_cos", "rope", "alibi", "relative", "t5"}) {
    SCOPED_TRACE(encoding);
    GraphCounts counts;
    const std::vector<float> losses = Train(encoding, "cuda", &counts);
    EXPECT_GT(counts.replayed, kSteps / 2);
    EXPECT_EQ(Train(encoding, "cuda", &counts), losses) << "a second run";
    EXPECT_EQ(Train(encoding, "cuda", nullptr), losses) << "unrecorded steps";
    EXPECT_EQ(Train(encoding, "cuda", &counts, /*moves_after=*/kSteps / 2), losses)
        << "resumed from a checkpoint";
    const std::vector<float> expected = Train(encoding, "cpu", nullptr);
    for (size_t i = 0; i < losses.size(); ++i) {
      // Adam amplifies rounding errors.
      EXPECT_NEAR(losses[i], expected[i], i < 60 ? 1e-4 : 1e-2) << "point " << i;
    }
  }
}

}  // namespace
}  // namespace lengthwise::worker::training
