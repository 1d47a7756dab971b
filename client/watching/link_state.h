// What a watcher says of its connection: that it is lost, and that it is back.
#ifndef LENGTHWISE_CLIENT_WATCHING_LINK_STATE_H_
#define LENGTHWISE_CLIENT_WATCHING_LINK_STATE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace lengthwise::client {

// Not thread-safe.
class LinkState {
 public:
  // `connection` says why there is none; OK while there is one. Returns whether it was lost or came
  // back with this.
  bool Update(const absl::Status& connection, absl::Time now);

  bool lost() const { return !connection_.ok(); }
  // "connection lost 0:12 ago, trying again"; for half a minute after it came back "connected again
  // after 0:12"; empty otherwise.
  std::string Note(absl::Time now) const;
  // Why it is lost; empty where it is not.
  std::string reason() const { return std::string(connection_.message()); }

 private:
  absl::Status connection_;
  absl::Time lost_ = absl::InfinitePast();
  absl::Time back_ = absl::InfinitePast();
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_WATCHING_LINK_STATE_H_
