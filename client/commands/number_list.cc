#include <cmath>
#include <limits>

#include "absl/numeric/int128.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/commands/commands.h"
#include "specification/integer_ranges.h"

namespace lengthwise::client {

constexpr int64_t kMostNumbers = 1'000'000;

template <typename Number>
absl::Status ReadNumbers(const std::string& option, const std::string& text,
                         google::protobuf::RepeatedField<Number>& numbers,
                         absl::string_view expected) {
  if (text.empty()) return absl::OkStatus();
  google::protobuf::RepeatedField<Number> read;
  for (const absl::string_view untrimmed : absl::StrSplit(text, ',')) {
    const absl::string_view part = absl::StripAsciiWhitespace(untrimmed);
    std::optional<specification::IntegerRange> range;
    if (specification::LooksLikeRange(part)) {
      range = specification::ParseRange(part);
    } else if (const auto number = specification::ParseInteger(part); number.has_value()) {
      range = specification::IntegerRange{.first = *number, .last = *number};
    }
    if (!range.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(option, ": got \"", std::string(part), "\", expected ", expected));
    }
    if (range->first < 0 || range->last > absl::int128(std::numeric_limits<Number>::max())) {
      return absl::InvalidArgumentError(absl::StrCat(option, ": got \"", std::string(part),
                                                     "\", expected numbers from 0 to ",
                                                     std::numeric_limits<Number>::max()));
    }
    if (range->size() + read.size() > kMostNumbers) {
      return absl::InvalidArgumentError(
          absl::StrCat(option, ": more than ", kMostNumbers, " numbers"));
    }
    for (absl::int128 number = range->first; number <= range->last; number += range->step) {
      read.Add(static_cast<Number>(number));
    }
  }
  numbers.MergeFrom(read);
  return absl::OkStatus();
}

template absl::Status ReadNumbers(const std::string&, const std::string&,
                                  google::protobuf::RepeatedField<uint64_t>&, absl::string_view);
template absl::Status ReadNumbers(const std::string&, const std::string&,
                                  google::protobuf::RepeatedField<int32_t>&, absl::string_view);

absl::Status ReadNumbers(const std::string& option, const std::string& text,
                         google::protobuf::RepeatedField<double>& numbers) {
  if (text.empty()) return absl::OkStatus();
  google::protobuf::RepeatedField<double> read;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    double number = 0;
    if (!absl::SimpleAtod(part, &number) || !std::isfinite(number)) {
      return absl::InvalidArgumentError(
          absl::StrCat(option, ": got \"", std::string(absl::StripAsciiWhitespace(part)),
                       "\", expected finite numbers such as 1.75,-0.25,0"));
    }
    if (read.size() == kMostNumbers) {
      return absl::InvalidArgumentError(
          absl::StrCat(option, ": more than ", kMostNumbers, " numbers"));
    }
    read.Add(number);
  }
  numbers.MergeFrom(read);
  return absl::OkStatus();
}

}  // namespace lengthwise::client
