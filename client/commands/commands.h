// Lists all commands. To add a command, add a file to this folder, then declare and list its
// function here.
#ifndef LENGTHWISE_CLIENT_COMMANDS_COMMANDS_H_
#define LENGTHWISE_CLIENT_COMMANDS_COMMANDS_H_

#include <string>
#include <vector>

#include "client/commands/program.h"

namespace lengthwise::client {

void AddRun(CLI::App& app, Program& program);
void AddValidate(CLI::App& app, Program& program);
void AddSample(CLI::App& app, Program& program);
void AddCatalogueCommands(CLI::App& app, Program& program);
void AddSubmit(CLI::App& app, Program& program);
void AddWatch(CLI::App& app, Program& program);
void AddResults(CLI::App& app, Program& program);
void AddPlot(CLI::App& app, Program& program);
void AddReport(CLI::App& app, Program& program);
void AddExport(CLI::App& app, Program& program);
void AddCompare(CLI::App& app, Program& program);
void AddAttention(CLI::App& app, Program& program);
void AddAnalyze(CLI::App& app, Program& program);
void AddEvaluate(CLI::App& app, Program& program);
void AddExtend(CLI::App& app, Program& program);
void AddList(CLI::App& app, Program& program);
void AddShow(CLI::App& app, Program& program);
void AddCancel(CLI::App& app, Program& program);
void AddRetry(CLI::App& app, Program& program);
void AddDelete(CLI::App& app, Program& program);
void AddWorkers(CLI::App& app, Program& program);
// Adds `up` and `down` to `lengthwise workers`.
void AddFleetCommands(CLI::App& workers, Program& program);
void AddAuth(CLI::App& app, Program& program);
void AddConfig(CLI::App& app, Program& program);
void AddLogs(CLI::App& app, Program& program);
void AddStorage(CLI::App& app, Program& program);
void AddBackup(CLI::App& app, Program& program);
void AddDoctor(CLI::App& app, Program& program);
void AddCompletion(CLI::App& app, Program& program);
void AddMan(CLI::App& app, Program& program);

// In the order in which `lengthwise --help` lists them.
inline constexpr void (*kCommands[])(CLI::App&, Program&) = {
    AddRun,        AddValidate, AddSample,  AddCatalogueCommands,
    AddSubmit,     AddWatch,    AddResults, AddPlot,
    AddReport,     AddExport,   AddCompare, AddAnalyze,
    AddAttention,  AddEvaluate, AddExtend,  AddList,
    AddShow,       AddLogs,     AddCancel,  AddRetry,
    AddDelete,     AddWorkers,  AddStorage, AddBackup,
    AddAuth,       AddConfig,   AddDoctor,  AddMan,
    AddCompletion,
};

// Names of the figures that `lengthwise plot` draws.
std::vector<std::string> FigureNames();

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_COMMANDS_H_
