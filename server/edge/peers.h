// Maps a gRPC call to its client connection: address and certificate.
//
// gRPC gets each connection as one end of a socket pair. The other end has a unique name, which
// gRPC reports as the call's peer (grpc::ServerContext::peer).
#ifndef LENGTHWISE_SERVER_EDGE_PEERS_H_
#define LENGTHWISE_SERVER_EDGE_PEERS_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "platform/mutex.h"

namespace lengthwise::server {

struct Peer {
  // "HOST:PORT" of the client.
  std::string address;
  // The client showed a certificate that TLS has verified.
  bool has_certificate = false;
};

// Thread-safe.
class Peers {
 public:
  // `name` is the result of grpc::ServerContext::peer for the connection.
  void Add(const std::string& name, std::shared_ptr<Peer> peer) {
    platform::MutexLock lock(mutex_);
    peers_[name] = std::move(peer);
  }
  void Remove(const std::string& name) {
    platform::MutexLock lock(mutex_);
    peers_.erase(name);
  }
  // Null if the connection has ended or did not come through the edge.
  std::shared_ptr<Peer> Find(absl::string_view name) const {
    platform::MutexLock lock(mutex_);
    const auto found = peers_.find(name);
    return found == peers_.end() ? nullptr : found->second;
  }

 private:
  mutable platform::Mutex mutex_;
  absl::flat_hash_map<std::string, std::shared_ptr<Peer>> peers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_EDGE_PEERS_H_
