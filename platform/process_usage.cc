#include "platform/process_usage.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <system_error>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "platform/descriptors.h"

namespace lengthwise::platform {
namespace {

// Of this process, as its static objects are made.
const absl::Time kStart = absl::Now();

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0, resident = 0;
  if (!(file >> size >> resident)) return 0;
  return resident * sysconf(_SC_PAGESIZE);
}

int64_t OpenFiles() {
  std::error_code error;
  int64_t count = 0;
  for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end;
       !error && entry != end; entry.increment(error)) {
    ++count;
  }
  return count == 0 ? 0 : count - 1;  // excludes the descriptor that reads the directory
}

}  // namespace

ProcessUsage ReadProcessUsage() {
  ProcessUsage usage;
  rusage resources = {};
  if (getrusage(RUSAGE_SELF, &resources) == 0) {
    usage.cpu_seconds = absl::ToDoubleSeconds(absl::DurationFromTimeval(resources.ru_utime) +
                                              absl::DurationFromTimeval(resources.ru_stime));
  }
  usage.resident_bytes = ResidentBytes();
  usage.start_time_seconds = absl::ToDoubleSeconds(kStart - absl::UnixEpoch());
  usage.open_files = OpenFiles();
  usage.max_open_files = DescriptorLimit();
  return usage;
}

std::map<int, SchedulingTimes> ReadSchedulingTimes() {
  std::map<int, SchedulingTimes> threads;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc/self/task", error), end;
       !error && entry != end; entry.increment(error)) {
    std::ifstream file(entry->path() / "schedstat");
    double running = 0, waiting = 0;  // nanoseconds
    if (!(file >> running >> waiting)) continue;
    threads[std::atoi(entry->path().filename().c_str())] = {.running_seconds = running * 1e-9,
                                                            .waiting_seconds = waiting * 1e-9};
  }
  return threads;
}

}  // namespace lengthwise::platform
