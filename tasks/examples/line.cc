#include "tasks/examples/line.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "catalogue/suggestion.h"
#include "nlohmann/json.hpp"
#include "platform/printable_text.h"

namespace lengthwise::tasks::examples {
namespace {

using Json = nlohmann::json;

enum class Field : uint8_t { kInput, kTarget, kMask, kLength, kPositions };
constexpr std::array<const char*, 5> kFields = {"input", "target", "mask", "length", "positions"};
constexpr char kExpectedLine[] = "expected an object such as {\"input\": [1, 0], \"target\": [0]}";
constexpr size_t kMostShown = 40;

std::string Shown(absl::string_view text) {
  return platform::PrintableLine(text.size() > kMostShown
                                     ? absl::StrCat(text.substr(0, kMostShown), "...")
                                     : std::string(text));
}

// SAX handler for one line. Returns false at the first unexpected part, with the reason in
// `problem`. Accepts only lists inside the object, so nesting is bounded.
class Handler {
 public:
  explicit Handler(Line& line) : line_(line) {}

  const std::string& problem() const { return problem_; }

  bool null() { return Refuse("null"); }
  bool boolean(bool value) {
    if (field_ != Field::kMask || !in_list_) return Refuse(value ? "true" : "false");
    line_.mask.push_back(value ? 1 : 0);
    return true;
  }
  bool number_integer(Json::number_integer_t value) {
    const bool whole = value > -kMostWhole && value < kMostWhole;
    return Number(static_cast<double>(value), whole ? "" : absl::StrCat(value));
  }
  bool number_unsigned(Json::number_unsigned_t value) {
    const bool whole = value < static_cast<uint64_t>(kMostWhole);
    return Number(static_cast<double>(value), whole ? "" : absl::StrCat(value));
  }
  bool number_float(Json::number_float_t value, const std::string& text) {
    return Number(value, Shown(text));
  }
  bool string(std::string& value) {
    LineValues* values = Values();
    if (values != nullptr && in_list_) {
      return Problem(absl::StrCat(kFields[Index()], ": got \"", Shown(value),
                                  "\" in the list, expected numbers; write words as one text, "
                                  "\"walk left\", and set symbols: words"));
    }
    if (values == nullptr) return Refuse(absl::StrCat("\"", Shown(value), "\""));
    if (value.find('\0') != std::string::npos) {
      return Problem(absl::StrCat(kFields[Index()], " has a NUL character"));
    }
    values->is_text = true;
    values->text.assign(value);
    return true;
  }
  bool binary(Json::binary_t& /*value*/) { return Refuse("bytes"); }

  bool start_object(size_t /*size*/) {
    if (in_object_) return Refuse("an object");
    in_object_ = true;
    return true;
  }
  bool key(std::string& name) {
    for (size_t i = 0; i < kFields.size(); ++i) {
      if (name != kFields[i]) continue;
      if (seen_[i]) return Problem(absl::StrCat("\"", name, "\" is given twice"));
      seen_[i] = true;
      field_ = static_cast<Field>(i);
      return true;
    }
    return Problem(absl::StrCat(
        "unknown field \"", Shown(name), "\"",
        catalogue::Suggestion(name, std::vector<std::string>(kFields.begin(), kFields.end()))));
  }
  bool end_object() { return true; }
  bool start_array(size_t /*size*/) {
    if (!field_.has_value() || in_list_ || field_ == Field::kLength) return Refuse("a list");
    in_list_ = true;
    return true;
  }
  bool end_array() {
    in_list_ = false;
    return true;
  }
  bool parse_error(size_t column, const std::string& token,
                   const nlohmann::detail::exception& error) {
    constexpr int kOverflow = 406;
    if (error.id == kOverflow) {
      return Problem(
          absl::StrCat("column ", column, ": the number ", Shown(token), " is too large"));
    }
    // The library's message begins with its error number and location.
    const absl::string_view text = error.what();
    const size_t reason = text.find(": ");
    return Problem(
        absl::StrCat("column ", column, ": not JSON",
                     reason == absl::string_view::npos ? "" : Reason(text.substr(reason))));
  }

  bool Has(Field field) const { return seen_[static_cast<size_t>(field)]; }

 private:
  static constexpr int64_t kMostWhole = int64_t{1} << 31;

  // Truncates the message after the reason: the rest repeats the input, which the column locates.
  static std::string Reason(absl::string_view text) {
    constexpr size_t kMostReason = 120;
    return platform::PrintableLine(text.substr(0, std::min(text.find(';'), kMostReason)));
  }

  size_t Index() const { return static_cast<size_t>(*field_); }
  LineValues* Values() {
    if (field_ == Field::kInput) return &line_.input;
    if (field_ == Field::kTarget) return &line_.target;
    return nullptr;
  }

  // `not_whole`: LineValues::not_whole if this is such a number, else empty.
  bool Number(double value, const std::string& not_whole) {
    if (LineValues* values = Values(); values != nullptr && in_list_) {
      if (static_cast<int64_t>(values->numbers.size()) == kMostLength) {
        return Problem(absl::StrCat(kFields[Index()], " has more than ", kMostLength, " values"));
      }
      values->numbers.push_back(value);
      if (values->not_whole.empty()) values->not_whole = not_whole;
      return true;
    }
    if (field_ == Field::kMask && in_list_ && (value == 0 || value == 1)) {
      line_.mask.push_back(static_cast<uint8_t>(value));
      return true;
    }
    if (field_ == Field::kPositions && in_list_ && not_whole.empty() && value >= 0 &&
        value <= kMostPosition) {
      if (static_cast<int64_t>(line_.positions.size()) == 2 * kMostLength) {
        return Problem(absl::StrCat("positions has more than ", 2 * kMostLength, " values"));
      }
      line_.positions.push_back(static_cast<int32_t>(value));
      return true;
    }
    if (field_ == Field::kLength && !in_list_ && not_whole.empty() && value >= 1 &&
        value <= kMostLength) {
      line_.length = static_cast<int64_t>(value);
      return true;
    }
    if (!not_whole.empty()) return Refuse(not_whole);
    // Six digits would not tell 1048576 from what is accepted.
    const bool is_whole = std::floor(value) == value && std::abs(value) < 1e15;
    return Refuse(is_whole ? absl::StrCat(static_cast<int64_t>(value)) : absl::StrCat(value));
  }

  bool Refuse(const std::string& given) {
    if (!field_.has_value()) return Problem(absl::StrCat("got ", given, ", ", kExpectedLine));
    const std::string start = absl::StrCat(kFields[Index()], ": got ", given, ", expected ");
    switch (*field_) {
      case Field::kMask:
        return Problem(start + "a list of 0 and 1");
      case Field::kLength:
        return Problem(absl::StrCat(start, "an integer from 1 to ", kMostLength));
      case Field::kPositions:
        return Problem(absl::StrCat(start, "a list of integers from 0 to ", kMostPosition));
      default:
        return Problem(in_list_ ? start + "numbers in the list"
                                : start + "a list of numbers or text");
    }
  }

  bool Problem(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  Line& line_;
  std::string problem_;
  std::optional<Field> field_;
  std::array<bool, kFields.size()> seen_ = {};
  bool in_object_ = false;
  bool in_list_ = false;
};

bool IsEmpty(const LineValues& values) {
  return values.is_text ? values.text.empty() : values.numbers.empty();
}

}  // namespace

absl::Status ParseLine(absl::string_view text, Line& line) {
  line = {};
  if (text.find('\0') != absl::string_view::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("has a NUL byte at column ", text.find('\0') + 1, "; save the file as UTF-8"));
  }
  Handler handler(line);
  if (!Json::sax_parse(text.begin(), text.end(), &handler)) {
    return absl::InvalidArgumentError(handler.problem());
  }
  line.has_mask = handler.Has(Field::kMask);
  line.has_positions = handler.Has(Field::kPositions);
  for (const Field field : {Field::kInput, Field::kTarget}) {
    if (!handler.Has(field)) {
      return absl::InvalidArgumentError(
          absl::StrCat("has no \"", kFields[static_cast<size_t>(field)], "\"; ", kExpectedLine));
    }
  }
  if (IsEmpty(line.input)) return absl::InvalidArgumentError("input is empty");
  if (IsEmpty(line.target)) return absl::InvalidArgumentError("target is empty");
  if (line.input.is_text != line.target.is_text) {
    return absl::InvalidArgumentError("input and target must both be text, or both be lists");
  }
  return absl::OkStatus();
}

void Lines::Give(absl::string_view line) {
  if (number_ == 1) absl::ConsumePrefix(&line, "\xEF\xBB\xBF");
  if (static_cast<int64_t>(line.size()) > most_bytes_) {
    take_(number_, {}, true);
    return;
  }
  absl::ConsumeSuffix(&line, "\r");
  if (absl::StripAsciiWhitespace(line).empty()) return;
  take_(number_, line, false);
}

void Lines::Add(absl::string_view chunk) {
  while (!chunk.empty()) {
    const size_t end = chunk.find('\n');
    const bool ends = end != absl::string_view::npos;
    const absl::string_view part = chunk.substr(0, end);
    if (skipping_) {
      // Skips the rest of a rejected line.
    } else if (!ends || !begun_.empty()) {
      begun_.append(part.data(), part.size());
      if (static_cast<int64_t>(begun_.size()) > most_bytes_ + 4) {
        take_(number_, {}, true);
        begun_ = {};
        skipping_ = true;
      } else if (ends) {
        Give(begun_);
        begun_.clear();
      }
    } else {
      Give(part);
    }
    if (!ends) return;
    skipping_ = false;
    ++number_;
    chunk.remove_prefix(end + 1);
  }
}

void Lines::End() {
  if (!skipping_ && !begun_.empty()) Give(begun_);
  begun_.clear();
}

}  // namespace lengthwise::tasks::examples
