// Quotas: limits of one principal: calls per second and open streams.
#ifndef LENGTHWISE_SERVER_SECURITY_QUOTAS_H_
#define LENGTHWISE_SERVER_SECURITY_QUOTAS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "platform/mutex.h"
#include "platform/token_bucket.h"

namespace lengthwise::server {

// Thread-safe. Memory grows with the number of principals: those with tokens, and those that the
// identity provider has signed tokens for.
class Quotas {
 public:
  struct Options {
    // Calls per second, including the opening of streams. 0: no limit.
    double calls_per_second = 2000;
    // Maximum burst of calls after a pause.
    double burst = 10'000;
    // Maximum number of open streams. 0: no limit.
    int64_t streams = 2000;
  };

  // An open stream. Ends when this is destroyed, on any thread, before the Quotas.
  using Stream = std::shared_ptr<void>;

  explicit Quotas(const Options& options, std::function<absl::Time()> now = absl::Now);

  // RESOURCE_EXHAUSTED with a google.rpc.RetryInfo, naming the flag that sets the limit.
  absl::Status TakeCall(const std::string& principal);
  absl::StatusOr<Stream> OpenStream(const std::string& principal);

 private:
  const Options options_;
  const std::function<absl::Time()> now_;
  platform::Mutex mutex_;
  std::map<std::string, platform::TokenBucket> calls_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, int64_t> streams_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SECURITY_QUOTAS_H_
