// The real server in the test's own process, on 127.0.0.1 and a free port, with a temporary data
// directory and nothing left out but what trains: tests call as its workers through core().
#ifndef LENGTHWISE_CLIENT_CONNECTION_REAL_SERVER_H_
#define LENGTHWISE_CLIENT_CONNECTION_REAL_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "server/api/rpc_server.h"
#include "server/coordination/test_coordinator.h"

namespace lengthwise::client {

class RealServer {
 public:
  RealServer();

  std::string address() const { return rpc_->address(); }
  server::TestCoordinator& core() { return core_; }

  // Leases trials to the worker, which registers first, and completes each with these accuracies
  // at the lengths 1, 2, ... Returns the lease.
  v1::Lease Train(const std::string& worker, int trials, const std::vector<double>& accuracies);

 private:
  server::TestCoordinator core_;
  std::unique_ptr<server::RpcServer> rpc_;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_CONNECTION_REAL_SERVER_H_
