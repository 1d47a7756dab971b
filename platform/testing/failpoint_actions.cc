// Implements the actions that LENGTHWISE_FAILPOINTS selects.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "platform/failpoint.h"
#include "platform/mutex.h"

namespace lengthwise::platform {
namespace {

enum class Action { kCrash, kError, kFull, kDelay };

struct Order {
  Action action = Action::kCrash;
  int64_t milliseconds = 0;
  int64_t only_at = 0;  // 0: every time
};

class Failpoints {
 public:
  Failpoints();
  absl::Status Reach(absl::string_view name);

 private:
  // Appends a line to the file of reached failpoints, if one is set.
  void Tell(absl::string_view text);

  absl::flat_hash_map<std::string, Order> orders_;
  std::string reached_file_;
  Mutex mutex_;
  absl::flat_hash_map<std::string, int64_t> reached_ ABSL_GUARDED_BY(mutex_);
};

[[noreturn]] void RefuseEnvironment(absl::string_view order) {
  std::fprintf(stderr, "LENGTHWISE_FAILPOINTS: cannot read \"%s\"; see platform/failpoint.h\n",
               std::string(order).c_str());
  std::_Exit(2);
}

std::pair<std::string, Order> ReadOrder(absl::string_view text) {
  const size_t equals = text.find('=');
  if (equals == absl::string_view::npos) RefuseEnvironment(text);
  const std::vector<absl::string_view> deed =
      absl::StrSplit(text.substr(equals + 1), absl::MaxSplits('@', 1));
  Order order;
  absl::string_view action = deed.front();
  if (deed.size() == 2 && (!absl::SimpleAtoi(deed[1], &order.only_at) || order.only_at < 1)) {
    RefuseEnvironment(text);
  }
  if (action == "crash") {
    order.action = Action::kCrash;
  } else if (action == "error") {
    order.action = Action::kError;
  } else if (action == "full") {
    order.action = Action::kFull;
  } else if (absl::ConsumePrefix(&action, "delay(") && absl::ConsumeSuffix(&action, ")") &&
             absl::SimpleAtoi(action, &order.milliseconds)) {
    order.action = Action::kDelay;
  } else {
    RefuseEnvironment(text);
  }
  return {std::string(text.substr(0, equals)), order};
}

Failpoints::Failpoints() {
  if (const char* orders = std::getenv("LENGTHWISE_FAILPOINTS")) {
    for (const absl::string_view order : absl::StrSplit(orders, ';', absl::SkipEmpty())) {
      orders_.insert(ReadOrder(order));
    }
  }
  if (const char* file = std::getenv("LENGTHWISE_FAILPOINTS_REACHED")) reached_file_ = file;
}

void Failpoints::Tell(absl::string_view text) {
  if (reached_file_.empty()) return;
  // A single write, so that lines of several processes do not interleave.
  const std::string line = absl::StrCat(text, "\n");
  const int descriptor =
      open(reached_file_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0 || write(descriptor, line.data(), line.size()) < 0) {
    RefuseEnvironment(reached_file_);
  }
  close(descriptor);
}

absl::Status Failpoints::Reach(absl::string_view name) {
  int64_t times = 0;
  {
    MutexLock lock(mutex_);
    times = ++reached_[name];
  }
  if (times == 1) Tell(name);
  const auto order = orders_.find(name);
  if (order == orders_.end()) return absl::OkStatus();
  if (order->second.only_at != 0 && order->second.only_at != times) return absl::OkStatus();
  Tell(absl::StrCat(name, " acts"));
  switch (order->second.action) {
    case Action::kCrash:
      kill(getpid(), SIGKILL);
      // The signal may take a moment to arrive; this thread must do nothing until then.
      while (true) pause();
    case Action::kError:
      return absl::UnavailableError(absl::StrCat("failpoint ", name));
    case Action::kFull:
      return absl::ResourceExhaustedError(
          absl::StrCat("failpoint ", name, ": no space left on device"));
    case Action::kDelay:
      absl::SleepFor(absl::Milliseconds(order->second.milliseconds));
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReachFailpoint(absl::string_view name) {
  // Never destroyed: threads may reach failpoints while the process ends.
  static Failpoints* const failpoints = new Failpoints();
  return failpoints->Reach(name);
}

}  // namespace lengthwise::platform
