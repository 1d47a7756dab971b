// The real server without workers: tests make the calls of workers through calls().
#ifndef LENGTHWISE_CLIENT_CONNECTION_TESTING_REAL_SERVER_H_
#define LENGTHWISE_CLIENT_CONNECTION_TESTING_REAL_SERVER_H_

#include <string>
#include <vector>

#include "server/api/testing/test_server.h"

namespace lengthwise::client {

class RealServer : public server::TestServer {
 public:
  RealServer();

  // Submits an experiment with one trial an encoding: bucket sort, seen up to length 2, evaluated
  // at the lengths 1 and 4. Returns its name.
  std::string Submit(const std::string& name, const std::vector<std::string>& encodings,
                     const std::string& owner = "ada");
  std::string SubmitText(const std::string& yaml, const std::string& owner = "ada");
  // The full name of a trial of Submit.
  static std::string TrialName(const std::string& experiment, const std::string& encoding);
  // The full names of an experiment's trials, in their order.
  std::vector<std::string> TrialsOf(const std::string& experiment);

  // Registers the worker, leases `trials` trials to it and completes each with these accuracies at
  // the lengths 1, 2, ... Returns the lease.
  v1::Lease Train(const std::string& worker, int trials, const std::vector<double>& accuracies);
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_CONNECTION_TESTING_REAL_SERVER_H_
