// Tokens as callers send them, and the server's token file.
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "rpc/token.h"
#include "server/security/token_records.h"
#include "tests/fuzz/must.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lengthwise;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto token = rpc::ParseTokenText(text);
  if (token.ok()) {
    Must(rpc::FormatTokenText(*token) == text, "a token has one text");
  } else {
    Must(token.status().code() == absl::StatusCode::kInvalidArgument, "a wrong token is refused");
    // The error is the same for any text, because it must not repeat any part of a possible secret.
    Must(token.status() == rpc::ParseTokenText("").status(), "all refusals are the same");
  }
  const auto records = server::ParseTokenRecords(text);
  if (records.ok()) {
    Must(server::ParseTokenRecords(server::FormatTokenRecords(*records)).value() == *records,
         "records read back as written");
  } else {
    Must(records.status().code() == absl::StatusCode::kDataLoss, "damage is DATA_LOSS");
  }
  return 0;
}
