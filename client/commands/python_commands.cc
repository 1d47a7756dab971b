// The commands that the Python package runs. Their help and options stand in
// python/lengthwise/commands/definitions.json, of which Python makes its own command line.
#include <algorithm>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "client/commands/commands.h"
#include "client/commands/python_program.h"
#include "client/connection/private_service.h"
#include "client/display/chart.h"
#include "client/display/terminal.h"
#include "nlohmann/json.hpp"
#include "platform/status_macros.h"

namespace lengthwise::client {
namespace {

using Json = nlohmann::ordered_json;

const Json& Definition(const std::string& command) {
  static const Json& definitions = *new Json(Json::parse(kPythonCommands));
  return definitions[command];
}

std::vector<std::string> Keys(const Json& object) {
  std::vector<std::string> keys;
  for (const auto& entry : object.items()) keys.push_back(entry.key());
  return keys;
}

std::string Joined(const Json& lines, const char* separator = "\n") {
  return absl::StrJoin(lines.get<std::vector<std::string>>(), separator);
}

// Returns one line per figure: "  accuracy_by_length     accuracy at ...".
std::string FigureList() {
  size_t widest = 0;
  for (const std::string& name : FigureNames()) widest = std::max(widest, name.size());
  std::vector<std::string> lines;
  for (const auto& figure : Definition("plot")["figures"].items()) {
    lines.push_back(absl::StrCat("  ", PadRight(figure.key(), static_cast<int>(widest) + 1),
                                 figure.value().get<std::string>()));
  }
  return absl::StrJoin(lines, "\n");
}

void AddOption(Command command, const Json& definition, const Json& option) {
  const auto usage = option["usage"].get<std::string>();
  const std::string type = option.value("type", "");
  std::string help = option.value("help", "");
  if (option.contains("hidden")) return;
  if (usage == "--select") return Program::AddSelectOption(command);
  if (type == "flag") return command.AddFlag(usage, help);
  std::vector<std::string> choices;
  if (option.contains("choices") && option["choices"].is_array()) {
    choices = option["choices"].get<std::vector<std::string>>();
  } else if (option.contains("choices")) {
    const Json& described = definition[option["choices"].get<std::string>()];
    choices = Keys(described);
    for (const std::string& name : choices) {
      absl::StrAppend(&help, help.empty() ? "" : "; ", name, ": ",
                      described[name].get<std::string>());
    }
  }
  const bool several = option.contains("several");
  const Option added = several || type == "texts"
                           ? command.AddOption<std::vector<std::string>>(usage, help)
                       : type == "count" ? command.AddOption<int32_t>(usage, help).Positive()
                       : type == "real"  ? command.AddOption<double>(usage, help)
                                         : command.AddOption(usage, help);
  if (several) added.OneByOne();
  if (option.contains("required")) added.Required();
  if (!choices.empty()) added.OneOf(choices);
}

void AddOptions(Command command, const Json& definition) {
  for (const Json& option : definition["options"]) AddOption(command, definition, option);
}

void AddCommonOptions(Command command, Program& program, const Json& definition) {
  program.AddServerOrDataDirOptions(command);
  if (definition.contains("output")) {
    program.AddOutputOption(command, definition["output"].get<std::vector<std::string>>());
  }
}

// Runs Python's command. Exports show their progress.
absl::StatusOr<int> RunCommand(Program& program, std::vector<std::string> command) {
  if (command[0] == "export" && program.redraws()) command.emplace_back("--progress");
  return program.RunPython(program.Given(std::move(command)));
}

absl::StatusOr<int> Plot(Program& program) {
  std::vector<std::string> command = program.Given({"plot"});
  if (std::erase(command, "--terminal") == 0) return program.RunPython(std::move(command));
  program.output = "json";
  std::ostringstream figure;
  const auto code = program.RunPython(std::move(command), /*asks_server=*/true, &figure);
  if (!code.ok() || *code != kSuccess) return code;
  ASSIGN_OR_RETURN(const auto text, RenderFigure(figure.str(), program.width(), program.palette()));
  program.out() << text;
  return kSuccess;
}

// Shows experiments in a browser.
absl::StatusOr<int> Web(Program& program) {
  program.ChooseDirectoryToRead();
  if (program.data_dir.empty()) return program.RunPython(program.Given({"web"}));
  // The page outlives the server of a run: Python asks it, and then its own.
  ASSIGN_OR_RETURN(const std::string server,
                   FindProgram("lengthwise_server", "server", "LENGTHWISE_SERVER_BINARY"));
  setenv("LENGTHWISE_SERVER_BINARY", server.c_str(), 1);
  return program.RunPython(program.Given({"web", absl::StrCat("--data_dir=", program.data_dir)}),
                           /*asks_server=*/false);
}

void AddAnalyze(Command root, Program& program) {
  const Json& definition = Definition("analyze");
  const Command analyze = root.AddCommand("analyze", definition["help"].get<std::string>());
  analyze.Group(kServerGroup).RequireCommand();
  analyze.Footer(absl::StrCat("Examples:\n  ", Joined(definition["examples"], "\n  "), "\n",
                              Joined(definition["remark"])));
  for (const auto& entry : definition["analyses"].items()) {
    const std::string name = entry.key();
    const Json& analysis = entry.value();
    const Command command =
        program.AddCommand(analyze, name, analysis["help"].get<std::string>(), kNestedGroup,
                           Joined(analysis["examples"]), [&program, name] {
                             return RunCommand(program, {"analyze", name});
                           });
    AddOptions(command, definition);
    AddOptions(command, analysis);
    AddCommonOptions(command, program, definition);
  }
}

}  // namespace

std::vector<std::string> FigureNames() { return Keys(Definition("plot")["figures"]); }

absl::StatusOr<std::unique_ptr<platform::ChildProcess>> StartWeb(Program& program,
                                                                 const std::string& server,
                                                                 const std::string& experiment) {
  std::string address;
  ASSIGN_OR_RETURN(auto page, StartPython({"web", absl::StrCat("--show=", experiment)},
                                          {.server = server}, address));
  // What follows the address is about Ctrl-C, which here ends the run.
  (program.output_is_table() ? program.out() : program.err())
      << address.substr(0, address.find(' ')) << "    read-only; ends with the run\n"
      << std::flush;
  return page;
}

void AddPython(Command root, Program& program) {
  const auto add = [&](const std::string& name, Program::Action action) {
    const Json& definition = Definition(name);
    const std::string examples =
        absl::StrReplaceAll(Joined(definition["examples"]), {{"{figures}", FigureList()}});
    const Command command = program.AddCommand(root, name, definition["help"].get<std::string>(),
                                               kServerGroup, examples, std::move(action));
    AddOptions(command, definition);
    AddCommonOptions(command, program, definition);
  };
  add("plot", [&program] { return Plot(program); });
  add("web", [&program] { return Web(program); });
  add("report", [&program] { return RunCommand(program, {"report"}); });
  add("publish", [&program] { return RunCommand(program, {"export", "--format=site"}); });
  add("export", [&program] { return RunCommand(program, {"export"}); });
  add("compare", [&program] { return RunCommand(program, {"compare"}); });
  AddAnalyze(root, program);
}

}  // namespace lengthwise::client
