// Tracks a watcher's connection and words its loss and return for the user.
#ifndef LENGTHWISE_CLIENT_WATCHING_LINK_STATE_H_
#define LENGTHWISE_CLIENT_WATCHING_LINK_STATE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace lengthwise::client {

// Not thread-safe.
class LinkState {
 public:
  // `connection` says why there is none; OK while connected. Returns true if it was just lost or
  // just came back.
  bool Update(const absl::Status& connection, absl::Time now);

  bool lost() const { return !connection_.ok(); }
  // "connection lost 0:12 ago, trying again"; for half a minute after a reconnect "connected again
  // after 0:12"; empty otherwise.
  std::string Note(absl::Time now) const;
  // Why it is lost; empty while connected.
  std::string reason() const { return std::string(connection_.message()); }

 private:
  absl::Status connection_;
  absl::Time lost_ = absl::InfinitePast();
  absl::Time back_ = absl::InfinitePast();
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_WATCHING_LINK_STATE_H_
