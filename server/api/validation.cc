#include "server/api/validation.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "platform/printable_text.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"
#include "rpc/status.h"
#include "server/coordination/names.h"

namespace lengthwise::server {
namespace {

// Maximum size of a worker's description in bytes. It usually has a few hundred, mostly host and
// device.
constexpr size_t kMaxWorkerBytes = 4 << 10;
constexpr size_t kMaxPageTokenLength = 512;
constexpr size_t kMaxRequestIdLength = 64;
constexpr int64_t kMaxOwnerBytes = 200;
constexpr size_t kMaxWorkerIdLength = 60;

absl::Status CheckSize(absl::string_view field, int64_t size) {
  if (size <= kMaxSpecificationBytes) return absl::OkStatus();
  return rpc::InvalidField(field, absl::StrCat("is ", size, " bytes; a specification has at most ",
                                               kMaxSpecificationBytes, " bytes (1 MiB)"));
}

absl::Status CheckSubmitter(absl::string_view request_id, absl::string_view owner) {
  if (request_id.size() > kMaxRequestIdLength) {
    return rpc::InvalidField(
        "request_id",
        absl::StrCat("has ", request_id.size(), " bytes; accepted: at most ", kMaxRequestIdLength));
  }
  return CheckText("owner", owner, kMaxOwnerBytes);
}

}  // namespace

absl::Status CheckPage(int32_t page_size, absl::string_view page_token) {
  if (page_size < 0 || page_size > kMaxPageSize) {
    return rpc::InvalidField("page_size",
                             absl::StrCat("is ", page_size, "; accepted: 0 to ", kMaxPageSize));
  }
  if (page_token.size() > kMaxPageTokenLength ||
      !std::all_of(page_token.begin(), page_token.end(), absl::ascii_isprint)) {
    return rpc::InvalidField(
        "page_token", "is malformed; accepted: a next_page_token of the same call, unchanged");
  }
  return absl::OkStatus();
}

absl::Status CheckOwnerName(absl::string_view owner) {
  if (owner.empty()) return rpc::InvalidField("owner", "is empty");
  return CheckText("owner", owner, kMaxOwnerBytes);
}

absl::Status CheckText(absl::string_view field, absl::string_view text, int64_t max_bytes) {
  if (static_cast<int64_t>(text.size()) > max_bytes) {
    return rpc::InvalidField(
        field, absl::StrCat("is ", text.size(), " bytes; accepted: at most ", max_bytes, " bytes"));
  }
  if (!platform::IsPrintable(text)) {
    return rpc::InvalidField(field, "has control characters; accepted: text, lines and tabs");
  }
  return absl::OkStatus();
}

absl::Status CheckSpecificationText(const v1::SpecificationText& text) {
  // The same words as specification::Resolve, so that `lengthwise validate` prints the same.
  // Checked here so that a text that is too large does not reach the core.
  if (const auto size = static_cast<int64_t>(text.text().size()); size > kMaxSpecificationBytes) {
    return rpc::InvalidField(
        "text", absl::StrCat("got ", size, " bytes, expected at most ", kMaxSpecificationBytes));
  }
  if (!v1::SpecificationText::Format_IsValid(text.format()) ||
      text.format() == v1::SpecificationText::FORMAT_UNSPECIFIED) {
    return rpc::InvalidField(
        "specification_text.format",
        absl::StrCat("is ", text.format(), "; accepted: YAML (1), JSON (2), TEXT_PROTO (3)"));
  }
  return absl::OkStatus();
}

absl::Status CheckCreateExperiment(const v1::CreateExperimentRequest& request) {
  switch (request.source_case()) {
    case v1::CreateExperimentRequest::kSpecification:
      RETURN_IF_ERROR(
          CheckSize("specification", static_cast<int64_t>(request.specification().ByteSizeLong())));
      break;
    case v1::CreateExperimentRequest::kSpecificationText:
      RETURN_IF_ERROR(CheckSpecificationText(request.specification_text()));
      break;
    case v1::CreateExperimentRequest::SOURCE_NOT_SET:
      // Checked before this error, because a source of a newer API is an unknown field.
      RETURN_IF_ERROR(CheckNoUnknownFields(request, "request"));
      return rpc::InvalidField("specification",
                               "is absent; set either specification or specification_text");
  }
  RETURN_IF_ERROR(CheckSubmitter(request.request_id(), request.owner()));
  return CheckNoUnknownFields(request, "request");
}

absl::Status CheckExtendExperiment(const v1::ExtendExperimentRequest& request) {
  RETURN_IF_ERROR(ParseExperimentName(request.name()).status());
  RETURN_IF_ERROR(CheckNoUnknownFields(request, "request"));
  if (request.seeds().empty() && request.weight_seeds().empty() && request.data_seeds().empty()) {
    return rpc::InvalidField(
        "seeds",
        "is empty; set seeds, or weight_seeds and data_seeds, as the experiment "
        "has them");
  }
  return absl::OkStatus();
}

absl::Status CheckEvaluateTrial(const v1::EvaluateTrialRequest& request) {
  RETURN_IF_ERROR(ParseTrialName(request.trial(), "trial").status());
  RETURN_IF_ERROR(CheckSubmitter(request.request_id(), request.owner()));
  RETURN_IF_ERROR(
      CheckSize("evaluation", static_cast<int64_t>(request.evaluation().ByteSizeLong())));
  return CheckNoUnknownFields(request, "request");
}

absl::Status CheckRetryTrials(const v1::RetryTrialsRequest& request) {
  RETURN_IF_ERROR(CheckNoUnknownFields(request, "request"));
  if (request.states().empty()) {
    return rpc::InvalidField("states", "is empty, expected FAILED, CANCELLED or both");
  }
  for (const int state : request.states()) {
    if (state == v1::FAILED || state == v1::CANCELLED) continue;
    return rpc::InvalidField("states",
                             absl::StrCat("got ",
                                          v1::TrialState_IsValid(state) ? v1::TrialState_Name(state)
                                                                        : absl::StrCat(state),
                                          ", expected FAILED, CANCELLED or both"));
  }
  return absl::OkStatus();
}

absl::Status CheckWorker(const v1::WorkerDescription& worker) {
  const std::string& id = worker.worker_id();
  if (id.empty() || id.size() > kMaxWorkerIdLength ||
      !std::all_of(id.begin(), id.end(), [](char c) {
        return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '-';
      })) {
    return rpc::InvalidField(
        "worker.worker_id", absl::StrCat("is ", Quoted(id), "; accepted: 1 to ", kMaxWorkerIdLength,
                                         " characters of a-z, 0-9 and -"));
  }
  if (const size_t size = worker.ByteSizeLong(); size > kMaxWorkerBytes) {
    return rpc::InvalidField("worker", absl::StrCat("has ", size, " bytes; accepted: at most ",
                                                    kMaxWorkerBytes, " (the server keeps it)"));
  }
  if (worker.max_pack_size() < 1) {
    return rpc::InvalidField("worker.max_pack_size",
                             absl::StrCat("is ", worker.max_pack_size(), "; accepted: 1 or more"));
  }
  return absl::OkStatus();
}

absl::Status CheckSha256(absl::string_view field, absl::string_view text) {
  if (platform::IsSha256Hex(text)) return absl::OkStatus();
  return rpc::InvalidField(
      field, absl::StrCat("is ", Quoted(text), "; accepted: 64 lower-case hexadecimal digits"));
}

absl::Status CheckArtifactHeader(const v1::UploadArtifactRequest::Header& header) {
  RETURN_IF_ERROR(ParseTrialName(header.trial(), "header.trial").status());
  RETURN_IF_ERROR(CheckSha256("header.sha256", header.sha256()));
  if (header.size_bytes() < 0) {
    return rpc::InvalidField("header.size_bytes",
                             absl::StrCat("is ", header.size_bytes(), "; accepted: 0 or more"));
  }
  if (header.step() < 0) {
    return rpc::InvalidField("header.step",
                             absl::StrCat("is ", header.step(), "; accepted: 0 or more"));
  }
  return absl::OkStatus();
}

absl::Status CheckNoUnknownFields(const google::protobuf::Message& message,
                                  absl::string_view path) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  if (const google::protobuf::UnknownFieldSet& unknown = reflection.GetUnknownFields(message);
      !unknown.empty()) {
    return rpc::InvalidField(path, absl::StrCat("unknown field number ", unknown.field(0).number(),
                                                " in ", message.GetDescriptor()->full_name(),
                                                "; client and server were built from different "
                                                "versions of the API"));
  }
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const google::protobuf::FieldDescriptor* field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const std::string below = absl::StrCat(path, ".", field->name());
    if (!field->is_repeated()) {
      RETURN_IF_ERROR(CheckNoUnknownFields(reflection.GetMessage(message, field), below));
      continue;
    }
    const int size = reflection.FieldSize(message, field);
    for (int i = 0; i < size; ++i) {
      RETURN_IF_ERROR(CheckNoUnknownFields(reflection.GetRepeatedMessage(message, field, i),
                                           absl::StrCat(below, "[", i, "]")));
    }
  }
  return absl::OkStatus();
}

}  // namespace lengthwise::server
