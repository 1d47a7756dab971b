// RpcServer: the gRPC server with all services, health checking and reflection on one port.
#ifndef LENGTHWISE_SERVER_API_RPC_SERVER_H_
#define LENGTHWISE_SERVER_API_RPC_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/server.h"
#include "grpcpp/support/server_interceptor.h"
#include "platform/periodic_thread.h"
#include "platform/work_pool.h"
#include "proto/catalogue_service.pb.h"
#include "rpc/transport.h"
#include "server/api/calls.h"
#include "server/api/open_streams.h"
#include "server/api/push_stream.h"
#include "server/coordination/core.h"
#include "server/edge/edge.h"
#include "server/security/audit_log.h"
#include "server/security/gate.h"
#include "server/security/token_store.h"

namespace lengthwise::server {

class RpcServer {
 public:
  struct Options {
    // Address, encryption and limits of connections.
    Edge::Options edge;
    // If not empty, gRPC listens on a Unix socket at this path instead, without an edge: all who
    // can open it are trusted. They are one client, whose streams only the limits of all restrict.
    std::string socket;
    // Access control. Without tokens everyone may call. The tokens must outlive the server.
    Gate::Options gate;
    TokenStore* tokens = nullptr;
    // Records who changed what. Must outlive the server. Null: nothing is recorded.
    AuditLog* audit = nullptr;
    // Keepalive: how a dead connection is noticed.
    rpc::Pings pings;
    // Entries of CatalogueService.
    std::vector<v1::CatalogueEntry> catalogue;
    // Interceptors of every call, for the metrics.
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>>
        interceptors;
    // Registry of open streams, shared with the metrics. Null: a private one.
    std::shared_ptr<OpenStreams> streams;
    // Interval at which open streams and their callers are checked again. A stream may outlive its
    // token, and transfer_patience, by this long.
    absl::Duration recheck_interval = absl::Seconds(1);
    // Number of threads that read a few rows of the store (Work::kLookup) and pages of watches, and
    // of threads that answer queries (Work::kQuery). Separate, so that neither a list of trials nor
    // a watch waits for a loss curve. One client's calls use all but one of them, and so do its
    // watches.
    int lookup_threads = 3;
    int reader_threads = 3;
    // Number of threads for users' models, attention maps and backups. Workers' checkpoints have
    // threads of their own in each direction, so that neither viewers nor resuming workers delay
    // what must become durable.
    int transfer_threads = 8;
    int worker_transfer_threads = 8;
    // They wait for the disk, whose syncs serve all that wait at the same time.
    int worker_upload_threads = 32;
    // A stream whose client reads nothing, or an upload whose client sends nothing, for this long
    // ends with DEADLINE_EXCEEDED.
    absl::Duration transfer_patience = absl::Minutes(1);
    // Maximum time that a call without a deadline waits for a thread.
    absl::Duration longest_wait = absl::Minutes(1);
  };

  // Serves until Stop. FAILED_PRECONDITION if the address cannot be bound or the certificate cannot
  // be used. `core` must outlive the server.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(Options options, Core& core);
  ~RpcServer();

  // "HOST:PORT" with the bound port, or "unix:PATH".
  const std::string& address() const { return address_; }
  // Not with a Unix socket.
  Edge& edge() { return *edge_; }

  // Ends open streams with UNAVAILABLE and health with NOT_SERVING, stops the core, which answers
  // waiting calls, gives calls until `grace` to end, then breaks them. Returns when all calls have
  // ended. Call once.
  void Stop(absl::Duration grace);

 private:
  RpcServer(const Options& options, std::unique_ptr<Edge> edge, Core& core);

  Core& core_;
  const std::shared_ptr<OpenStreams> streams_;
  const std::unique_ptr<Edge> edge_;  // null with a Unix socket
  const std::string address_;
  Gate gate_;
  platform::WorkPool lookups_;
  platform::WorkPool readers_;
  TransferThreads transfers_;
  TransferThreads worker_transfers_;
  TransferThreads worker_uploads_;
  Calls calls_;
  std::vector<std::unique_ptr<Service>> services_;
  // Ends streams whose token was revoked or has expired, and those whose clients do nothing.
  std::unique_ptr<platform::PeriodicThread> recheck_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_RPC_SERVER_H_
