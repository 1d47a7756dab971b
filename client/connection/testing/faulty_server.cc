#include "client/connection/testing/faulty_server.h"

#include <chrono>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace lengthwise::client {
namespace {

using platform::MutexLock;

std::string Bytes(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  if (!buffer.DumpToSingleSlice(&slice).ok()) return "";
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

grpc::ByteBuffer Buffer(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

}  // namespace

// One call. Without an answer of the test's, each message of either side is passed on before the
// next is read. The object deletes itself.
class FaultyServer::Relay final : public grpc::ServerGenericBidiReactor {
 public:
  Relay(FaultyServer& server, const grpc::GenericCallbackServerContext& context)
      : server_(server), method_(context.method()), real_(*this) {
    for (const auto& [key, value] : context.client_metadata()) {
      const std::string name(key.data(), key.size());
      if (absl::StartsWith(name, "grpc-") || name == "user-agent") continue;
      real_.context.AddMetadata(name, std::string(value.data(), value.size()));
    }
    StartRead(&request_);
  }

 private:
  // The call to the real server.
  struct Real final : grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
    explicit Real(Relay& of) : relay(of) {}
    void OnWriteDone(bool ok) override {
      if (ok) relay.StartRead(&relay.request_);
    }
    void OnReadDone(bool ok) override {
      if (!ok) return relay.EndRealServersSide();
      relay.response_ = relay.server_.Edited(relay.rpc(), relay.response_);
      relay.StartWrite(&relay.response_);
    }
    void OnDone(const grpc::Status& status) override { relay.Finish(status); }

    Relay& relay;
    grpc::ClientContext context;
  };

  std::string rpc() const { return method_.substr(method_.rfind('/') + 1); }

  void OnReadDone(bool ok) override {
    if (is_first_) {
      is_first_ = false;
      if (!ok) return Finish(grpc::Status(grpc::StatusCode::CANCELLED, "no request"));
      std::optional<Answer> answer = server_.Receive(rpc(), Bytes(request_));
      if (answer.has_value()) {
        is_answered_ = true;
        answer_ = *std::move(answer);
        return WriteAnswer();
      }
      {
        MutexLock lock(mutex_);
        is_open_ = true;
      }
      server_.stub_.PrepareBidiStreamingCall(&real_.context, method_, {}, &real_);
      real_.AddHold();  // because operations start outside its reactions
      real_.StartRead(&response_);
      real_.StartWrite(&request_);
      real_.StartCall();
      return;
    }
    MutexLock lock(mutex_);
    if (!is_open_) return;
    if (ok) {
      real_.StartWrite(&request_);
    } else {
      real_.StartWritesDone();
    }
  }

  void OnWriteDone(bool ok) override {
    if (is_answered_) return WriteAnswer();
    if (!ok) real_.context.TryCancel();
    real_.StartRead(&response_);
  }

  void OnCancel() override {
    MutexLock lock(mutex_);
    if (is_open_) real_.context.TryCancel();
  }

  void OnDone() override { delete this; }

  void EndRealServersSide() {
    {
      MutexLock lock(mutex_);
      is_open_ = false;
    }
    real_.RemoveHold();
  }

  void WriteAnswer() {
    if (next_ == answer_.messages.size()) return Finish(answer_.status);
    response_ = Buffer(answer_.messages[next_++]);
    StartWrite(&response_);
  }

  FaultyServer& server_;
  const std::string method_;
  platform::Mutex mutex_;
  // Operations on the call to the real server are allowed.
  bool is_open_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_first_ = true;  // the next request is the call's first
  bool is_answered_ = false;
  Answer answer_;
  size_t next_ = 0;  // message of answer_
  grpc::ByteBuffer request_;
  grpc::ByteBuffer response_;
  Real real_;
};

class FaultyServer::Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(FaultyServer& server) : server_(server) {}

 private:
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    return new Relay(server_, *context);
  }

  FaultyServer& server_;
};

FaultyServer::FaultyServer() : stub_(real_.Connect()) { Start(); }

FaultyServer::~FaultyServer() { Stop(); }

void FaultyServer::Start() {
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address_, grpc::InsecureServerCredentials(), &port);
  builder.SetMaxReceiveMessageSize(-1);
  service_ = std::make_unique<Service>(*this);  // gRPC allows one server for each
  builder.RegisterCallbackGenericService(service_.get());
  server_ = builder.BuildAndStart();
  address_ = absl::StrCat("127.0.0.1:", port);
}

void FaultyServer::Stop() {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_ = nullptr;
}

void FaultyServer::AnswerOnce(const std::string& rpc, Answer answer) {
  MutexLock lock(mutex_);
  once_[rpc].push_back(std::move(answer));
}

void FaultyServer::AnswerWatchOnce(const std::vector<v1::WatchExperimentResponse>& responses,
                                   const grpc::Status& status) {
  Answer answer{.status = status};
  for (const auto& response : responses) answer.messages.push_back(response.SerializeAsString());
  AnswerOnce("WatchExperiment", std::move(answer));
}

void FaultyServer::AnswerAlways(const std::string& rpc,
                                const google::protobuf::MessageLite& response) {
  SetRule(rpc, [bytes = response.SerializeAsString()](const std::string&) {
    return Answer{.messages = {bytes}};
  });
}

void FaultyServer::RefuseAlways(const std::string& rpc, const grpc::Status& status) {
  SetRule(rpc, [status](const std::string&) { return Answer{.status = status}; });
}

void FaultyServer::SetRule(const std::string& rpc, Rule rule) {
  MutexLock lock(mutex_);
  rules_[rpc] = std::move(rule);
}

void FaultyServer::SetEdit(const std::string& rpc, EditBytes edit) {
  MutexLock lock(mutex_);
  edits_[rpc] = std::move(edit);
}

std::optional<FaultyServer::Answer> FaultyServer::Receive(const std::string& rpc,
                                                          const std::string& request) {
  Rule rule;
  {
    MutexLock lock(mutex_);
    requests_[rpc].push_back(request);
    if (auto& once = once_[rpc]; !once.empty()) {
      Answer answer = std::move(once.front());
      once.pop_front();
      return answer;
    }
    if (const auto found = rules_.find(rpc); found != rules_.end()) rule = found->second;
  }
  return rule ? rule(request) : std::nullopt;
}

grpc::ByteBuffer FaultyServer::Edited(const std::string& rpc, const grpc::ByteBuffer& response) {
  MutexLock lock(mutex_);
  const auto edit = edits_.find(rpc);
  return edit == edits_.end() ? response : Buffer(edit->second(Bytes(response)));
}

}  // namespace lengthwise::client
