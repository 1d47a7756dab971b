// The network edge of the server: accepts connections, ends TLS, and relays between clients and
// gRPC through a FrameGuard.
//
// When descriptors run out, gRPC 1.51 leaks one for each connection that it cannot accept, and then
// accepts no connection again (CVE-2023-4785). It also lacks the limits of FrameGuard. So the edge
// owns the clients' sockets, and gRPC gets one end of a socket pair for each:
//
//   client --TCP, TLS--> edge --socket pair--> gRPC
//
// One thread relays for all connections (epoll). Its buffers for a connection are bounded: it stops
// reading from one side while the other side does not keep up (back-pressure). TLS handshakes and
// signatures of tokens cost up to milliseconds each, so they have two threads of their own: one for
// addresses that have shown valid credentials before, and one for strangers, where addresses take
// turns. Each connection waits for one of them at a time.
//
// A connection is untrusted until one of its calls shows valid credentials (FrameGuard). Untrusted
// connections are limited, in total and per address. At the total limit, a new connection evicts
// the oldest untrusted one of the address that has most. So a flood without a token costs a bounded
// amount of memory and cannot displace clients that have one.
#ifndef LENGTHWISE_SERVER_EDGE_EDGE_H_
#define LENGTHWISE_SERVER_EDGE_EDGE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "grpcpp/server_builder.h"
#include "platform/descriptors.h"
#include "platform/mutex.h"
#include "platform/work_pool.h"
#include "server/edge/frame_guard.h"
#include "server/edge/peers.h"
#include "server/edge/tls.h"

namespace lengthwise::server {

class Edge {
 public:
  struct Options {
    // "HOST:PORT"; port 0 takes a free one.
    std::string listen = "127.0.0.1:0";
    Encryption encryption;
    FrameGuard::Limits limits;
    // Maximum number of connections. 0: as many as the descriptor limit allows, less a reserve for
    // the server's files. One address may have half of them.
    int64_t connections = 0;
    // Maximum number of untrusted connections, in total and per address (IPv6: per /64 network).
    int64_t untrusted_connections = 512;
    int64_t untrusted_connections_per_address = 128;
    // Maximum memory of incomplete messages, headers, and answers that clients do not read, on all
    // connections together. Beyond it, the principal that has most loses its largest connection.
    int64_t message_bytes = int64_t{256} << 20;
    // Interval at which connections end whose credentials were revoked (Account::recheck).
    absl::Duration recheck_interval = absl::Seconds(30);
  };
  // Whose calls count together, and what they may take.
  struct Account {
    std::string name;
    FrameGuard::Principal limits;
    // Of all connections.
    double most_connections = 1;
    // Why a connection that showed the credentials must end: they were revoked. Takes microseconds:
    // a fleet has thousands of connections.
    std::function<absl::Status()> recheck = [] { return absl::OkStatus(); };
  };
  // Checks the credentials of a call: a client, "package.Service/Method" and the header
  // "authorization". Runs on the threads of handshakes.
  using Admit =
      std::function<absl::StatusOr<Account>(const Peer&, absl::string_view, absl::string_view)>;

  // Binds the address. Clients wait in the kernel's queue until Start. FAILED_PRECONDITION if the
  // address cannot be bound or the encryption cannot be used. The process ignores SIGPIPE from here
  // on.
  static absl::StatusOr<std::unique_ptr<Edge>> Listen(Options options);
  ~Edge();
  Edge(const Edge&) = delete;
  Edge& operator=(const Edge&) = delete;

  // Starts relaying to the server of `acceptor`, which must run. Call once.
  void Start(std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor, Admit admit);
  // Stops accepting, delivers gRPC's remaining bytes to clients for at most `grace`, and closes all
  // connections. Call it after gRPC's server has shut down.
  void Stop(absl::Duration grace);

  // Uses another certificate, key and authority for connections that begin from now on; any thread.
  // FAILED_PRECONDITION if they cannot be used: the old ones stay.
  absl::Status SetEncryption(const Encryption& encryption);

  // "HOST:PORT" with the port that was bound.
  const std::string& address() const { return address_; }

  // Reaches the server as a client on this machine would: connects, uses TLS if the port does, and
  // waits for gRPC's first bytes; each step takes at most `patience`. UNAVAILABLE with the reason.
  // One thread at a time. The limits on connections do not count this connection.
  absl::Status CheckReachable(absl::Duration patience);

 private:
  struct Connection;
  struct Address {
    int64_t connections = 0;
    std::list<Connection*> untrusted;  // the oldest first
  };

  explicit Edge(Options options);
  absl::Status Bind();
  void Run();
  // Wakes the relaying thread; any thread.
  void Wake();
  // Only the relaying thread calls the functions below.
  // Accepts connections, or leaves them in the kernel's queue.
  void WatchListeners(bool watch);
  // Null if the connection has ended.
  Connection* Find(uint64_t id);
  void Accept(int listener);
  bool MakeRoom(const std::string& address);
  void Open(int client, const std::string& address, std::string shown, bool is_own);
  bool ConnectToGrpc(Connection& connection);
  // Moves available bytes in both directions. May destroy the connection.
  void Relay(Connection& connection);
  // Runs `work` on a thread of handshakes, then relays for the connection again.
  void Submit(Connection& connection, std::function<void(Connection&)> work);
  // Returns false if the handshake failed.
  bool FinishHandshake(Connection& connection);
  void FromServer(Connection& connection, bool& moved);
  // The next three return false if the connection must end.
  bool FromClient(Connection& connection, bool& moved);
  // Reads into buffer_, behind `bytes`, and makes it the bytes there.
  bool ReadClient(Connection& connection, absl::string_view& bytes, bool& moved);
  bool Flush(Connection& connection, bool& moved);
  void NoteTrust(Connection& connection);
  // Sets the memory of the connection that counts in Options::message_bytes.
  void CountMessages(Connection& connection, int64_t bytes);
  void RefuseLargestMessages();
  void RefuseRevoked();
  // Sends `reason` to the client, ends gRPC's side, and closes the connection once it is sent.
  void Refuse(Connection& connection, absl::string_view reason);
  void Destroy(Connection& connection);
  void Watch(Connection& connection);
  void SetTimer(Connection& connection, absl::Time time);

  const Options options_;
  platform::Mutex tls_mutex_;
  SslContext tls_ ABSL_GUARDED_BY(tls_mutex_);  // null: plain text
  SslContext client_tls_;                       // of CheckReachable
  std::vector<platform::Descriptor> listeners_;
  std::string address_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  Admit admit_;
  platform::Descriptor epoll_;
  platform::Descriptor wake_;
  std::thread thread_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int64_t> stop_at_ns_ = 0;  // of the steady clock
  std::atomic<int> own_port_ = 0;        // of CheckReachable's connection

  platform::Mutex worked_mutex_;
  // Connections whose work has ended since the relaying thread last looked.
  std::vector<uint64_t> worked_ ABSL_GUARDED_BY(worked_mutex_);

  int64_t most_connections_ = 0;
  absl::Time listen_again_ = absl::InfiniteFuture();
  absl::Time recheck_at_ = absl::InfinitePast();
  uint64_t next_id_ = 1;
  absl::flat_hash_map<uint64_t, std::shared_ptr<Connection>> connections_;
  absl::flat_hash_map<std::string, Address> addresses_;
  absl::flat_hash_set<std::string> admitted_;  // addresses that had a trusted connection
  int64_t untrusted_ = 0;
  int64_t message_bytes_ = 0;
  // By account, of all that were seen: at most one for each token that was valid.
  absl::flat_hash_map<std::string, std::shared_ptr<FrameGuard::Principal>> principals_;
  std::set<std::pair<absl::Time, uint64_t>> timers_;
  std::vector<uint64_t> ready_;  // have more to move than one turn moves
  std::vector<char> buffer_;
  // Threads of handshakes, until Stop.
  std::unique_ptr<platform::WorkPool> known_work_ = std::make_unique<platform::WorkPool>(1);
  std::unique_ptr<platform::WorkPool> other_work_ = std::make_unique<platform::WorkPool>(1);
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_EDGE_EDGE_H_
