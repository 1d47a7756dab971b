// Parses lists of numbers on the command line: integers such as "41..500", "1,2,5" and "5..60 step
// 5,100", or real numbers such as "1.75,-0.25,0".
#ifndef LENGTHWISE_CLIENT_COMMANDS_NUMBER_LIST_H_
#define LENGTHWISE_CLIENT_COMMANDS_NUMBER_LIST_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/repeated_field.h"

namespace lengthwise::client {

inline constexpr absl::string_view kNumbersAndRanges =
    "numbers and ranges such as 41..500 or 1,2,5";

// Appends the numbers of `text`, which may be empty. INVALID_ARGUMENT names the option if the text
// is not such a list, a value does not fit the numbers' type, or there are more than 1,000,000
// values; it tells what is `expected` in place of text that is no list. Nothing is appended after
// an error.
absl::Status ReadNumbers(const std::string& option, const std::string& text,
                         google::protobuf::RepeatedField<uint64_t>& numbers);
absl::Status ReadNumbers(const std::string& option, const std::string& text,
                         google::protobuf::RepeatedField<int32_t>& numbers,
                         absl::string_view expected = kNumbersAndRanges);

// The same for finite real numbers, without ranges.
absl::Status ReadNumbers(const std::string& option, const std::string& text,
                         google::protobuf::RepeatedField<double>& numbers);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_NUMBER_LIST_H_
