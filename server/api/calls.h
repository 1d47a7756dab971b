// Calls: serves the calls of every handler. It admits the caller, picks a thread by the rpc's
// class, and answers. A handler only declares the class of its rpc and does the work.
//
//   gRPC's thread:  admit -> pick a thread ---kMemory---> handle -> answer
//                                   |
//                                   +--other classes--> pool: handle -> answer
//
// gRPC has few threads for all calls, so no handler reads the store or a file on them: one slow
// disk would stop heartbeats. Admission only asks whether the file of tokens has changed.
#ifndef LENGTHWISE_SERVER_API_CALLS_H_
#define LENGTHWISE_SERVER_API_CALLS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "grpcpp/impl/codegen/proto_utils.h"
#include "grpcpp/impl/codegen/server_callback_handlers.h"
#include "grpcpp/impl/rpc_service_method.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "platform/work_pool.h"
#include "rpc/method.h"
#include "rpc/status.h"
#include "rpc/token.h"
#include "server/api/answer_budget.h"
#include "server/api/open_streams.h"
#include "server/api/push_stream.h"
#include "server/coordination/waiting_calls.h"
#include "server/security/gate.h"

namespace lengthwise::server {

using CallContext = grpc::CallbackServerContext;
using UnaryReactor = grpc::ServerUnaryReactor;

// The class of a unary rpc.
enum class Work {
  // Reads memory only, or posts a command: runs on gRPC's thread. Its answer is small, because it
  // counts in no budget while the client does not read it.
  kMemory,
  // As kMemory, for a request of any size, which the handler takes from gRPC at once.
  kHeartbeat,
  // As kHeartbeat, for an answer of any size.
  kLease,
  // Changes an experiment. kMemory for administrators; kLookup for others, because the experiment's
  // owner must be read from the store.
  kChange,
  // Reads a bounded number of rows, or the names of many, a small file, or much memory.
  kLookup,
  // Reads as much of the store as the request asks for, or resolves a specification.
  kQuery,
  // Walks directories or hashes files of any size.
  kFiles,
  // Asks an object store about a worker's checkpoint. Neither users' downloads nor backups delay
  // what must become durable.
  kCheckpoints,
};

// Maximum memory in bytes of a request that counts in no budget: it has names alone.
inline constexpr size_t kMostUncountedBytes = 4 << 10;
inline absl::Status CheckSmall(const google::protobuf::Message& request) {
  const size_t bytes = request.SpaceUsedLong();
  if (bytes <= kMostUncountedBytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the request needs ", bytes, " bytes, expected at most ", kMostUncountedBytes));
}

// Delay that a call is told when too many calls of its client wait.
inline constexpr absl::Duration kFullLaneRetry = absl::Seconds(2);

// A stream that is refused before it starts. `Reactor` is gRPC's class for the method:
// ServerWriteReactor<T>, ServerReadReactor<T>, ServerBidiReactor<T, U>. gRPC owns it.
template <typename Reactor>
class RefusedStream final : public Reactor {
 public:
  explicit RefusedStream(const absl::Status& status) { this->Finish(rpc::ToGrpcStatus(status)); }
  void OnDone() override { delete this; }
};

// A unary call whose request and answer count until the client has the answer. gRPC owns it.
class UnaryCall final : public UnaryReactor {
 public:
  void OnDone() override { delete this; }
  AnswerBudget::Share request;
  AnswerBudget::Share answer;
};

// The path of the rpc with this request, "/lengthwise.v1.ExperimentService/GetTrial". No two have
// the same, and the service is defined in the request's file.
template <typename Request>
const std::string& PathOf() {
  static const std::string* const path =
      new std::string(absl::StrCat("/", rpc::NameOf(*rpc::FindMethod(*Request::descriptor()))));
  return *path;
}
// Without the first slash.
template <typename Request>
absl::string_view MethodOf() {
  return absl::string_view(PathOf<Request>()).substr(1);
}

// Thread-safe.
class Calls {
 public:
  // Threads for the classes of the same names.
  struct Pools {
    platform::WorkPool& lookups;
    platform::WorkPool& queries;
    platform::WorkPool& files;
    platform::WorkPool& checkpoints;
  };

  // All references must outlive it.
  Calls(Gate& gate, const Pools& pools, OpenStreams& streams)
      : gate_(gate), pools_(pools), streams_(streams) {}

  const Pools& pools() const { return pools_; }

  // Serves a unary call. `handle` is
  //   absl::StatusOr<Response>(const Request&, const Caller&), whose result is the answer, or
  //   void(const Request&, const Caller&, Done<Response>), which answers later.
  // The request lives until the answer. A call that was cancelled while waiting for a thread is not
  // handled. A call that waits too long for one gets DEADLINE_EXCEEDED. A client's calls wait for
  // no other client's (WorkPool); beyond WorkPool::kMostWaiting they get RESOURCE_EXHAUSTED.
  template <typename Request, typename Response, typename Handle>
  UnaryReactor* Serve(Work work, CallContext* context, const Request* request, Response* response,
                      Handle handle) {
    const absl::string_view method = MethodOf<Request>();
    const auto admission = std::make_shared<Gate::Admission>();
    absl::Status admitted =
        gate_.Admit(PeerOf(context->peer()), method, AuthorizationOf(*context), *admission);
    admission->audited.SetRequest(*request);
    const Caller& caller = admission->caller;
    platform::WorkPool* const pool = admitted.ok() ? PoolFor(work, caller) : nullptr;
    const bool is_taken = work == Work::kHeartbeat || work == Work::kLease;
    if (admitted.ok() && pool == nullptr && !is_taken) {
      admitted = CheckUncounted(caller, *request);
    }
    if (!admitted.ok()) {
      admission->audited.End(admitted);
      UnaryReactor* const refused = context->DefaultReactor();
      refused->Finish(rpc::ToGrpcStatus(admitted));
      return refused;
    }
    const bool counts = pool != nullptr || work == Work::kLease;
    const std::string client = pool == nullptr ? "" : ClientOf(*context, caller);
    const std::string payer = counts ? PayerOf(*context, caller) : "";
    // gRPC ends calls with its own reactor on the same thread. Answers from memory are small.
    UnaryCall* const call = counts ? new UnaryCall() : nullptr;
    UnaryReactor* const reactor =
        call == nullptr ? context->DefaultReactor() : static_cast<UnaryReactor*>(call);
    Done<Response> done = [this, payer, method, call, reactor, response,
                           admission](absl::StatusOr<Response> result) {
      absl::Status status = result.status();
      if (status.ok() && call != nullptr) {
        absl::StatusOr<AnswerBudget::Share> share = streams_.answers().Take(payer, method, *result);
        status = share.status();
        if (status.ok()) call->answer = *std::move(share);
      }
      if (status.ok()) {
        admission->audited.SetResponse(*result);
        *response = *std::move(result);
      }
      admission->audited.End(status);
      reactor->Finish(rpc::ToGrpcStatus(status));
    };
    auto run = [request, admission, done, handle = std::move(handle)] {
      if constexpr (std::is_invocable_v<Handle, const Request&, const Caller&, Done<Response>>) {
        handle(*request, admission->caller, done);
      } else {
        done(handle(*request, admission->caller));
      }
    };
    if (pool == nullptr) {
      run();
      return reactor;
    }
    absl::StatusOr<AnswerBudget::Share> share =
        streams_.answers().Take(payer, /*method=*/"", *request);
    if (!share.ok()) {
      done(share.status());
      return reactor;
    }
    call->request = *std::move(share);
    const bool waits = pool->Submit(
        client,
        [this, payer, method, context, done, run = std::move(run)] {
          if (context->IsCancelled()) {
            return done(absl::CancelledError("the call was cancelled before a thread was free"));
          }
          const absl::Status room = streams_.answers().CheckRoom(payer, method);
          room.ok() ? run() : done(room);
        },
        [done, pool] {
          done(absl::DeadlineExceededError(
              absl::StrCat("the server was busy with earlier calls for ",
                           absl::FormatDuration(pool->longest_wait()), "; try again later")));
        });
    if (!waits) {
      done(rpc::ExhaustedFor(kFullLaneRetry,
                             absl::StrCat(platform::WorkPool::kMostWaiting, " calls of ", client,
                                          " wait already, the most that may; call again when some "
                                          "are answered")));
    }
    return reactor;
  }

  // Serves a stream of `method`. `start` is absl::StatusOr<Stream*>(CallContext*, Gate::Admission):
  // it starts the stream, or refuses it. The stream may refer to what `start` holds, so it is not
  // copied. `Reactor` is gRPC's class for the method. `request` is null for a method whose request
  // is a stream.
  template <typename Reactor, typename Start>
  Reactor* Open(absl::string_view method, CallContext* context,
                const google::protobuf::Message* request, const Start& start) {
    Gate::Admission admission;
    absl::Status status =
        gate_.AdmitStream(PeerOf(context->peer()), method, AuthorizationOf(*context), admission);
    if (request != nullptr) {
      admission.audited.SetRequest(*request);
      if (status.ok()) status = CheckUncounted(admission.caller, *request);
    }
    if (status.ok()) {
      const auto stream = start(context, admission);
      if (stream.ok()) return *stream;
      status = stream.status();
    }
    admission.audited.End(status);
    return new RefusedStream<Reactor>(status);
  }

  OpenStreams& streams() const { return streams_; }

 private:
  // Administrators are trusted with more.
  static absl::Status CheckUncounted(const Caller& caller,
                                     const google::protobuf::Message& request) {
    return caller.role == v1::ADMIN ? absl::OkStatus() : CheckSmall(request);
  }

  static absl::string_view AuthorizationOf(const CallContext& context) {
    const auto found = context.client_metadata().find(rpc::kAuthorizationKey);
    if (found == context.client_metadata().end()) return "";
    return {found->second.data(), found->second.size()};
  }

  // Null: gRPC's thread.
  platform::WorkPool* PoolFor(Work work, const Caller& caller) const {
    switch (work) {
      case Work::kMemory:
      case Work::kHeartbeat:
      case Work::kLease:
        return nullptr;
      case Work::kChange:
        return caller.role == v1::ADMIN ? nullptr : &pools_.lookups;
      case Work::kLookup:
        return &pools_.lookups;
      case Work::kQuery:
        return &pools_.queries;
      case Work::kFiles:
        return &pools_.files;
      case Work::kCheckpoints:
        return &pools_.checkpoints;
    }
    return nullptr;
  }

  Gate& gate_;
  const Pools pools_;
  OpenStreams& streams_;
};

// A service of the API, to which each rpc is added by its request and response. It is in place of
// a class that overrides the methods of the generated CallbackService.
class Service final : public grpc::Service {
 public:
  // `calls` must outlive it.
  explicit Service(Calls& calls) : calls_(calls) {}

  // "lengthwise.v1.ExperimentService". Empty before the first rpc.
  const std::string& name() const { return name_; }

  // Adds a unary rpc. `handle` as of Calls::Serve.
  template <typename Request, typename Response, typename Handle>
  void Serve(Work work, Handle handle) {
    ServeBy<Request, Response>(
        [&calls = calls_, work, handle = std::move(handle)](
            CallContext* context, const Request* request, Response* response) {
          return calls.Serve(work, context, request, response, handle);
        });
  }
  // As Serve. `serve` calls Calls::Serve with its arguments, and chooses the class by the request.
  template <typename Request, typename Response, typename ServeCall>
  void ServeBy(ServeCall serve) {
    Add<Request, grpc::internal::CallbackUnaryHandler<Request, Response>>(Type::NORMAL_RPC,
                                                                          std::move(serve));
  }

  // Adds an rpc that answers with a stream, one that takes a stream, and one that does both.
  // `start` as of Calls::Open, also with the CallContext* and, unless it is a stream, the request:
  //   absl::StatusOr<Stream*>(CallContext*, const Request&, Gate::Admission)
  //   absl::StatusOr<Stream*>(CallContext*, Gate::Admission)
  template <typename Request, typename Response, typename Start>
  void ServeResponses(Start start) {
    Add<Request, grpc::internal::CallbackServerStreamingHandler<Request, Response>>(
        Type::SERVER_STREAMING,
        [&calls = calls_, start = std::move(start)](CallContext* context, const Request* request) {
          return calls.Open<grpc::ServerWriteReactor<Response>>(
              MethodOf<Request>(), context, request,
              [&](CallContext* call, Gate::Admission admission) {
                return start(call, *request, std::move(admission));
              });
        });
  }
  template <typename Request, typename Response, typename Start>
  void ServeRequests(Start start) {
    Add<Request, grpc::internal::CallbackClientStreamingHandler<Request, Response>>(
        Type::CLIENT_STREAMING,
        [&calls = calls_, start = std::move(start)](CallContext* context, Response*) {
          return calls.Open<grpc::ServerReadReactor<Request>>(MethodOf<Request>(), context,
                                                              /*request=*/nullptr, start);
        });
  }
  template <typename Request, typename Response, typename Start>
  void ServeBoth(Start start) {
    Add<Request, grpc::internal::CallbackBidiHandler<Request, Response>>(
        Type::BIDI_STREAMING, [&calls = calls_, start = std::move(start)](CallContext* context) {
          return calls.Open<grpc::ServerBidiReactor<Request, Response>>(
              MethodOf<Request>(), context, /*request=*/nullptr, start);
        });
  }

  // Adds an rpc that answers with a stream. `open` returns the source of its responses:
  //   absl::StatusOr<Next<Response>>(const Request&, const Caller&)
  // It runs on one of `threads`, and so does each Next.
  template <typename Request, typename Response, typename OpenResponses>
  void Push(TransferThreads& threads, OpenResponses open) {
    using Stream = PushStream<Response>;
    ServeResponses<Request, Response>(
        [&threads, &streams = calls_.streams(), open = std::move(open)](
            CallContext* context, const Request& request,
            Gate::Admission admission) -> absl::StatusOr<Stream*> {
          auto run = [request, caller = admission.caller, open] { return open(request, caller); };
          return Stream::Start(*context, std::move(admission), MethodOf<Request>(), run, threads,
                               streams);
        });
  }

 private:
  using Type = grpc::internal::RpcMethod::RpcType;

  template <typename Request, typename Handler, typename Reactor>
  void Add(Type type, Reactor reactor) {
    using grpc::internal::RpcServiceMethod;
    auto* const method =
        new RpcServiceMethod(PathOf<Request>().c_str(), type, new Handler(std::move(reactor)));
    method->SetServerApiType(RpcServiceMethod::ApiType::CALL_BACK);
    AddMethod(method);  // takes it
    const absl::string_view name = MethodOf<Request>();
    name_ = std::string(name.substr(0, name.find('/')));
  }

  Calls& calls_;
  std::string name_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_CALLS_H_
