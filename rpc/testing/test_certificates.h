// Creates a certificate authority and its certificates at run time, for tests.
#ifndef LENGTHWISE_RPC_TESTING_TEST_CERTIFICATES_H_
#define LENGTHWISE_RPC_TESTING_TEST_CERTIFICATES_H_

#include <memory>
#include <string>

#include "absl/time/time.h"

namespace lengthwise::rpc {

// Not thread-safe. Failures end the test program.
class TestAuthority {
 public:
  // Files go to `directory`, which must exist.
  TestAuthority(std::string directory, const std::string& name);
  ~TestAuthority();

  // The authority's own certificate.
  const std::string& ca() const { return ca_; }

  struct Pair {
    std::string certificate;
    std::string key;
  };
  // Creates the files of a certificate for "localhost" and 127.0.0.1, for servers and clients.
  // Valid from an hour ago until `lifetime` from now; a negative lifetime makes it expired.
  Pair Issue(const std::string& name, absl::Duration lifetime = absl::Hours(1));

 private:
  struct Keys;
  const std::string directory_;
  const std::string name_;
  std::string ca_;
  std::unique_ptr<Keys> keys_;
};

}  // namespace lengthwise::rpc

#endif  // LENGTHWISE_RPC_TESTING_TEST_CERTIFICATES_H_
