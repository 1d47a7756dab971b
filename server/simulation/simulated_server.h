// The server's engine as its command loop drives it, in groups of one transaction each, on a store
// that fails and in a process that dies.
#ifndef LENGTHWISE_SERVER_SIMULATION_SIMULATED_SERVER_H_
#define LENGTHWISE_SERVER_SIMULATION_SIMULATED_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/coordination/engine.h"
#include "server/coordination/fleet.h"
#include "server/simulation/memory_storage.h"
#include "server/simulation/promise.h"
#include "server/simulation/timeline.h"
#include "server/storage/artifact_store.h"

namespace lengthwise::server {

class SimulatedServer {
 public:
  // All must outlive it. `artifacts` are in `directory`.
  SimulatedServer(Timeline& timeline, const Weather& weather, ArtifactStore& artifacts,
                  std::string directory, Promise& promise);

  // What follows the commit: the answer.
  using Answer = std::function<void()>;
  // Runs on the engine in one of the next groups. Nothing is heard of it when the server is down,
  // or dies, or the store fails.
  using Command = std::function<Answer(Engine&)>;
  void Post(Command command);

  const MemoryData& data() const { return storage_.data(); }
  // A worker's upload, as far as the engine sees it. Without the store's writer, which waits for
  // the disk again and again.
  void PutArtifact(const ArtifactId& id, const std::string& bytes);
  // Damages what a waiting trial would go on from. False where there is nothing.
  bool DamageCheckpoint(const TrialRecord& trial);
  Promise& promise() { return promise_; }
  // Null while the server is down.
  Scheduler* scheduler() { return engine_ == nullptr ? nullptr : &engine_->ledger.scheduler(); }
  int64_t damages() const { return damages_; }
  int64_t deaths() const { return deaths_; }
  int64_t failed_commits() const { return failed_commits_; }

 private:
  void Start();
  void Die();
  void Tick();
  void ProcessGroup();

  Timeline& timeline_;
  const Weather& weather_;
  ArtifactStore& artifacts_;
  const std::string directory_;
  Promise& promise_;
  MemoryStorage storage_;
  Fleet fleet_;
  std::unique_ptr<Engine> engine_;
  std::vector<Command> queue_;
  bool scheduled_ = false;
  int64_t lives_ = 0;
  int64_t damages_ = 0;
  int64_t deaths_ = 0;
  int64_t failed_commits_ = 0;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SIMULATION_SIMULATED_SERVER_H_
