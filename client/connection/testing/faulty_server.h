// For tests of clients: the real server behind a relay that can answer chosen calls itself, with
// what a real server never or rarely sends: streams that break at a chosen point, damaged or
// oversized answers, hostile text, errors of other releases. It records every request.
#ifndef LENGTHWISE_CLIENT_CONNECTION_TESTING_FAULTY_SERVER_H_
#define LENGTHWISE_CLIENT_CONNECTION_TESTING_FAULTY_SERVER_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/connection/testing/real_server.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "platform/mutex.h"

namespace lengthwise::client {

// Rpcs are named without their service, e.g. "GetTrial". Thread-safe.
class FaultyServer {
 public:
  // An answer in the real server's place: the serialized messages, then the status.
  struct Answer {
    std::vector<std::string> messages;
    grpc::Status status = grpc::Status::OK;
  };

  FaultyServer();
  virtual ~FaultyServer();

  // The relay's address. Calls that no answer is set for go on to real().
  const std::string& address() const { return address_; }
  RealServer& real() { return real_; }

  // Ends all calls and refuses connections, like a process that was killed, until Start, which
  // serves at the same address.
  void Stop();
  void Start();

  // Answers one call of the rpc. Answers of the same rpc are used in the order they were added.
  void AnswerOnce(const std::string& rpc, Answer answer);
  // Answers one call of WatchExperiment.
  void AnswerWatchOnce(const std::vector<v1::WatchExperimentResponse>& responses,
                       const grpc::Status& status = grpc::Status::OK);
  // Answers every call of the rpc that AnswerOnce leaves.
  void AnswerAlways(const std::string& rpc, const google::protobuf::MessageLite& response);
  void RefuseAlways(const std::string& rpc, const grpc::Status& status);
  // `answer` decides from the request. Without a value, the call goes on to the real server.
  template <typename Request>
  void AnswerBy(const std::string& rpc,
                std::function<std::optional<Answer>(const Request&)> answer) {
    SetRule(rpc, [answer = std::move(answer)](const std::string& bytes) {
      Request request;
      request.ParseFromString(bytes);
      return answer(request);
    });
  }
  // Changes every message of the real server's answers.
  template <typename Response>
  void Edit(const std::string& rpc, std::function<void(Response&)> edit) {
    SetEdit(rpc, [edit = std::move(edit)](const std::string& bytes) {
      Response response;
      response.ParseFromString(bytes);
      edit(response);
      return response.SerializeAsString();
    });
  }

  // The first request of each call of the rpc, in the order received.
  template <typename Request>
  std::vector<Request> Requests(const std::string& rpc) {
    platform::MutexLock lock(mutex_);
    std::vector<Request> requests;
    for (const std::string& bytes : requests_[rpc]) {
      requests.emplace_back().ParseFromString(bytes);
    }
    return requests;
  }

 private:
  class Relay;
  class Service;
  using Rule = std::function<std::optional<Answer>(const std::string& request)>;
  using EditBytes = std::function<std::string(const std::string& response)>;

  void SetRule(const std::string& rpc, Rule rule);
  void SetEdit(const std::string& rpc, EditBytes edit);
  // Records the request. Returns the answer to give in the real server's place, if any.
  std::optional<Answer> Receive(const std::string& rpc, const std::string& request);
  grpc::ByteBuffer Edited(const std::string& rpc, const grpc::ByteBuffer& response);

  RealServer real_;
  grpc::GenericStub stub_;
  platform::Mutex mutex_;
  std::map<std::string, std::deque<Answer>> once_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Rule> rules_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, EditBytes> edits_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::vector<std::string>> requests_ ABSL_GUARDED_BY(mutex_);
  std::string address_ = "127.0.0.1:0";
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_CONNECTION_TESTING_FAULTY_SERVER_H_
