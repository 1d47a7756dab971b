// The ids of leases. An id is what a worker shows for its lease: nobody guesses it, and it is good
// for the principal alone that acquired the lease.
#ifndef LENGTHWISE_SERVER_COORDINATION_LEASE_IDS_H_
#define LENGTHWISE_SERVER_COORDINATION_LEASE_IDS_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/scheduling/scheduler.h"
#include "server/storage/records.h"

namespace lengthwise::server {

// Made of the store's key and not kept: a server that was started again knows them all.
// Thread-safe.
class LeaseIds {
 public:
  explicit LeaseIds(LeaseKey key) : key_(std::move(key)) {}

  // "lease-17-<32 hexadecimal digits>"; "lease-17" of a lease that an older program gave, which is
  // not bound to a principal.
  std::string Make(Token token, absl::string_view principal) const;
  // True if `id` is that of the principal's lease.
  bool Fits(absl::string_view id, Token token, absl::string_view principal) const;
  // PERMISSION_DENIED, with a reason, unless it fits.
  absl::Status Check(absl::string_view id, Token token, absl::string_view principal) const;

 private:
  const LeaseKey key_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_LEASE_IDS_H_
