// AnswerBudget: the memory of answers that clients have not read yet, and of the requests to them,
// shared by all clients.
#ifndef LENGTHWISE_SERVER_API_ANSWER_BUDGET_H_
#define LENGTHWISE_SERVER_API_ANSWER_BUDGET_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/message.h"
#include "platform/mutex.h"
#include "rpc/status.h"

namespace lengthwise::server {

// Thread-safe.
class AnswerBudget {
 public:
  static constexpr int64_t kBytes = int64_t{256} << 20;
  // Memory of a call beside its messages.
  static constexpr int64_t kCallBytes = 16 << 10;

  // `retry`: the time after which a refused call may be repeated.
  explicit AnswerBudget(int64_t bytes = kBytes, absl::Duration retry = absl::Seconds(2))
      : bytes_(bytes), retry_(retry) {}

  // Counts until it is destroyed.
  using Share = std::shared_ptr<const void>;

  // Takes the memory of an answer of `method`, or with an empty one that of a request, for
  // `client`: the message, a copy of it, and the call. A client's message may need sixty times its
  // bytes. A client may hold no more than stays free: one at most half, two a third each.
  // RESOURCE_EXHAUSTED with a google.rpc.RetryInfo beyond. The budget must outlive the share, and
  // `method` the budget.
  absl::StatusOr<Share> Take(const std::string& client, absl::string_view method,
                             const google::protobuf::Message& message) {
    const size_t size = method.empty() ? message.SpaceUsedLong() : message.ByteSizeLong();
    return TakeSize(client, method, static_cast<int64_t>(size));
  }
  // As Take, for a message of at most `size` bytes of which `copies` copies are made.
  absl::StatusOr<Share> TakeSize(const std::string& client, absl::string_view method, int64_t size,
                                 int64_t copies = 1) {
    const int64_t bytes = (1 + copies) * size + kCallBytes;
    platform::MutexLock lock(mutex_);
    Client& of = clients_[client];
    if (of.bytes + bytes > bytes_ - total_ - bytes) {
      const int64_t had = of.bytes;
      if (!method.empty()) {
        of.refused[method] = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(retry_);
      }
      if (had == 0) clients_.erase(client);
      return rpc::ExhaustedFor(
          retry_,
          absl::StrCat("a message needs ", bytes, " bytes, and ", had, " bytes of calls of ",
                       client, " are not answered or not read yet; the server keeps ", bytes_,
                       " for all clients: read answers, ask for less, or call again later"));
    }
    of.bytes += bytes;
    total_ += bytes;
    return Share(this, [this, client, bytes](const void*) { Give(client, bytes); });
  }

  // Call it before the work for an answer. RESOURCE_EXHAUSTED for `retry` after Take has refused an
  // answer of this method, while `client` has calls left that count.
  absl::Status CheckRoom(const std::string& client, absl::string_view method) {
    platform::MutexLock lock(mutex_);
    const auto of = clients_.find(client);
    if (of == clients_.end()) return absl::OkStatus();
    const auto refused = of->second.refused.find(method);
    if (refused == of->second.refused.end() ||
        refused->second <= std::chrono::steady_clock::now()) {
      return absl::OkStatus();
    }
    return rpc::ExhaustedFor(
        retry_, absl::StrCat(of->second.bytes, " bytes of calls of ", client,
                             " are not answered or not read yet, which left no room for ", method,
                             "; read answers, ask for less, or call again later"));
  }

 private:
  struct Client {
    int64_t bytes = 0;
    // Methods of which an answer was refused, and until when that counts.
    absl::flat_hash_map<absl::string_view, std::chrono::steady_clock::time_point> refused;
  };

  void Give(const std::string& client, int64_t bytes) {
    platform::MutexLock lock(mutex_);
    total_ -= bytes;
    const auto of = clients_.find(client);
    of->second.bytes -= bytes;
    if (of->second.bytes == 0) clients_.erase(of);
  }

  const int64_t bytes_;
  const absl::Duration retry_;
  platform::Mutex mutex_;
  int64_t total_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, Client> clients_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_ANSWER_BUDGET_H_
