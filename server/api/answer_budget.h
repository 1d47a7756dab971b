// AnswerBudget: the memory of answers that clients have not read yet, shared by all clients.
#ifndef LENGTHWISE_SERVER_API_ANSWER_BUDGET_H_
#define LENGTHWISE_SERVER_API_ANSWER_BUDGET_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "google/protobuf/message.h"
#include "platform/mutex.h"
#include "rpc/status.h"

namespace lengthwise::server {

// Thread-safe.
class AnswerBudget {
 public:
  static constexpr int64_t kBytes = int64_t{256} << 20;
  // Memory of a call beside its answer.
  static constexpr int64_t kCallBytes = 16 << 10;

  explicit AnswerBudget(int64_t bytes = kBytes) : bytes_(bytes) {}

  // Counts until it is destroyed.
  using Share = std::shared_ptr<const void>;

  // Takes the memory of an answer for `client`: the message, gRPC's copy of it, and the call. A
  // client may hold no more than stays free: one at most half, two a third each. RESOURCE_EXHAUSTED
  // with a google.rpc.RetryInfo beyond. The budget must outlive the share.
  absl::StatusOr<Share> Take(const std::string& client, const google::protobuf::Message& answer) {
    const int64_t bytes = 2 * static_cast<int64_t>(answer.ByteSizeLong()) + kCallBytes;
    platform::MutexLock lock(mutex_);
    int64_t& held = held_[client];
    if (held + bytes > bytes_ - total_ - bytes) {
      const int64_t had = held;
      if (had == 0) held_.erase(client);
      return rpc::ExhaustedFor(
          kRetry,
          absl::StrCat("the answer needs ", bytes, " bytes, and ", had, " bytes of answers for ",
                       client, " are not read yet; the server keeps ", bytes_,
                       " for all clients: read them, ask for less, or call again later"));
    }
    held += bytes;
    total_ += bytes;
    return Share(this, [this, client, bytes](const void*) { Give(client, bytes); });
  }

 private:
  static constexpr absl::Duration kRetry = absl::Seconds(2);

  void Give(const std::string& client, int64_t bytes) {
    platform::MutexLock lock(mutex_);
    total_ -= bytes;
    const auto held = held_.find(client);
    held->second -= bytes;
    if (held->second == 0) held_.erase(held);
  }

  const int64_t bytes_;
  platform::Mutex mutex_;
  int64_t total_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, int64_t> held_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_ANSWER_BUDGET_H_
