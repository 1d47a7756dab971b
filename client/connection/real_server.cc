#include "client/connection/real_server.h"

#include <atomic>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "specification/resolve.h"

namespace lengthwise::client {
namespace {

std::string NewDirectory() {
  static std::atomic<int> number = 0;
  const std::string directory = absl::StrCat(
      testing::TempDir(), "/", testing::UnitTest::GetInstance()->current_test_info()->name(), "-",
      number++, ".data");
  std::filesystem::remove_all(directory);
  return directory;
}

// As server/process.cc does.
absl::StatusOr<specification::Grid> Resolve(const v1::CreateExperimentRequest& request) {
  return request.has_specification_text()
             ? specification::Resolve(request.specification_text(), specification::Limits())
             : specification::Resolve(request.specification(), specification::Limits());
}

}  // namespace

RealServer::RealServer() : core_(NewDirectory(), /*max_database_bytes=*/0, Resolve) {
  EXPECT_EQ(core_.Open(), absl::OkStatus());
  rpc_ = server::RpcServer::Start({}, *core_).value();
}

v1::Lease RealServer::Train(const std::string& worker, int trials,
                            const std::vector<double>& accuracies) {
  EXPECT_EQ(core_.Register(worker, trials), absl::OkStatus());
  const v1::Lease lease = core_.Acquire(worker);
  EXPECT_EQ(lease.trials_size(), trials);
  for (int i = 0; i < lease.trials_size(); ++i) {
    EXPECT_TRUE(core_.Complete(lease, i, 10, accuracies));
  }
  return lease;
}

}  // namespace lengthwise::client
