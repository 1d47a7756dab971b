#include "server/services/rpc_server.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "platform/grpc_lifetime.h"
#include "server/services/validation.h"

namespace lengthwise::server {
namespace {

// Workers ping every 20 s to notice a dead connection; the server does the same.
constexpr int kPingIntervalMs = 20'000;
constexpr int kPingTimeoutMs = 20'000;
constexpr int kLeastPingIntervalMs = 10'000;

}  // namespace

absl::StatusOr<std::unique_ptr<RpcServer>> RpcServer::Start(Options options,
                                                            Coordinator& coordinator) {
  platform::KeepGrpcInitialized();
  // Both have effect on the builders that follow.
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();

  std::unique_ptr<RpcServer> server(new RpcServer(options, coordinator));
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(options.listen, grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(kMaxReceiveBytes);
  // Or two servers could share a port, and each would get some of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPingIntervalMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             kLeastPingIntervalMs);
  builder.RegisterService(&server->experiments_);
  builder.RegisterService(&server->workers_);
  builder.RegisterService(&server->fleet_);
  builder.RegisterService(&server->catalogue_);
  builder.RegisterService(&server->administration_);
  builder.experimental().SetInterceptorCreators(std::move(options.interceptors));
  server->server_ = builder.BuildAndStart();
  if (server->server_ == nullptr || port == 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot listen on ", options.listen,
        ": the port is in use, or this machine has no such address; choose another address"));
  }
  const absl::string_view listen = options.listen;
  server->address_ = absl::StrCat(listen.substr(0, listen.rfind(':')), ":", port);
  // The whole server ("") is known to the health service from the start; its services are made
  // known here.
  for (const char* service :
       {v1::ExperimentService::service_full_name(), v1::WorkerService::service_full_name(),
        v1::FleetService::service_full_name(), v1::CatalogueService::service_full_name(),
        v1::AdministrationService::service_full_name()}) {
    server->server_->GetHealthCheckService()->SetServingStatus(service, true);
  }
  return server;
}

RpcServer::RpcServer(const Options& options, Coordinator& coordinator)
    : coordinator_(coordinator),
      readers_(options.reader_threads),
      transfers_(options.transfer_threads),
      experiments_(coordinator, readers_, transfers_, streams_),
      workers_(coordinator, transfers_, streams_),
      fleet_(coordinator),
      catalogue_(options.catalogue),
      administration_(coordinator, transfers_, streams_) {}

RpcServer::~RpcServer() {
  if (server_ != nullptr) Stop(absl::ZeroDuration());
}

void RpcServer::Stop(absl::Duration grace) {
  server_->GetHealthCheckService()->Shutdown();
  streams_.StopAll();
  coordinator_.Stop();
  server_->Shutdown(absl::ToChronoTime(absl::Now() + grace));
  server_->Wait();
  server_.reset();
}

}  // namespace lengthwise::server
