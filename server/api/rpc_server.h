// The gRPC server: all services, health checking and reflection on one port.
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
#include "proto/catalogue_service.pb.h"
#include "rpc/transport.h"
#include "server/api/access_service.h"
#include "server/api/administration_service.h"
#include "server/api/calls.h"
#include "server/api/catalogue_service.h"
#include "server/api/experiment_service.h"
#include "server/api/fleet_service.h"
#include "server/api/open_streams.h"
#include "server/api/push_stream.h"
#include "server/api/work_pool.h"
#include "server/api/worker_service.h"
#include "server/coordination/core.h"
#include "server/edge/edge.h"
#include "server/security/audit_log.h"
#include "server/security/audit_trail.h"
#include "server/security/gate.h"
#include "server/security/token_store.h"

namespace lengthwise::server {

class RpcServer {
 public:
  using Encryption = server::Encryption;

  struct Options {
    // "HOST:PORT"; port 0 takes a free one.
    std::string listen = "127.0.0.1:0";
    // What connections may ask for. Its address and encryption are those below and above.
    Edge::Options edge;
    // Who may call. Without tokens everyone may; they outlive the server.
    Gate::Options gate;
    TokenStore* tokens = nullptr;
    // Who made and changed what; it outlives the server. Null: that is not recorded.
    AuditLog* audit = nullptr;
    // How the port is encrypted.
    Encryption encryption;
    // How a dead connection is noticed.
    rpc::Pings pings;
    // What CatalogueService lists.
    std::vector<v1::CatalogueEntry> catalogue;
    // See every call; for the metrics.
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>>
        interceptors;
    // Where its streams are kept while they are open; for the metrics. Absent: its own.
    std::shared_ptr<OpenStreams> streams;
    // How often the callers of open streams are asked for again: so long a stream may outlive its
    // token.
    absl::Duration recheck_interval = absl::Seconds(1);
    // Threads that read a few rows of the store (Work::kLookup), and those that read pages of
    // events and answer queries (Work::kQuery): a list of trials does not wait for a loss curve.
    int lookup_threads = 2;
    int reader_threads = 2;
    // Threads that read models and attention maps for people, and make backups. Of workers'
    // checkpoints: their own in each direction, so that neither a viewer nor a worker that resumes
    // holds up what must become durable.
    int transfer_threads = 8;
    int worker_transfer_threads = 8;
    int worker_upload_threads = 8;
    // The stream of a client that takes nothing of an answer for this long ends with
    // DEADLINE_EXCEEDED.
    absl::Duration transfer_patience = absl::Minutes(1);
    // Longest that a call without a deadline waits for one of these threads.
    absl::Duration longest_wait = absl::Minutes(1);
  };

  // Serves until Stop. FAILED_PRECONDITION when the address cannot be bound or the certificate
  // cannot be used. `core` outlives the
  // server.
  static absl::StatusOr<std::unique_ptr<RpcServer>> Start(Options options, Core& core);
  ~RpcServer();

  // "HOST:PORT" with the port that was bound.
  const std::string& address() const { return edge_->address(); }
  // Edge::CheckReachable.
  absl::Status CheckReachable(absl::Duration patience) { return edge_->CheckReachable(patience); }

  // Ends open streams with UNAVAILABLE and health with NOT_SERVING, stops the core (which
  // answers what waits), gives calls until `grace` to end, then breaks them. Returns when all are
  // over. Once.
  void Stop(absl::Duration grace);

 private:
  RpcServer(const Options& options, std::unique_ptr<Edge> edge, Core& core);

  Core& core_;
  const std::shared_ptr<OpenStreams> streams_;
  const std::unique_ptr<Edge> edge_;
  const std::unique_ptr<AuditTrail> audit_;  // null where nothing is recorded
  Gate gate_;
  WorkPool lookups_;
  WorkPool readers_;
  TransferThreads transfers_;
  TransferThreads worker_transfers_;
  WorkPool worker_uploads_;
  Calls calls_;
  ExperimentService experiments_;
  WorkerService workers_;
  FleetService fleet_;
  CatalogueService catalogue_;
  AdministrationService administration_;
  AccessService access_;
  // Ends streams whose token was revoked or has expired. Null where there are no tokens.
  std::unique_ptr<platform::PeriodicThread> recheck_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_RPC_SERVER_H_
