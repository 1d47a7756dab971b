// Runs the real server as a child process, on loopback, with a temporary data directory.
#ifndef LENGTHWISE_BENCHMARKS_SERVICE_SERVER_PROCESS_H_
#define LENGTHWISE_BENCHMARKS_SERVICE_SERVER_PROCESS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/channel.h"
#include "platform/child_process.h"

namespace lengthwise::benchmarks {

// Use from the main thread only. A failure ends the program with a message.
class ServerProcess {
 public:
  // Starts `program` on a new directory below $TMPDIR and waits until it serves. $TMPDIR should be
  // on a real disk, because the server syncs what it acknowledges.
  // `flags` are added to the server's command line.
  explicit ServerProcess(const std::string& program, const std::vector<std::string>& flags = {});
  // Kills the server and deletes the directory.
  ~ServerProcess();

  const std::string& address() const { return address_; }
  // Opens a separate connection.
  std::shared_ptr<grpc::Channel> Connect() const;

  // Resident memory of the process in bytes: current, and peak.
  int64_t ResidentBytes() const { return MemoryLine("VmRSS:"); }
  int64_t MostResidentBytes() const { return MemoryLine("VmHWM:"); }
  // CPU time consumed so far.
  double CpuSeconds() const;
  // Bytes that its open TCP connections have carried so far, in both directions. Needs ss of
  // iproute2.
  int64_t TrafficBytes() const;

 private:
  int64_t MemoryLine(const std::string& name) const;

  std::string directory_;
  std::string address_;
  std::unique_ptr<platform::ChildProcess> process_;
};

// Prints the message and ends the program.
[[noreturn]] void Fail(const std::string& message);

// Submits `trials` trials of one step that differ in their seeds. Returns the experiment's name.
std::string SubmitTrials(const ServerProcess& server, const std::string& name, int trials);

// The quantile of `values` at `fraction`, 0 to 1. Reorders them.
double Quantile(std::vector<double>& values, double fraction);

}  // namespace lengthwise::benchmarks

#endif  // LENGTHWISE_BENCHMARKS_SERVICE_SERVER_PROCESS_H_
