// The real server without workers: tests make the calls of workers through calls().
#ifndef LENGTHWISE_CLIENT_CONNECTION_REAL_SERVER_H_
#define LENGTHWISE_CLIENT_CONNECTION_REAL_SERVER_H_

#include <string>
#include <vector>

#include "server/api/test_server.h"

namespace lengthwise::client {

class RealServer : public server::TestServer {
 public:
  RealServer();

  // Registers the worker, leases `trials` trials to it and completes each with these accuracies at
  // the lengths 1, 2, ... Returns the lease.
  v1::Lease Train(const std::string& worker, int trials, const std::vector<double>& accuracies);
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_CONNECTION_REAL_SERVER_H_
