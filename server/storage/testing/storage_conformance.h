// Tests for every implementation of Storage. Instantiate with a factory.
#ifndef LENGTHWISE_SERVER_STORAGE_TESTING_STORAGE_CONFORMANCE_H_
#define LENGTHWISE_SERVER_STORAGE_TESTING_STORAGE_CONFORMANCE_H_

#include <functional>
#include <memory>

#include "gtest/gtest.h"
#include "server/storage/storage.h"

namespace lengthwise::server {

// Opens an empty store (`fresh`), or the store of the previous call again.
using StorageFactory = std::function<std::unique_ptr<Storage>(bool fresh)>;

class StorageConformanceTest : public testing::TestWithParam<StorageFactory> {
 protected:
  void SetUp() override { storage_ = GetParam()(/*fresh=*/true); }
  void Reopen() {
    storage_.reset();
    storage_ = GetParam()(/*fresh=*/false);
  }
  StorageWriter& writer() { return storage_->writer(); }

  // Inserts and commits an experiment with `trials` trials in one pack.
  ExperimentRecord Insert(const std::string& name, int trials);
  TrialRecord Trial(const ExperimentRecord& experiment, int index);
  // In the open transaction.
  EventRecord Append(const TrialRecord& trial, int32_t attempt, int64_t sequence, int64_t step,
                     int kind);
  void Change(TrialRecord& trial, v1::TrialState state);

  std::unique_ptr<Storage> storage_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_STORAGE_TESTING_STORAGE_CONFORMANCE_H_
