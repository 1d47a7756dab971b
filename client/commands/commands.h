// Lists all commands. To add a command, add a file to this folder, then declare and list its
// function here.
#ifndef LENGTHWISE_CLIENT_COMMANDS_COMMANDS_H_
#define LENGTHWISE_CLIENT_COMMANDS_COMMANDS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/commands/program.h"
#include "platform/child_process.h"

namespace lengthwise::client {

void AddRun(Command root, Program& program);
void AddValidate(Command root, Program& program);
void AddCheck(Command root, Program& program);
void AddSample(Command root, Program& program);
void AddCatalogueCommands(Command root, Program& program);
void AddSubmit(Command root, Program& program);
void AddWatch(Command root, Program& program);
void AddResults(Command root, Program& program);
void AddPlot(Command root, Program& program);
void AddWeb(Command root, Program& program);
void AddReport(Command root, Program& program);
void AddExport(Command root, Program& program);
void AddPublish(Command root, Program& program);
void AddCompare(Command root, Program& program);
void AddAttention(Command root, Program& program);
void AddErrors(Command root, Program& program);
void AddPredict(Command root, Program& program);
void AddAnalyze(Command root, Program& program);
void AddEvaluate(Command root, Program& program);
void AddExtend(Command root, Program& program);
void AddList(Command root, Program& program);
void AddShow(Command root, Program& program);
void AddCancel(Command root, Program& program);
void AddRetry(Command root, Program& program);
void AddDelete(Command root, Program& program);
void AddHandOver(Command root, Program& program);
void AddWorkers(Command root, Program& program);
// Adds `up` and `down` to `lengthwise workers`.
void AddFleetCommands(Command workers, Program& program);
// Pauses and resumes the queue.
void AddQueue(Command root, Program& program);
// Prints why the queue is paused (ListWorkersResponse.queue_pause), if it is.
void TellPause(Program& program, const std::string& why);

// Prints a table of what owners have used.
void PrintUsage(Program& program, const std::vector<v1::OwnerUsage>& owners);
void AddAuth(Command root, Program& program);
void AddConfig(Command root, Program& program);
void AddLogs(Command root, Program& program);
void AddStorage(Command root, Program& program);
void AddBackup(Command root, Program& program);
void AddDoctor(Command root, Program& program);
void AddCompletion(Command root, Program& program);
void AddMan(Command root, Program& program);

// In the order in which `lengthwise --help` lists them.
inline constexpr void (*kCommands[])(Command, Program&) = {
    AddRun,        AddValidate, AddCheck,   AddSample,   AddCatalogueCommands,
    AddSubmit,     AddWatch,    AddResults, AddPlot,     AddWeb,
    AddReport,     AddPublish,  AddExport,  AddCompare,  AddAnalyze,
    AddAttention,  AddErrors,   AddPredict, AddEvaluate, AddExtend,
    AddList,       AddShow,     AddLogs,    AddCancel,   AddRetry,
    AddDelete,     AddHandOver, AddWorkers, AddQueue,    AddStorage,
    AddBackup,     AddAuth,     AddConfig,  AddDoctor,   AddMan,
    AddCompletion,
};

// Starts `lengthwise web` on a server without credentials, and prints the page's address, that of
// the experiment. The page ends with the process.
absl::StatusOr<std::unique_ptr<platform::ChildProcess>> StartWeb(Program& program,
                                                                 const std::string& server,
                                                                 const std::string& experiment);

// Parses the time of an option: "90d", or a format of absl::ParseDuration ("12h").
// INVALID_ARGUMENT if it is none or negative.
absl::StatusOr<absl::Duration> ParseTime(const std::string& option, const std::string& text);

// Adds a command of python/lengthwise/commands/definitions.json.
void AddPythonCommand(Command root, Program& program, const std::string& name,
                      Program::Action action);

// Names of the figures that `lengthwise plot` draws.
std::vector<std::string> FigureNames();

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_COMMANDS_H_
