// grpc.reflection.v1alpha.ServerReflection for callers with a token. gRPC's own service admits
// everyone and holds a thread for each stream.
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "grpc/grpc.h"
#include "server/api/reflection.grpc.pb.h"
#include "server/api/services.h"

namespace lengthwise::server {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;
using Reactor = grpc::ServerBidiReactor<ServerReflectionRequest, ServerReflectionResponse>;

constexpr absl::string_view kMethod =
    "grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

// Appends the file after those that it imports.
void AddFile(const FileDescriptor& file, std::set<const FileDescriptor*>& added,
             ServerReflectionResponse& response) {
  if (!added.insert(&file).second) return;
  for (int i = 0; i < file.dependency_count(); ++i) AddFile(*file.dependency(i), added, response);
  google::protobuf::FileDescriptorProto proto;
  file.CopyTo(&proto);
  response.mutable_file_descriptor_response()->add_file_descriptor_proto(proto.SerializeAsString());
}

void Answer(const ServerReflectionRequest& request, const std::vector<std::string>& services,
            ServerReflectionResponse& response) {
  response.Clear();
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  const FileDescriptor* file = nullptr;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kListServices:
      for (const std::string& service : services) {
        response.mutable_list_services_response()->add_service()->set_name(service);
      }
      return;
    case ServerReflectionRequest::kFileByFilename:
      file = pool.FindFileByName(request.file_by_filename());
      break;
    case ServerReflectionRequest::kFileContainingSymbol:
      file = pool.FindFileContainingSymbol(request.file_containing_symbol());
      break;
    default:
      break;  // the API has no extensions
  }
  if (file != nullptr) {
    std::set<const FileDescriptor*> added;
    return AddFile(*file, added, response);
  }
  response.mutable_error_response()->set_error_code(grpc::StatusCode::NOT_FOUND);
  response.mutable_error_response()->set_error_message("the server has no such file or name");
}

// Reads a request only after the client has read the answer to the one before.
class Reflection final : public OwnedStream<Reflection, Reactor> {
 public:
  static Reflection* Start(grpc::CallbackServerContext& context, const Caller& caller,
                           OpenStreams& streams, const std::vector<std::string>& services) {
    const std::shared_ptr<Reflection> stream(new Reflection(context, caller, streams, services));
    stream->Own();
    stream->StartRead(&stream->request_);
    return stream.get();
  }

  ~Reflection() override { grpc_call_unref(call_); }

  void Stop(const absl::Status& reason) override {
    {
      platform::MutexLock lock(mutex_);
      if (!stopped_.ok()) return;
      stopped_ = reason;
    }
    // Ends the outstanding read or write.
    grpc_call_cancel_with_status(call_, static_cast<grpc_status_code>(reason.code()),
                                 std::string(reason.message()).c_str(), nullptr);
  }

  void OnReadDone(bool ok) override {
    if (!ok) return End();
    absl::Status status = CheckSmall(request_);  // the answer repeats it
    if (status.ok()) status = streams_.answers().CheckRoom(client_, kMethod);
    if (!status.ok()) return End(status);
    Answer(request_, services_, response_);
    absl::StatusOr<AnswerBudget::Share> share =
        streams_.answers().Take(client_, kMethod, response_);
    if (!share.ok()) return End(share.status());
    share_ = *std::move(share);
    StartWrite(&response_);
  }
  void OnWriteDone(bool ok) override {
    response_ = ServerReflectionResponse();  // Clear would keep the memory
    share_.reset();
    if (!ok) return End();
    StartRead(&request_);
  }

 private:
  Reflection(grpc::CallbackServerContext& context, const Caller& caller, OpenStreams& streams,
             const std::vector<std::string>& services)
      : OwnedStream(streams),
        call_(context.c_call()),
        client_(ClientOf(context, caller)),
        services_(services) {
    grpc_call_ref(call_);
  }

  void End(absl::Status status = absl::OkStatus()) {
    {
      platform::MutexLock lock(mutex_);
      status.Update(stopped_);
    }
    Finish(rpc::ToGrpcStatus(status));  // last: OnDone may be called at any time from here on
  }

  grpc_call* const call_;  // Stop may be called late
  const std::string client_;
  const std::vector<std::string>& services_;
  ServerReflectionRequest request_;
  ServerReflectionResponse response_;
  AnswerBudget::Share share_;  // of response_
  platform::Mutex mutex_;
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);  // the reason; OK while running
};

class ReflectionService final
    : public grpc::reflection::v1alpha::ServerReflection::CallbackService {
 public:
  ReflectionService(std::vector<std::string> services, OpenStreams& streams, Calls& calls)
      : services_(std::move(services)), streams_(streams), calls_(calls) {}

  Reactor* ServerReflectionInfo(CallContext* context) override {
    return calls_.Open<Reactor>(kMethod, context, nullptr,
                                [&](const Caller& caller) -> absl::StatusOr<Reflection*> {
                                  return Reflection::Start(*context, caller, streams_, services_);
                                });
  }

 private:
  const std::vector<std::string> services_;
  OpenStreams& streams_;
  Calls& calls_;
};

}  // namespace

std::unique_ptr<grpc::Service> NewReflectionService(std::vector<std::string> services,
                                                    OpenStreams& streams, Calls& calls) {
  return std::make_unique<ReflectionService>(std::move(services), streams, calls);
}

}  // namespace lengthwise::server
