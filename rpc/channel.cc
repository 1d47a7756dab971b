#include "rpc/channel.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_credentials_options.h"
#include "grpcpp/support/client_interceptor.h"
#include "platform/status_macros.h"
#include "rpc/address.h"
#include "rpc/certificates.h"
#include "rpc/token.h"
#include "rpc/transport.h"

namespace lengthwise::rpc {
namespace {

using grpc::experimental::ClientInterceptorFactoryInterface;
using grpc::experimental::ClientRpcInfo;
using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;

// Adds the bearer token to a call. gRPC's call credentials would need TLS, even on loopback.
class ShowToken final : public Interceptor {
 public:
  explicit ShowToken(std::shared_ptr<TokenFile> file) : file_(std::move(file)) {}

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA)) {
      methods->GetSendInitialMetadata()->emplace(kAuthorizationKey,
                                                 absl::StrCat(kBearerPrefix, file_->token()));
    }
    methods->Proceed();
  }

 private:
  const std::shared_ptr<TokenFile> file_;
};

class ShowTokenFactory final : public ClientInterceptorFactoryInterface {
 public:
  explicit ShowTokenFactory(std::shared_ptr<TokenFile> file) : file_(std::move(file)) {}
  Interceptor* CreateClientInterceptor(ClientRpcInfo*) override { return new ShowToken(file_); }

 private:
  const std::shared_ptr<TokenFile> file_;
};

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> Credentials(
    const ChannelOptions& options) {
  if (options.tls_certificate.empty() != options.tls_key.empty()) {
    return absl::InvalidArgumentError("tls_certificate and tls_key go together; set both");
  }
  if (options.tls_ca.empty()) {
    if (options.tls_certificate.empty()) return grpc::InsecureChannelCredentials();
    return absl::InvalidArgumentError(
        "tls_certificate needs tls_ca, the authority of the server's certificate; set it");
  }
  const std::string authority = options.tls_ca == "system" ? "" : options.tls_ca;
  if (!authority.empty()) {
    RETURN_IF_ERROR(ReadAuthorities(authority).status());
  }
  if (!options.tls_certificate.empty()) {
    ASSIGN_OR_RETURN(const std::string certificate,
                     ReadCertificate(options.tls_certificate, absl::Now()));
    RETURN_IF_ERROR(ReadPrivateKey(options.tls_key, certificate).status());
  }
  if (authority.empty() && options.tls_certificate.empty()) return grpc::SslCredentials({});
  // gRPC reads the files again and uses the new ones for new connections. What it cannot use leaves
  // the old ones in force.
  grpc::experimental::TlsChannelCredentialsOptions tls;
  tls.set_certificate_provider(std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      options.tls_key, options.tls_certificate, authority,
      static_cast<unsigned>(absl::ToInt64Seconds(options.certificates_interval))));
  if (!authority.empty()) tls.watch_root_certs();
  if (!options.tls_certificate.empty()) tls.watch_identity_key_cert_pairs();
  return grpc::experimental::TlsCredentials(tls);
}

// The address that gRPC's message is about: of several, the one that it tried last ("...; last
// error: UNKNOWN: ipv4:10.0.0.1:7070: Ssl handshake failed"), or the first if the message has none.
std::string FailedAddress(const std::string& message, const std::string& server) {
  const std::vector<absl::string_view> addresses = AddressesOf(server);
  if (addresses.size() < 2) return server;
  for (const std::string scheme : {"ipv4:", "ipv6:"}) {
    const size_t found = message.rfind(scheme);
    if (found == std::string::npos) continue;
    const size_t begin = found + scheme.size();
    const std::string address = absl::StrReplaceAll(
        message.substr(begin, message.find(": ", begin) - begin), {{"%5B", "["}, {"%5D", "]"}});
    if (!HostOf(address).empty()) return address;
  }
  return std::string(addresses[0]);
}

}  // namespace

ChannelOptions ToChannelOptions(const Settings& settings) {
  return {.server = settings.Value("server"),
          .token_file = settings.Value("token_file"),
          .tls_ca = settings.Value("tls_ca"),
          .tls_certificate = settings.Value("tls_certificate"),
          .tls_key = settings.Value("tls_key"),
          .tls_server_name = settings.Value("tls_server_name")};
}

absl::StatusOr<std::shared_ptr<grpc::Channel>> CreateChannel(const ChannelOptions& options,
                                                             grpc::ChannelArguments arguments) {
  KeepGrpcInitialized();
  ASSIGN_OR_RETURN(std::shared_ptr<grpc::ChannelCredentials> credentials, Credentials(options));
  // Bypass the environment's HTTP proxy, which is for hosts outside the server's network.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, options.pings.interval_ms);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, options.pings.timeout_ms);
  // gRPC's retries abort the process when an answer has no status, such as a proxy's page (1.51).
  // Callers retry.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetMaxReceiveMessageSize(kMaxAnswerBytes);
  grpc::ResourceQuota received;
  received.Resize(kMaxReceivedBytes);
  arguments.SetResourceQuota(received);
  // gRPC would decompress a message before it checks its size: one byte may become a thousand.
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  arguments.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, 1 << GRPC_COMPRESS_NONE);
  ASSIGN_OR_RETURN(const std::string target, TargetOf(options.server, options.warn));
  const bool encrypted = !options.tls_ca.empty();
  std::string server_name = options.tls_server_name;
  if (target != options.server) {
    // Without this, gRPC would use the whole address list as the server's name. With TLS, gRPC
    // also compares the authority with the certificate.
    const absl::string_view first = AddressesOf(options.server)[0];
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY,
                        encrypted && !server_name.empty() ? server_name : std::string(first));
    if (server_name.empty())
      server_name = absl::StrReplaceAll(HostOf(first), {{"[", ""}, {"]", ""}});
  }
  if (!server_name.empty() && encrypted) arguments.SetSslTargetNameOverride(server_name);
  if (options.token_file.empty()) {
    return grpc::CreateCustomChannel(target, credentials, arguments);
  }
  if (options.tls_ca.empty() && !IsLoopback(options.server)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the token of ", options.token_file, " is not sent to ", options.server,
        " in plain text; set tls_ca, the authority of the server's certificate, or go through a "
        "tunnel to 127.0.0.1"));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<TokenFile> token,
                   TokenFile::Open(options.token_file, options.warn));
  std::vector<std::unique_ptr<ClientInterceptorFactoryInterface>> interceptors;
  interceptors.push_back(std::make_unique<ShowTokenFactory>(std::move(token)));
  return grpc::experimental::CreateCustomChannelWithInterceptors(target, credentials, arguments,
                                                                 std::move(interceptors));
}

absl::Status ExplainRefusedConnection(const std::string& message, const ChannelOptions& options) {
  const auto says = [&](absl::string_view text) { return absl::StrContains(message, text); };
  if (!says("failed to connect")) return absl::OkStatus();
  const std::string server = FailedAddress(message, options.server);
  if (says("certificate verify failed")) {
    // Without -CAfile, openssl trusts the system's authorities.
    const bool is_file = options.tls_ca != "system";
    return absl::FailedPreconditionError(absl::StrCat(
        "this program does not accept the certificate of ", server, ": it has expired, or ",
        is_file ? absl::StrCat("tls_ca, ", options.tls_ca, ", is not the authority that signed it")
                : "none of the system's authorities has signed it; set tls_ca to the one that has",
        "; `openssl s_client -connect ", server,
        is_file ? absl::StrCat(" -CAfile ", options.tls_ca) : "", "` shows which"));
  }
  if (says("is not in peer certificate") || says("Hostname Verification")) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the certificate of ", server,
        " is for another name; reach the server by a name in it, or set tls_server_name"));
  }
  if (says("wrong version number")) {
    return absl::FailedPreconditionError(absl::StrCat(
        server,
        " does not speak TLS; if it is the server's port and not that of its metrics, start the "
        "server with --tls_certificate, or leave tls_ca out"));
  }
  if (says("Failed parsing HTTP/2") || says("http1.x server")) {
    return absl::UnavailableError(absl::StrCat(
        server,
        " answers, but is no Lengthwise server; check the port: it may be that of the metrics, or "
        "a proxy's"));
  }
  if (says("SETTINGS frame") || says("Handshake read failed") || says("Handshake timed out")) {
    return absl::UnavailableError(
        absl::StrCat(server, " accepts connections but does not answer; check the port",
                     options.tls_ca.empty() ? "" : ", and that its server has --tls_certificate"));
  }
  // A stopping server also closes connections this way. A retry may reach its replacement.
  if (!says("Socket closed") && !says("onnection reset")) return absl::OkStatus();
  if (options.tls_ca.empty()) {
    return absl::UnavailableError(
        absl::StrCat(server,
                     " closed the connection; if it speaks TLS, set tls_ca, the authority of its "
                     "certificate"));
  }
  if (options.tls_certificate.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(server, " does not accept the certificate ", options.tls_certificate,
                   "; use one that its --tls_client_ca signed and that has not expired"));
}

std::string ConnectFailure(const std::string& message) {
  const bool is_nested =
      absl::StartsWith(message, "failed to connect") || absl::StartsWith(message, "DNS resolution");
  const size_t last = is_nested ? message.rfind(": ") : std::string::npos;
  return last == std::string::npos ? message : message.substr(last + 2);
}

}  // namespace lengthwise::rpc
