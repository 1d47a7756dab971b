// LeaseIds: ids by which workers prove that they hold a lease. An id cannot be guessed, and only
// the principal that acquired the lease can use it.
#ifndef LENGTHWISE_SERVER_COORDINATION_LEASE_IDS_H_
#define LENGTHWISE_SERVER_COORDINATION_LEASE_IDS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/scheduling/scheduler.h"
#include "server/storage/records.h"

namespace lengthwise::server {

// Ids are computed from the store's key and not stored, so a restarted server accepts them all.
// Thread-safe.
class LeaseIds {
 public:
  explicit LeaseIds(LeaseKey key) : key_(std::move(key)) {}

  // "lease-17-<32 hexadecimal digits>". "lease-17" for a lease granted by an older release, which
  // is not bound to a principal.
  std::string Make(Token token, absl::string_view principal) const;
  // True if `id` is the id of this principal's lease.
  bool Fits(absl::string_view id, Token token, absl::string_view principal) const;
  // PERMISSION_DENIED, with a reason, unless it fits.
  absl::Status Check(absl::string_view id, Token token, absl::string_view principal) const;

 private:
  const LeaseKey key_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_LEASE_IDS_H_
