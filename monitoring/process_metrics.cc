#include "monitoring/process_metrics.h"

#include "monitoring/families.h"
#include "platform/process_usage.h"

namespace lengthwise::monitoring {

using prometheus::MetricFamily;
using prometheus::MetricType;

std::vector<MetricFamily> ProcessMetrics::Collect() const {
  const platform::ProcessUsage usage = platform::ReadProcessUsage();
  std::vector<MetricFamily> families;
  const auto add = [&](const char* name, MetricType type, const char* help, double value) {
    AddValue({}, value, families.emplace_back(MakeFamily(name, type, help)));
  };
  add("process_cpu_seconds_total", MetricType::Counter, "CPU time of the process, user and system.",
      usage.cpu_seconds);
  add("process_resident_memory_bytes", MetricType::Gauge, "Resident memory of the process.",
      static_cast<double>(usage.resident_bytes));
  add("process_start_time_seconds", MetricType::Gauge,
      "When the process started, seconds since 1970.", usage.start_time_seconds);
  add("process_open_fds", MetricType::Gauge, "Open file descriptors.",
      static_cast<double>(usage.open_files));
  add("process_max_fds", MetricType::Gauge, "Most open file descriptors that are allowed.",
      static_cast<double>(usage.max_open_files));
  return families;
}

}  // namespace lengthwise::monitoring
