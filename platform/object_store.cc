#include "platform/object_store.h"

#include <pugixml.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace lengthwise::platform {
namespace {

std::string TextOf(const pugi::xml_node& error, const char* name) {
  const absl::string_view text = error.child_value(name);
  return absl::StrContains(text, "X-Amz-") ? "" : std::string(text);
}

}  // namespace

absl::Duration TransferTimeout(int64_t bytes) {
  return absl::Seconds(30) + absl::Seconds(1) * (static_cast<double>(bytes) / (1 << 20));
}

ObjectStoreError ObjectStoreErrorOf(const HttpResponse& response) {
  pugi::xml_document document;
  if (!document.load_buffer(response.body.data(), response.body.size())) return {};
  const pugi::xml_node error = document.child("Error");
  return {.code = TextOf(error, "Code"), .message = TextOf(error, "Message")};
}

}  // namespace lengthwise::platform
