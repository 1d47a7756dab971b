// What this process takes of the machine.
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

// From /proc; what cannot be read is 0. Any thread.
ProcessUsage ReadProcessUsage();

// What a thread has got of the CPUs since it began.
struct SchedulingTimes {
  double running_seconds = 0;
  double waiting_seconds = 0;  // ready to run, while others had the CPU
};
// Of every thread of this process, by its id. From /proc; empty where the kernel does not count
// these times (CONFIG_SCHED_INFO). Any thread.
std::map<int, SchedulingTimes> ReadSchedulingTimes();

// Of the file system that holds `path`; all 0 where it cannot be asked.
struct DiskSpace {
  int64_t free_bytes = 0;  // that this user may still write
  int64_t size_bytes = 0;
};
DiskSpace ReadDiskSpace(const char* path);

}  // namespace lengthwise::platform

#endif  // LENGTHWISE_PLATFORM_PROCESS_USAGE_H_
