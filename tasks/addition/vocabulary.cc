#include "tasks/addition/vocabulary.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lengthwise::tasks::addition {
namespace {

std::string FormatToken(int32_t token) {
  if (IsDigit(token)) return absl::StrCat(token);
  if (IsHint(token)) return absl::StrCat("<h", token - kFirstHint, ">");
  switch (token) {
    case kPlus:
      return "+";
    case kEquals:
      return "=";
    case kBlank:
      return " ";
    case kEnd:
      return "<eos>";
    case kPadding:
      return "<pad>";
    case kComma:
      return ",";
    default:
      return "?";
  }
}

}  // namespace

std::string FormatTokens(absl::Span<const int32_t> tokens) {
  std::string text;
  for (const int32_t token : tokens) absl::StrAppend(&text, FormatToken(token));
  return text;
}

absl::StatusOr<int32_t> ParseToken(absl::string_view text) {
  for (int32_t token = 0; token < kTokens; ++token) {
    if (FormatToken(token) == text) return token;
  }
  return absl::NotFoundError(absl::StrCat("\"", text, "\" is not a token of additions"));
}

}  // namespace lengthwise::tasks::addition
