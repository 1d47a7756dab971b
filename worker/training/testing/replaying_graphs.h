// Fakes device graphs for tests on the CPU: a replay runs the recorded work again.
#ifndef LENGTHWISE_WORKER_TRAINING_TESTING_REPLAYING_GRAPHS_H_
#define LENGTHWISE_WORKER_TRAINING_TESTING_REPLAYING_GRAPHS_H_

#include <functional>
#include <memory>
#include <stdexcept>

#include "worker/training/device_graph.h"

namespace lengthwise::worker::training {

// Counters over all graphs of a pool. Must outlive them.
struct GraphCounts {
  bool replays_fail = false;  // set by tests

  int recorded = 0;
  int replayed = 0;
  int alive = 0;
  int freed_memory = 0;
};

class ReplayingGraphs : public GraphPool {
 public:
  explicit ReplayingGraphs(GraphCounts& counts, bool can_record = true)
      : counts_(counts), can_record_(can_record) {}

  std::unique_ptr<DeviceGraph> MakeGraph() override {
    return std::make_unique<Graph>(counts_, can_record_);
  }

  void FreeUnusedMemory() override { ++counts_.freed_memory; }

 private:
  class Graph : public DeviceGraph {
   public:
    Graph(GraphCounts& counts, bool can_record) : counts_(counts), can_record_(can_record) {
      ++counts_.alive;
    }
    ~Graph() override { --counts_.alive; }

    void Record(const std::function<void()>& work) override {
      if (!can_record_) throw std::runtime_error("not permitted while recording\nand more");
      ++counts_.recorded;
      work_ = work;
    }

    void Replay() override {
      if (counts_.replays_fail) throw std::runtime_error("the device is full\nand more");
      ++counts_.replayed;
      work_();
    }

   private:
    GraphCounts& counts_;
    const bool can_record_;
    std::function<void()> work_;
  };

  GraphCounts& counts_;
  const bool can_record_;
};

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_TESTING_REPLAYING_GRAPHS_H_
