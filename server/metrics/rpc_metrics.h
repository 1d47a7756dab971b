// Durations and numbers of calls, by method and code, seen by a gRPC interceptor.
//
//   lengthwise_rpc_seconds{method,code}  histogram: from a call's start to its status; streams
//                                        are long on purpose
//   lengthwise_rpc_open_streams{method}  gauge: streaming calls that have not ended
//
// `method` is "ExperimentService/GetTrial" for the rpcs of the API and "other" for all else: a
// client, which needs no token to call what does not exist, cannot make label values up.
#ifndef LENGTHWISE_SERVER_METRICS_RPC_METRICS_H_
#define LENGTHWISE_SERVER_METRICS_RPC_METRICS_H_

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "grpcpp/support/server_interceptor.h"
#include "grpcpp/support/status_code_enum.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"

namespace lengthwise::server {

class RpcMetrics {
 public:
  // Registers the families with `registry`, which outlives the object.
  explicit RpcMetrics(prometheus::Registry& registry);

  void Observe(absl::string_view method, grpc::StatusCode code, double seconds);
  prometheus::Gauge& OpenStreams(absl::string_view method);

  // To be given to the server builder. The object outlives the server.
  std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> Interceptor();

 private:
  prometheus::Family<prometheus::Histogram>& seconds_;
  prometheus::Family<prometheus::Gauge>& open_streams_;
};

// "/lengthwise.v1.ExperimentService/GetTrial" -> "ExperimentService/GetTrial"; "other" for what is
// no rpc of the API.
std::string MethodLabel(absl::string_view method);

// "OK", "NOT_FOUND", ...: the names of gRPC's status codes.
std::string CodeLabel(grpc::StatusCode code);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_METRICS_RPC_METRICS_H_
