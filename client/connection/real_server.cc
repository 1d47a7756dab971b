#include "client/connection/real_server.h"

#include "gtest/gtest.h"
#include "specification/resolve.h"

namespace lengthwise::client {
namespace {

// The same as in server/process.cc.
absl::StatusOr<specification::Grid> Resolve(const v1::CreateExperimentRequest& request) {
  return request.has_specification_text()
             ? specification::Resolve(request.specification_text(), specification::Limits())
             : specification::Resolve(request.specification(), specification::Limits());
}

}  // namespace

RealServer::RealServer() : TestServer(Resolve) { Serve(); }

v1::Lease RealServer::Train(const std::string& worker, int trials,
                            const std::vector<double>& accuracies) {
  EXPECT_EQ(calls().Register(worker, trials), absl::OkStatus());
  const v1::Lease lease = calls().Acquire(worker);
  EXPECT_EQ(lease.trials_size(), trials);
  for (int i = 0; i < lease.trials_size(); ++i) {
    EXPECT_TRUE(calls().Complete(lease, i, 10, accuracies));
  }
  return lease;
}

}  // namespace lengthwise::client
