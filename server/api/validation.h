// Checks of requests before they reach the core: pages, sizes, no unknown fields. Every error is
// INVALID_ARGUMENT with a google.rpc.BadRequest field violation (InvalidField).
#ifndef LENGTHWISE_SERVER_API_VALIDATION_H_
#define LENGTHWISE_SERVER_API_VALIDATION_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"
#include "proto/experiment_service.pb.h"
#include "proto/worker_service.pb.h"

namespace lengthwise::server {

// Maximum size of a specification in bytes, as text or as a message.
inline constexpr int64_t kMaxSpecificationBytes = 1 << 20;
// Maximum size of one chunk of an artifact in bytes.
inline constexpr int64_t kMaxChunkBytes = 1 << 20;

// A page size is 0 to 1,000, where the rpc defines what 0 means. A token has at most 512 printable
// ASCII characters; the core interprets it.
absl::Status CheckPage(int32_t page_size, absl::string_view page_token);
// At most `max_bytes`, without control characters except newlines and tabs. For free text such as
// owners, reasons and filters.
absl::Status CheckText(absl::string_view field, absl::string_view text, int64_t max_bytes);

// An owner to hand something to.
absl::Status CheckOwnerName(absl::string_view owner);

// Checks size and format. The content is resolved later.
absl::Status CheckSpecificationText(const v1::SpecificationText& text);

// Checks sizes, presence of the source, request_id and unknown fields. The specification's own
// fields are checked when it is resolved.
absl::Status CheckCreateExperiment(const v1::CreateExperimentRequest& request);

// Checks the name, at least one seed, and unknown fields.
absl::Status CheckExtendExperiment(const v1::ExtendExperimentRequest& request);

// Checks the name, sizes, request_id and unknown fields. The evaluation's own fields are checked
// when it is resolved.
absl::Status CheckEvaluateTrial(const v1::EvaluateTrialRequest& request);

// Checks the name, and at least one state that a trial can be retried from.
absl::Status CheckRetryTrials(const v1::RetryTrialsRequest& request);

// Checks the worker's id and pack size.
absl::Status CheckWorker(const v1::WorkerDescription& worker);
absl::Status CheckArtifactHeader(const v1::UploadArtifactRequest::Header& header);
// 64 lower-case hexadecimal digits.
absl::Status CheckSha256(absl::string_view field, absl::string_view text);

// OK if `message` and all nested messages only have fields that this release knows. Otherwise names
// the number of the first unknown field and its position, as a path that starts with `path`.
absl::Status CheckNoUnknownFields(const google::protobuf::Message& message, absl::string_view path);

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_API_VALIDATION_H_
