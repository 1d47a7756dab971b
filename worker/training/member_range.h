// No LibTorch.
#ifndef LENGTHWISE_WORKER_TRAINING_MEMBER_RANGE_H_
#define LENGTHWISE_WORKER_TRAINING_MEMBER_RANGE_H_

#include <compare>
#include <cstdint>

namespace lengthwise::worker::training {

// Members that go through the kernels together.
struct MemberRange {
  int64_t first = 0;
  int64_t count = 0;

  friend auto operator<=>(const MemberRange&, const MemberRange&) = default;
};

}  // namespace lengthwise::worker::training

#endif  // LENGTHWISE_WORKER_TRAINING_MEMBER_RANGE_H_
