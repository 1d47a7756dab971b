#include "server/metrics/rpc_metrics.h"

#include <chrono>

#include "absl/status/status.h"
#include "absl/strings/strip.h"
#include "monitoring/families.h"
#include "server/security/authorization.h"

namespace lengthwise::server {
namespace {

using grpc::experimental::InterceptionHookPoints;
using grpc::experimental::Interceptor;
using grpc::experimental::InterceptorBatchMethods;
using grpc::experimental::ServerRpcInfo;

// From an in-memory read to Synchronize's longest wait. Streams fall into the last bucket.
const prometheus::Histogram::BucketBoundaries& Buckets() {
  static const auto& buckets = *new prometheus::Histogram::BucketBoundaries{
      0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};
  return buckets;
}

// Observes one call. gRPC owns it and deletes it with the call.
class CallObserver final : public Interceptor {
 public:
  CallObserver(RpcMetrics& metrics, const ServerRpcInfo& info)
      : metrics_(metrics),
        method_(info.method()),
        open_(info.type() == ServerRpcInfo::Type::UNARY ? nullptr : &metrics.OpenStreams(method_)),
        start_(std::chrono::steady_clock::now()) {
    if (open_ != nullptr) open_->Increment();
  }
  ~CallObserver() override {
    if (open_ != nullptr) open_->Decrement();
  }

  void Intercept(InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
      metrics_.Observe(method_, methods->GetSendStatus().error_code(), elapsed.count());
    }
    methods->Proceed();
  }

 private:
  RpcMetrics& metrics_;
  const std::string method_;
  prometheus::Gauge* const open_;
  const std::chrono::steady_clock::time_point start_;
};

class Factory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Factory(RpcMetrics& metrics) : metrics_(metrics) {}
  Interceptor* CreateServerInterceptor(ServerRpcInfo* info) override {
    return new CallObserver(metrics_, *info);
  }

 private:
  RpcMetrics& metrics_;
};

}  // namespace

RpcMetrics::RpcMetrics(prometheus::Registry& registry)
    : seconds_(prometheus::BuildHistogram()
                   .Name("lengthwise_rpc_seconds")
                   .Help(monitoring::MakeFamily("lengthwise_rpc_seconds").help)
                   .Register(registry)),
      open_streams_(prometheus::BuildGauge()
                        .Name("lengthwise_rpc_open_streams")
                        .Help(monitoring::MakeFamily("lengthwise_rpc_open_streams").help)
                        .Register(registry)) {}

void RpcMetrics::Observe(absl::string_view method, grpc::StatusCode code, double seconds) {
  // gRPC's codes are Abseil's: "OK", "NOT_FOUND".
  const std::string name = absl::StatusCodeToString(static_cast<absl::StatusCode>(code));
  seconds_.Add({{"method", MethodLabel(method)}, {"code", name}}, Buckets()).Observe(seconds);
}

prometheus::Gauge& RpcMetrics::OpenStreams(absl::string_view method) {
  return open_streams_.Add({{"method", MethodLabel(method)}});
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> RpcMetrics::Interceptor() {
  return std::make_unique<Factory>(*this);
}

std::string MethodLabel(absl::string_view method) {
  // gRPC also passes unknown methods to interceptors, under the path that the client sent. The
  // authorization table has every rpc of the API.
  if (!absl::ConsumePrefix(&method, "/") || FindRule(method) == nullptr ||
      !absl::ConsumePrefix(&method, "lengthwise.v1.")) {
    return "other";
  }
  return std::string(method);
}

}  // namespace lengthwise::server
