#include "platform/process_usage.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <string>
#include <system_error>

namespace lengthwise::platform {
namespace {

// Returns the time at which the machine was booted, in seconds since 1970.
double BootTime() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("btime ", 0) == 0) return std::strtod(line.c_str() + 6, nullptr);
  }
  return 0;
}

// Returns the seconds from the machine's boot to the process's start, from /proc/self/stat.
double StartAfterBoot() {
  std::ifstream file("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  // Skips the second field, the program's name in parentheses, which may contain spaces.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string field;
  for (int number = 3; number <= 22; ++number) fields >> field;  // proc(5): starttime is the 22nd
  return std::strtod(field.c_str(), nullptr) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

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

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

ProcessUsage ReadProcessUsage() {
  ProcessUsage usage;
  rusage resources = {};
  if (getrusage(RUSAGE_SELF, &resources) == 0) {
    usage.cpu_seconds = Seconds(resources.ru_utime) + Seconds(resources.ru_stime);
  }
  usage.resident_bytes = ResidentBytes();
  usage.start_time_seconds = BootTime() + StartAfterBoot();
  usage.open_files = OpenFiles();
  rlimit files = {};
  if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
    usage.max_open_files = static_cast<int64_t>(files.rlim_cur);
  }
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
