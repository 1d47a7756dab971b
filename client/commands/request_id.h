// Ids that make a request repeatable.
#ifndef LENGTHWISE_CLIENT_COMMANDS_REQUEST_ID_H_
#define LENGTHWISE_CLIENT_COMMANDS_REQUEST_ID_H_

#include <string>

namespace lengthwise::client {

// 24 random hexadecimal digits.
std::string RandomRequestId();

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_REQUEST_ID_H_
