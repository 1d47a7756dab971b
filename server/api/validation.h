// What a request must fulfil before it reaches the core: names, pages, sizes, no unknown
// fields. Every error is INVALID_ARGUMENT with a google.rpc.BadRequest field violation
// (InvalidField).
#ifndef LENGTHWISE_SERVER_API_VALIDATION_H_
#define LENGTHWISE_SERVER_API_VALIDATION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "proto/experiment_service.pb.h"
#include "proto/worker_service.pb.h"

namespace lengthwise::server {

// Most bytes of a specification, as text or as a message.
inline constexpr int64_t kMaxSpecificationBytes = 1 << 20;
// Most bytes of one part of an artifact.
inline constexpr int64_t kMaxChunkBytes = 1 << 20;

// "experiments/{experiment}".
absl::Status CheckExperimentName(absl::string_view field, absl::string_view name);
// "experiments/{experiment}/trials/{trial}".
absl::Status CheckTrialName(absl::string_view field, absl::string_view name);
// Either of the two.
absl::Status CheckExperimentOrTrialName(absl::string_view field, absl::string_view name);
// A page size is 0 to 1,000 (what 0 means is the rpc's matter); a token at most 512 printable ASCII
// characters (what it says is the core's matter).
absl::Status CheckPage(int32_t page_size, absl::string_view page_token);
// At most `max_bytes` without control characters other than newlines and tabs; for free texts such
// as owners, reasons and filters.
absl::Status CheckText(absl::string_view field, absl::string_view text, int64_t max_bytes);

// Size and format; what it says is resolved later.
absl::Status CheckSpecificationText(const v1::SpecificationText& text);

// Sizes, presence of the source, request_id, unknown fields. The specification's own fields are
// resolved later.
absl::Status CheckCreateExperiment(const v1::CreateExperimentRequest& request);

// Name, at least one seed, unknown fields.
absl::Status CheckExtendExperiment(const v1::ExtendExperimentRequest& request);

// Name, sizes, request_id, unknown fields. The evaluation's own fields are resolved later.
absl::Status CheckEvaluateTrial(const v1::EvaluateTrialRequest& request);

// Name, at least one state that a trial can be retried from.
absl::Status CheckRetryTrials(const v1::RetryTrialsRequest& request);

// Worker's id, pack size.
absl::Status CheckWorker(const v1::WorkerDescription& worker);
absl::Status CheckArtifactHeader(const v1::UploadArtifactRequest::Header& header);
// 64 lower-case hexadecimal digits.
absl::Status CheckSha256(absl::string_view field, absl::string_view text);

// OK when `message` and all messages in it have only fields that this program knows; otherwise
// names the first unknown field's number and where it is, as a path that starts with `path`.
absl::Status CheckNoUnknownFields(const google::protobuf::Message& message, absl::string_view path);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_VALIDATION_H_
