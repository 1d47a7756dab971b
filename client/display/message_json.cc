#include "client/display/message_json.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "google/protobuf/util/json_util.h"
#include "google/protobuf/util/type_resolver.h"
#include "google/protobuf/util/type_resolver_util.h"
#include "proto/digest.h"

namespace lengthwise::client {
namespace {

constexpr char kTypePrefix[] = "type.googleapis.com";

}  // namespace

absl::StatusOr<std::string> MessageJson(const google::protobuf::Message& message, bool indented) {
  static google::protobuf::util::TypeResolver* const resolver =
      google::protobuf::util::NewTypeResolverForDescriptorPool(
          kTypePrefix, google::protobuf::DescriptorPool::generated_pool());
  // MessageToJsonString writes map entries in memory order, which varies. The JSON of a serialized
  // message follows the order of its bytes, which is deterministic here.
  const std::string bytes = SerializeDeterministically(message);
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  options.add_whitespace = indented;
  std::string json;
  const auto status = google::protobuf::util::BinaryToJsonString(
      resolver, absl::StrCat(kTypePrefix, "/", message.GetTypeName()), bytes, &json, options);
  if (status.ok()) return json;
  return absl::InternalError(absl::StrCat("cannot write a ", message.GetTypeName(), " as JSON"));
}

}  // namespace lengthwise::client
