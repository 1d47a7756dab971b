#include "server/api/rpc_server.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "platform/status_macros.h"
#include "rpc/transport.h"
#include "server/api/services.h"

namespace lengthwise::server {
namespace {

constexpr int kMaxMetadataBytes = 16 << 10;
// Maximum number of workers' uploads. Enough for a large fleet that drains at once: a worker gives
// up an upload that makes no progress, so it must not wait for its turn.
constexpr int kWorkerUploads = 16'384;
// Maximum number of open streams of a fleet: ten thousand workers have about four each.
constexpr int64_t kFleetStreams = 65'536;
// Of one connection of workers with a token: a worker has one, with about four. A call needs up to
// 16 KB until its answer is read.
constexpr int64_t kWorkerStreams = 16;
// Bytes that a stream may send before its handler reads them. gRPC would let the window grow to 32
// MiB, and keeps what nobody reads: an empty message, of five bytes, in seventy. It opens the
// window for the rest of a message that a handler waits for.
constexpr int kUnreadBytes = 4 << 10;
// Time to send the last status to clients that read slowly.
constexpr absl::Duration kFarewell = absl::Milliseconds(500);

int StreamsOfAClient(const RpcServer::Options& options) {
  return options.socket.empty() ? TransferThreads::kStreamsOfAClient : kWorkerUploads;
}

// What the caller's connections may take together. `calls`: its quota, a second.
Edge::Account AccountOf(const Caller& caller, double calls) {
  Edge::Account account = {.name = caller.principal};
  // A fleet shares one token, or none.
  const bool is_fleet = caller.role == v1::WORKER || caller.token_id.empty();
  if (is_fleet) {
    account.name += " and its workers";
    account.limits.most_streams = kFleetStreams;
    if (caller.role == v1::WORKER) account.limits.most_streams_of_a_connection = kWorkerStreams;
    return account;
  }
  account.most_connections = 0.5;
  if (caller.role == v1::ADMIN) {
    account.name += " as an administrator";  // who may also be a worker
  } else {
    account.limits.most_message_bytes = rpc::kMaxClientRequestBytes;
  }
  // Calls beyond the quota are told so, up to twice of it. Each costs gRPC 70 us.
  if (calls > 0) {
    using Principal = FrameGuard::Principal;
    account.limits.new_streams =
        platform::TokenBucket(std::min(Principal::kStreamRate, 2 * calls), Principal::kStreamBurst);
  }
  return account;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(Options options, Core& core) {
  rpc::KeepGrpcInitialized();
  grpc::EnableDefaultHealthCheckService(true);  // affects the builders created after it

  std::unique_ptr<Edge> edge;
  if (options.socket.empty()) {
    ASSIGN_OR_RETURN(edge, Edge::Listen(options.edge));
  }
  std::unique_ptr<RpcServer> server(new RpcServer(options, std::move(edge), core));
  grpc::ServerBuilder builder;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  if (server->edge_ == nullptr) {
    builder.AddListeningPort(server->address_, grpc::InsecureServerCredentials());
  } else {
    // The edge terminates TLS.
    acceptor = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        grpc::InsecureServerCredentials());
  }
  builder.SetMaxReceiveMessageSize(rpc::kMaxMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, FrameGuard::Principal::kMostStreams);
  builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kUnreadBytes);
  // gRPC would decompress a message before it checks its size: one byte may become a thousand.
  // Compressed calls get UNIMPLEMENTED.
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, options.pings.interval_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, options.pings.timeout_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             options.pings.least_interval_ms());
  for (const auto& service : server->services_) builder.RegisterService(service.get());
  builder.experimental().SetInterceptorCreators(std::move(options.interceptors));
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr) {
    return absl::InternalError(absl::StrCat("gRPC did not start on ", server->address_));
  }
  // The health service knows the whole server ("") from the start, but not its single services.
  for (const auto& service : server->services_) {
    server->server_->GetHealthCheckService()->SetServingStatus(service->name(), true);
  }
  // A unary call passes the gate once and ends soon. A watcher or a worker passes it once and stays
  // for days, so it must be checked again.
  server->recheck_ = std::make_unique<platform::PeriodicThread>(
      options.recheck_interval, [streams = server->streams_, gate = &server->gate_] {
        streams->Check([gate](const Caller& caller) { return gate->Recheck(caller); });
        return true;
      });
  if (server->edge_ == nullptr) return server;
  server->edge_->Start(std::move(acceptor),
                       [gate = &server->gate_, calls = options.gate.quotas.calls_per_second](
                           const Peer& peer, absl::string_view method,
                           absl::string_view authorization) -> absl::StatusOr<Edge::Account> {
                         Gate::Admission met;
                         Caller& caller = met.caller;
                         const absl::Status status = gate->Meet(peer, method, authorization, met);
                         if (!status.ok()) met.audited.End(status);
                         RETURN_IF_ERROR(status);
                         Edge::Account account = AccountOf(caller, calls);
                         // When the token expires, the client may already call with its next one.
                         caller.expire_time = absl::InfiniteFuture();
                         account.recheck = [gate, caller] { return gate->Recheck(caller); };
                         return account;
                       });
  return server;
}

RpcServer::RpcServer(const Options& options, std::unique_ptr<Edge> edge, Core& core)
    : core_(core),
      streams_(options.streams != nullptr ? options.streams : std::make_shared<OpenStreams>()),
      edge_(std::move(edge)),
      address_(edge_ == nullptr ? absl::StrCat("unix:", options.socket) : edge_->address()),
      gate_(options.gate, options.tokens, absl::Now, options.audit),
      lookups_(options.lookup_threads, options.longest_wait),
      readers_(options.reader_threads, options.longest_wait),
      transfers_(options.transfer_threads, options.longest_wait, options.transfer_patience,
                 TransferThreads::kStreams, StreamsOfAClient(options)),
      worker_transfers_(options.worker_transfer_threads, options.longest_wait,
                        options.transfer_patience, TransferThreads::kStreams,
                        StreamsOfAClient(options)),
      // Checkpoints wait for a thread however long it takes.
      worker_uploads_(options.worker_upload_threads, absl::InfiniteDuration(),
                      options.transfer_patience, kWorkerUploads, StreamsOfAClient(options)),
      calls_(gate_,
             {.lookups = lookups_,
              .queries = readers_,
              .files = transfers_.pool,
              .checkpoints = worker_uploads_.pool},
             *streams_) {
  services_.push_back(NewExperimentService(core, transfers_, calls_));
  services_.push_back(NewWorkerService(core, worker_transfers_, worker_uploads_, calls_));
  services_.push_back(NewFleetService(core, calls_));
  services_.push_back(NewCatalogueService(options.catalogue, calls_));
  services_.push_back(NewAdministrationService(core.backups(), transfers_, calls_));
  services_.push_back(NewAccessService(calls_, options.tokens));
  std::vector<std::string> names;
  for (const auto& service : services_) names.push_back(service->name());
  services_.push_back(NewReflectionService(std::move(names), calls_));
}

RpcServer::~RpcServer() {
  if (server_ != nullptr) Stop(absl::ZeroDuration());
}

void RpcServer::Stop(absl::Duration grace) {
  // In this order: streams end with a status before gRPC breaks them, the core answers waiting
  // calls before gRPC's grace period, and the edge then still delivers gRPC's last bytes.
  server_->GetHealthCheckService()->Shutdown();
  streams_->StopAll();
  core_.Stop();
  server_->Shutdown(absl::ToChronoTime(absl::Now() + grace));
  core_.Interrupt();  // a store that hangs must not hold the server
  server_->Wait();
  server_.reset();
  if (edge_ != nullptr) edge_->Stop(kFarewell);
}

}  // namespace lengthwise::server
