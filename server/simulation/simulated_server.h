// SimulatedServer: the server's engine, driven in groups of one transaction each as by its command
// loop, on a store that fails and in a process that dies.
#ifndef LENGTHWISE_SERVER_SIMULATION_SIMULATED_SERVER_H_
#define LENGTHWISE_SERVER_SIMULATION_SIMULATED_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/coordination/engine.h"
#include "server/coordination/fleet.h"
#include "server/simulation/promise.h"
#include "server/simulation/simulated_storage.h"
#include "server/simulation/timeline.h"
#include "server/storage/artifact_store.h"

namespace lengthwise::server {

class SimulatedServer {
 public:
  // All references must outlive it. `artifacts` are stored in `directory`.
  SimulatedServer(Timeline& timeline, const Weather& weather, ArtifactStore& artifacts,
                  std::string directory, Promise& promise);

  // Runs after the commit: delivers the answer.
  using Answer = std::function<void()>;
  // Runs on the engine in one of the next groups. There is no answer if the server is down or dies,
  // or if the store fails.
  using Command = std::function<Answer(Engine&)>;
  void Post(Command command);

  SimulatedStorage& store() { return storage_; }
  // A worker's upload, as far as the engine sees it. Bypasses the store's writer, which waits for
  // the disk.
  void PutArtifact(const ArtifactId& id, const std::string& bytes);
  // Damages the checkpoint that a waiting trial would resume from. False if there is none.
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
  // As ArtifactSweeper. The next group forgets the records.
  void SweepArtifacts();

  Timeline& timeline_;
  const Weather& weather_;
  ArtifactStore& artifacts_;
  const std::string directory_;
  Promise& promise_;
  SimulatedStorage storage_;
  Fleet fleet_;
  std::unique_ptr<Engine> engine_;
  std::vector<Command> queue_;
  std::vector<int64_t> swept_;
  bool scheduled_ = false;
  int64_t lives_ = 0;
  int64_t damages_ = 0;
  int64_t deaths_ = 0;
  int64_t failed_commits_ = 0;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SIMULATION_SIMULATED_SERVER_H_
