#include "server/services/rpc_server.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "platform/grpc_lifetime.h"

namespace lengthwise::server {
namespace {

std::shared_ptr<grpc::ServerCredentials> Credentials(const RpcServer::Encryption& encryption) {
  if (encryption.certificate.empty()) return grpc::InsecureServerCredentials();
  // Asked for and checked, but needed for workers' calls alone (Gate): people have tokens.
  grpc::SslServerCredentialsOptions options(encryption.client_authority.empty()
                                                ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                                                : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = encryption.client_authority;
  options.pem_key_cert_pairs.push_back({encryption.key, encryption.certificate});
  return grpc::SslServerCredentials(options);
}

Gate::Options WithAudit(Gate::Options options, AuditTrail* audit) {
  options.audit = audit;
  return options;
}

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
  builder.AddListeningPort(options.listen, Credentials(options.encryption), &port);
  builder.SetMaxReceiveMessageSize(access::kMaxMessageBytes);
  // Or two servers could share a port, and each would get some of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, options.pings.interval_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, options.pings.timeout_ms);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS,
                             options.pings.least_interval_ms());
  builder.RegisterService(&server->experiments_);
  builder.RegisterService(&server->workers_);
  builder.RegisterService(&server->fleet_);
  builder.RegisterService(&server->catalogue_);
  builder.RegisterService(&server->administration_);
  builder.RegisterService(&server->access_);
  if (server->audit_ != nullptr) options.interceptors.push_back(server->audit_->Interceptor());
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
        v1::AccessService::service_full_name(), v1::AdministrationService::service_full_name()}) {
    server->server_->GetHealthCheckService()->SetServingStatus(service, true);
  }
  if (options.tokens != nullptr) {
    server->guard_ =
        std::make_unique<StreamGuard>(*server->streams_, server->gate_, options.recheck_interval);
  }
  return server;
}

RpcServer::RpcServer(const Options& options, Coordinator& coordinator)
    : coordinator_(coordinator),
      streams_(options.streams != nullptr ? options.streams : std::make_shared<OpenStreams>()),
      audit_(options.audit == nullptr ? nullptr : std::make_unique<AuditTrail>(*options.audit)),
      gate_(WithAudit(options.gate, audit_.get()), options.tokens),
      readers_(options.reader_threads, options.longest_wait),
      transfers_(options.transfer_threads, options.longest_wait, options.transfer_patience),
      worker_transfers_(options.worker_transfer_threads, options.longest_wait,
                        options.transfer_patience),
      experiments_(coordinator, readers_, transfers_, *streams_, gate_),
      workers_(coordinator, worker_transfers_, *streams_, gate_),
      fleet_(coordinator, gate_),
      catalogue_(options.catalogue, readers_, gate_),
      administration_(coordinator, transfers_, *streams_, gate_),
      access_(gate_, options.tokens) {}

RpcServer::~RpcServer() {
  if (server_ != nullptr) Stop(absl::ZeroDuration());
}

void RpcServer::Stop(absl::Duration grace) {
  server_->GetHealthCheckService()->Shutdown();
  streams_->StopAll();
  coordinator_.Stop();
  server_->Shutdown(absl::ToChronoTime(absl::Now() + grace));
  server_->Wait();
  server_.reset();
}

}  // namespace lengthwise::server
