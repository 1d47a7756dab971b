// grpc.reflection.v1alpha.ServerReflection for callers with a token. gRPC's own service admits
// everyone and holds a thread for each stream.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "server/api/answer_stream.h"
#include "server/api/reflection.pb.h"
#include "server/api/services.h"

namespace lengthwise::server {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::FileDescriptor;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

ServerReflectionResponse Answer(const ServerReflectionRequest& request,
                                const std::vector<std::string>& services) {
  ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  const FileDescriptor* file = nullptr;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kListServices:
      for (const std::string& service : services) {
        response.mutable_list_services_response()->add_service()->set_name(service);
      }
      return response;
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
    google::protobuf::FileDescriptorProto proto;
    file->CopyTo(&proto);
    *response.mutable_file_descriptor_response()->add_file_descriptor_proto() =
        proto.SerializeAsString();
    return response;
  }
  response.mutable_error_response()->set_error_code(grpc::StatusCode::NOT_FOUND);
  response.mutable_error_response()->set_error_message("the server has no such file or name");
  return response;
}

}  // namespace

std::unique_ptr<Service> NewReflectionService(std::vector<std::string> services, Calls& calls) {
  auto service = std::make_unique<Service>(calls);
  service->ServeBoth<ServerReflectionRequest, ServerReflectionResponse>(
      [services = std::move(services), &streams = calls.streams()](
          CallContext* context, Gate::Admission admission) -> absl::StatusOr<ReflectionStream*> {
        // An answer counts until the next request, or the end of the stream.
        auto handle = [&services, &budget = streams.answers(),
                       payer = PayerOf(*context, admission.caller), share = AnswerBudget::Share()](
                          const ServerReflectionRequest& request, const auto& done) mutable {
          const absl::string_view method = MethodOf<ServerReflectionRequest>();
          absl::Status status = CheckSmall(request);  // the answer repeats it
          if (status.ok()) status = budget.CheckRoom(payer, method);
          if (!status.ok()) return done(status);
          const ServerReflectionResponse answer = Answer(request, services);
          share.reset();
          absl::StatusOr<AnswerBudget::Share> taken = budget.Take(payer, method, answer);
          if (!taken.ok()) return done(taken.status());
          share = *std::move(taken);
          done(answer);
        };
        return ReflectionStream::Start(std::move(handle), std::move(admission), streams);
      });
  return service;
}

}  // namespace lengthwise::server
