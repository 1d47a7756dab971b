// Ranges of lengths under which accuracies are shown while a trial runs.
#ifndef LENGTHWISE_SERVER_COORDINATION_LENGTH_BUCKETS_H_
#define LENGTHWISE_SERVER_COORDINATION_LENGTH_BUCKETS_H_

#include <cstdint>
#include <string>

namespace lengthwise::server {

// At most kMost ranges of one width from 1 to the longest length. The width divides the longest
// length seen in training where that costs at most two thirds of the ranges, so that no range has
// both seen and unseen lengths; otherwise it is a round number.
class LengthBuckets {
 public:
  static constexpr int32_t kMost = 20;

  // `seen_up_to` 0: unknown.
  LengthBuckets(int32_t seen_up_to, int32_t longest);

  int32_t width() const { return width_; }

  // "041-060", or "041" where a range is one length: as text they sort as the lengths do. A length
  // beyond the longest belongs to the last range, one below 1 to the first.
  std::string Label(int32_t length) const;

 private:
  const int32_t longest_;
  const int32_t width_;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_COORDINATION_LENGTH_BUCKETS_H_
