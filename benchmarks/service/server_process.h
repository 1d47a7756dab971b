// The real server as a process of its own, on loopback and a directory that goes with it.
#ifndef LENGTHWISE_BENCHMARKS_SERVICE_SERVER_PROCESS_H_
#define LENGTHWISE_BENCHMARKS_SERVICE_SERVER_PROCESS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/channel.h"
#include "platform/child_process.h"

namespace lengthwise::benchmarks {

// For the main thread. Failures end the program with a message.
class ServerProcess {
 public:
  // Starts `program` on a new directory below $TMPDIR (a disk that is a disk: what is acknowledged
  // is synced) and waits until it serves.
  explicit ServerProcess(const std::string& program);
  // Kills it and deletes the directory.
  ~ServerProcess();

  const std::string& address() const { return address_; }
  // A connection of its own.
  std::shared_ptr<grpc::Channel> Connect() const;

  // Of the process, bytes: now, and the most so far.
  int64_t ResidentBytes() const { return MemoryLine("VmRSS:"); }
  int64_t MostResidentBytes() const { return MemoryLine("VmHWM:"); }
  // CPU time that it has used.
  double CpuSeconds() const;

 private:
  int64_t MemoryLine(const std::string& name) const;

  std::string directory_;
  std::string address_;
  std::unique_ptr<platform::ChildProcess> process_;
};

// Ends the program with a message.
[[noreturn]] void Fail(const std::string& message);

// Submits `trials` trials of one step that differ in their seeds; returns the experiment's name.
std::string SubmitTrials(const ServerProcess& server, const std::string& name, int trials);

// The value below which so many (0 to 1) of the values lie.
double Quantile(std::vector<double>& values, double fraction);

}  // namespace lengthwise::benchmarks

#endif  // LENGTHWISE_BENCHMARKS_SERVICE_SERVER_PROCESS_H_
