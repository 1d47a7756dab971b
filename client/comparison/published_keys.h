// What the published tables are called, for completion. The Python package reads and compares them.
#ifndef LENGTHWISE_CLIENT_COMPARISON_PUBLISHED_KEYS_H_
#define LENGTHWISE_CLIENT_COMPARISON_PUBLISHED_KEYS_H_

#include <string>
#include <vector>

namespace lengthwise::client {

struct PublishedKey {
  std::string key;  // "randomized_pe/table_1"
  std::string title;
};

// Sorted by key.
std::vector<PublishedKey> PublishedKeys();

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMPARISON_PUBLISHED_KEYS_H_
