// Simulation: a server, its workers and its users over a simulated day under random faults. The
// real engine, scheduler and event intake are checked against the promise (promise.h) after every
// step. The same seed gives the same day.
#ifndef LENGTHWISE_SERVER_SIMULATION_SIMULATION_H_
#define LENGTHWISE_SERVER_SIMULATION_SIMULATION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/simulation/promise.h"
#include "server/simulation/simulated_server.h"
#include "server/simulation/simulated_worker.h"
#include "server/simulation/timeline.h"
#include "server/storage/artifact_store.h"

namespace lengthwise::server {

class Simulation {
 public:
  struct Options {
    uint64_t seed = 1;
    int workers = 6;
    // Wall times end together, as for jobs that a cluster started together: every minute or two, a
    // third of the workers is asked to stop, and killed soon after if it has not.
    bool storms = false;
    // Number of events before faults stop and users leave. Then the simulation runs until every
    // trial has ended.
    int64_t events = 100'000;
    // Directory for checkpoint files. Created, and not deleted.
    std::string directory;
  };

  explicit Simulation(const Options& options);

  // Returns the violation and its time. Empty if there is none.
  std::string Run();

  int64_t events() const { return timeline_.events(); }
  // A one-line summary of what happened: a simulation in which nothing happens proves nothing.
  std::string Summary() const;
  const Promise& promise() const { return promise_; }
  const SimulatedServer& server() const { return *server_; }
  int64_t storms() const { return storms_; }
  // Deletions that the engine made, and those that it refused because of unfinished trials.
  int64_t deletions() const { return deletions_; }
  int64_t refused_deletions() const { return refused_deletions_; }

 private:
  void Act();
  void Storm();
  void Submit();
  void Extend(const std::string& id);
  void Cancel(const std::string& id);
  // Posts a command in parts: `part` again after each commit until it returns true.
  void PostParts(const std::function<bool(Engine&)>& part);
  void Delete(const std::string& id);
  void Damage();
  std::vector<ExperimentRecord> Experiments() const;
  // Any existing experiment. Empty if there is none.
  std::string AnyExperiment();
  std::string AnyTrial(const std::string& experiment);
  // The size of this fleet in multiples of the usual one.
  int64_t Scale() const;
  int64_t Unended() const;
  std::string AnyUser();

  const Options options_;
  Timeline timeline_;
  Weather weather_;
  Promise promise_;
  std::unique_ptr<ArtifactStore> artifacts_;
  Network network_;
  std::unique_ptr<SimulatedServer> server_;
  std::vector<std::unique_ptr<SimulatedWorker>> workers_;
  bool users_act_ = true;
  int64_t requests_ = 0;
  int64_t submissions_ = 0;
  int64_t storms_ = 0;
  int64_t deletions_ = 0;
  int64_t refused_deletions_ = 0;
};

}  // namespace lengthwise::server

#endif  // LENGTHWISE_SERVER_SIMULATION_SIMULATION_H_
