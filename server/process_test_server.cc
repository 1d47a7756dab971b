// The server's process over a coordinator in memory, for process_test.
#include <unistd.h>

#include <memory>

#include "server/process.h"
#include "server/services/fake_coordinator.h"

namespace {

// Never finishes stopping.
class StuckCoordinator final : public lengthwise::server::FakeCoordinator {
 public:
  void Stop() override {
    while (true) pause();
  }
};

}  // namespace

int main(int argc, char** argv) {
  using lengthwise::server::Coordinator;
  return lengthwise::server::RunProcess(
      argc, argv,
      [](const Coordinator::Options& options) -> absl::StatusOr<std::unique_ptr<Coordinator>> {
        if (options.data_dir == "/locked") {
          return absl::FailedPreconditionError("another server has /locked open");
        }
        if (options.data_dir == "/stuck") return std::make_unique<StuckCoordinator>();
        return std::make_unique<lengthwise::server::FakeCoordinator>();
      });
}
