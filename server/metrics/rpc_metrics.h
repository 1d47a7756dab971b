// Counts and times rpcs by method and status code, in a gRPC interceptor.
//
//   lengthwise_rpc_seconds{method,code}  histogram: duration from a call's start to its status;
//                                        streams are long by design
//   lengthwise_rpc_open_streams{method}  gauge: open streaming calls
//
// `method` is "ExperimentService/GetTrial" for the rpcs of the API and "other" for everything else.
// Calling an unknown method needs no token, so clients must not be able to create label values.
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
  // Registers the families with `registry`, which must outlive the object.
  explicit RpcMetrics(prometheus::Registry& registry);

  void Observe(absl::string_view method, grpc::StatusCode code, double seconds);
  prometheus::Gauge& OpenStreams(absl::string_view method);

  // Returns the interceptor for the server builder. The object must outlive the server.
  std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> Interceptor();

 private:
  prometheus::Family<prometheus::Histogram>& seconds_;
  prometheus::Family<prometheus::Gauge>& open_streams_;
};

// Returns the label of a gRPC path: "/lengthwise.v1.ExperimentService/GetTrial" ->
// "ExperimentService/GetTrial"; "other" if it is no rpc of the API.
std::string MethodLabel(absl::string_view method);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_METRICS_RPC_METRICS_H_
