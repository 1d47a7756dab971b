// Carries what the edge knows of a client to gRPC's calls. gRPC gets each connection as one end of
// a socket pair, and reports the name of the other end as the peer of its calls
// (grpc::ServerContext::peer). So the edge writes the client into that name.
#ifndef LENGTHWISE_SERVER_EDGE_PEERS_H_
#define LENGTHWISE_SERVER_EDGE_PEERS_H_

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace lengthwise::server {

struct Peer {
  // "HOST:PORT" of the client.
  std::string address;
  // The client showed a certificate that TLS has verified.
  bool has_certificate = false;
};

// The name of a socket in the abstract namespace. No two sockets have the same `id`.
inline std::string SocketName(const Peer& peer, absl::string_view id) {
  return absl::StrCat("lengthwise-", id, "=", peer.has_certificate ? "certified" : "", "=",
                      peer.address);
}

// The client of a call. If it did not come through the edge, gRPC's name of its peer.
inline Peer PeerOf(const std::string& grpcs_name) {
  const std::vector<std::string> parts = absl::StrSplit(grpcs_name, '=');
  if (parts.size() != 3 || parts[0].rfind("unix-abstract:lengthwise-", 0) != 0) {
    return {.address = grpcs_name};
  }
  // gRPC encodes the name as the path of a URI.
  return {.address = absl::StrReplaceAll(parts[2], {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}}),
          .has_certificate = parts[1] == "certified"};
}

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_EDGE_PEERS_H_
