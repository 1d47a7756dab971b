#include "client/command_line/mistake.h"

#include <iterator>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "catalogue/suggestion.h"
#include "client/command_line/description.h"

namespace lengthwise::client {
namespace {

// "table, json or csv".
std::string Alternatives(const std::vector<std::string>& all) {
  if (all.size() < 2) return absl::StrJoin(all, "");
  return absl::StrCat(absl::StrJoin(all.begin(), std::prev(all.end()), ", "), " or ", all.back());
}

const CLI::App& Chosen(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands()[0];
  return *command;
}

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(one->get_name());
  }
  return names;
}

// Explains the first unexpected argument and suggests what the user probably meant.
std::string ExplainUnexpected(const CLI::App& app, const std::vector<std::string>& unexpected) {
  const CLI::App& command = Chosen(app);
  std::string given = unexpected[0];
  for (const std::string& argument : unexpected) {
    if (absl::StartsWith(argument, "-")) {
      given = argument.substr(0, argument.find('='));
      break;
    }
  }
  std::vector<std::string> accepted;
  if (absl::StartsWith(given, "-")) {
    for (const CLI::Option* option : command.get_options()) {
      for (const std::string& name : option->get_lnames()) accepted.push_back("--" + name);
    }
    return absl::StrCat("unknown option \"", given, "\"", catalogue::Suggestion(given, accepted));
  }
  accepted = CommandNames(command);
  if (accepted.empty()) return absl::StrCat("unexpected argument \"", given, "\"");
  return absl::StrCat("unknown command \"", given, "\"", catalogue::Suggestion(given, accepted));
}

// Returns the option or positional argument that the error is about. CLI11's message begins with
// its name, or has it after "Could not convert: ".
const CLI::Option* Culprit(const CLI::App& app, const std::string& message) {
  std::vector<const CLI::Option*> options = Chosen(app).get_options();
  for (const CLI::Option* option : app.get_options()) options.push_back(option);
  const CLI::Option* found = nullptr;
  size_t longest = 0;
  for (const CLI::Option* option : options) {
    // "--length" begins with "--l".
    const std::string name = option->get_name();
    if (name.size() <= longest) continue;
    if (absl::StartsWith(message, name) || absl::StrContains(message, absl::StrCat(": ", name))) {
      found = option;
      longest = name.size();
    }
  }
  return found;
}

std::string Expected(const OptionDescription& option) {
  if (!option.choices.empty()) return Alternatives(option.choices);
  if (!option.accepted.empty()) return option.accepted;
  return option.value == "N" ? "a number" : option.value;
}

std::string ExplainValue(const CLI::Option& option) {
  const OptionDescription described = Describe(option);
  const std::string& name = described.names[0];
  if (option.results().empty()) {
    return absl::StrCat(name, " needs a value: ", Expected(described));
  }
  // CLI11 does not say which of several values is wrong. It is usually the last.
  const std::string& given = option.results().back();
  std::string text = absl::StrCat(name, ": got \"", given, "\"");
  if (!described.choices.empty()) {
    const std::string near = catalogue::Suggestion(given, described.choices);
    return absl::StrCat(text, ", expected ", Alternatives(described.choices),
                        absl::StrContains(near, "did you mean") ? near : "");
  }
  return absl::StrCat(text, ", expected ", Expected(described));
}

std::string ExplainMissing(const CLI::App& command, const std::string& message) {
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_required() || option->count() > 0) continue;
    const OptionDescription described = Describe(*option);
    return absl::StrCat(described.positional ? described.value : described.names[0],
                        " is missing: ", described.help);
  }
  const std::vector<std::string> commands = CommandNames(command);
  return commands.empty() ? message
                          : absl::StrCat("a command is missing: expected ", Alternatives(commands));
}

}  // namespace

std::string ExplainMistake(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& command = Chosen(app);
  const std::string message = error.what();
  std::string text;
  if (const std::vector<std::string> unexpected = app.remaining(/*recurse=*/true);
      !unexpected.empty()) {
    text = ExplainUnexpected(app, unexpected);
  } else if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr) {
    text = ExplainMissing(command, message);
  } else if (const CLI::Option* option = Culprit(app, message);
             option != nullptr && (dynamic_cast<const CLI::ValidationError*>(&error) != nullptr ||
                                   dynamic_cast<const CLI::ConversionError*>(&error) != nullptr ||
                                   dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr)) {
    text = ExplainValue(*option);
  } else if (absl::StartsWith(message, ": ")) {
    // CLI11 does not name hidden options.
    text = "the option before the command needs a value";
  } else {
    text = message;
  }
  std::string path;
  for (const CLI::App* one = &command; one->get_parent() != nullptr; one = one->get_parent()) {
    path = absl::StrCat(one->get_name(), " ", path);
  }
  return absl::StrCat(text, "; see `lengthwise ", path, "--help`");
}

}  // namespace lengthwise::client
