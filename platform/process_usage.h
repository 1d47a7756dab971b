// Reads this process's resource usage and its threads' scheduling times.
#ifndef LENGTHWISE_PLATFORM_PROCESS_USAGE_H_
#define LENGTHWISE_PLATFORM_PROCESS_USAGE_H_

#include <cstdint>
#include <map>

namespace lengthwise::platform {

struct ProcessUsage {
  double cpu_seconds = 0;         // user and system, of all threads
  int64_t resident_bytes = 0;     // memory
  double start_time_seconds = 0;  // since 1970
  int64_t open_files = 0;         // file descriptors
  int64_t max_open_files = 0;
};

// Reads /proc. Values that cannot be read are 0. Thread-safe.
ProcessUsage ReadProcessUsage();

// CPU time of a thread since its start.
struct SchedulingTimes {
  double running_seconds = 0;
  double waiting_seconds = 0;  // ready to run, while others had the CPU
};
// Reads the times of every thread of this process, by thread id, from /proc. Empty if the kernel
// does not record them (CONFIG_SCHED_INFO). Thread-safe.
std::map<int, SchedulingTimes> ReadSchedulingTimes();

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_PROCESS_USAGE_H_
