// For tests of clients and workers: an HTTP/2 endpoint that answers every call with given bytes,
// such as a proxy's page or a message that never ends, which no gRPC server can be told to send.
#ifndef LENGTHWISE_RPC_TESTING_RAW_SERVER_H_
#define LENGTHWISE_RPC_TESTING_RAW_SERVER_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "platform/descriptors.h"
#include "platform/mutex.h"

namespace lengthwise::rpc {

// Serves plain text on 127.0.0.1. Obeys HTTP/2's flow control.
class RawServer {
 public:
  struct Answer {
    // Fields after ":status: 200".
    std::vector<std::pair<std::string, std::string>> headers;
    // Without data and trailers, the headers end the call.
    std::string data;
    // Number of zero bytes after `data`.
    int64_t zeros = 0;
    // Without trailers, data ends the call.
    std::vector<std::pair<std::string, std::string>> trailers;
  };

  // Port 0 takes a free one.
  explicit RawServer(Answer answer, int port = 0);
  // Closes all connections.
  ~RawServer();

  const std::string& address() const { return address_; }
  // Calls that were answered, and bytes of data that were sent.
  int calls() const { return calls_.load(); }
  int64_t sent() const { return sent_.load(); }

 private:
  class Connection;

  void Accept();

  const Answer answer_;
  platform::Descriptor listener_;
  std::string address_;
  std::atomic<int> calls_ = 0;
  std::atomic<int64_t> sent_ = 0;
  platform::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<platform::Descriptor> sockets_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;  // of the accepting thread until it ends
  std::thread accepting_;
};

// The five bytes before a message of `bytes` bytes.
std::string MessagePrefix(uint32_t bytes, bool compressed = false);

}  // namespace lengthwise::rpc

#endif  // LENGTHWISE_RPC_TESTING_RAW_SERVER_H_
