// Lists of numbers on the command line: whole ones, "41..500", "1,2,5", "5..60 step 5,100", or real
// ones, "1.75,-0.25,0".
#ifndef LENGTHWISE_CLIENT_COMMANDS_NUMBER_LIST_H_
#define LENGTHWISE_CLIENT_COMMANDS_NUMBER_LIST_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "google/protobuf/repeated_field.h"

namespace lengthwise::client {

// Appends what the text says; empty text says nothing. INVALID_ARGUMENT, which names the option,
// for anything that is no such list, does not fit the numbers' type, or has more than 1,000,000
// values; nothing is appended then.
absl::Status ReadNumbers(const std::string& option, const std::string& text,
                         google::protobuf::RepeatedField<uint64_t>& numbers);
absl::Status ReadNumbers(const std::string& option, const std::string& text,
                         google::protobuf::RepeatedField<int32_t>& numbers);

// Likewise, of finite numbers without ranges.
absl::Status ReadNumbers(const std::string& option, const std::string& text,
                         google::protobuf::RepeatedField<double>& numbers);

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_NUMBER_LIST_H_
