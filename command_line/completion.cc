#include "command_line/completion.h"

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace lengthwise::command_line {
namespace {

// Accepts "--data-dir" for "--data_dir", as the program does.
std::string OptionName(const std::string& word) {
  std::string name = word.substr(0, word.find('='));
  if (!absl::StartsWith(name, "--")) return name;
  return absl::StrCat("--", absl::StrReplaceAll(name.substr(2), {{"-", "_"}}));
}

const OptionDescription* Find(const CommandDescription& command, const std::string& word) {
  const std::string wanted = OptionName(word);
  for (const OptionDescription& option : command.options) {
    if (option.positional) continue;
    for (const std::string& name : option.names) {
      if (name == wanted) return &option;
    }
  }
  return nullptr;
}

std::string FirstSentence(const std::string& text) {
  const size_t end = text.find_first_of(".;");
  return text.substr(0, end);
}

void AddValue(const CommandDescription& command, const OptionDescription& option,
              Completion& completion) {
  if (option.choices.empty()) {
    completion.kind = KindOf(command.full_name, option);
    return;
  }
  for (const std::string& choice : option.choices) {
    if (absl::StartsWith(choice, completion.prefix)) {
      completion.candidates.push_back({completion.lead + choice});
    }
  }
}

void AddOptions(const CommandDescription& command, Completion& completion) {
  const std::string prefix = OptionName(completion.prefix);
  for (const OptionDescription& option : command.options) {
    if (option.positional || !absl::StartsWith(option.names[0], prefix)) continue;
    completion.candidates.push_back({option.names[0], FirstSentence(option.help)});
  }
}

// Completes the positional argument `index`. If the command takes no more of them, offers its
// options if `or_options`, and otherwise nothing.
void AddPositional(const CommandDescription& command, size_t index, bool or_options,
                   Completion& completion) {
  size_t i = 0;
  for (const OptionDescription& option : command.options) {
    if (!option.positional) continue;
    if (i == index || (i < index && option.repeated)) return AddValue(command, option, completion);
    ++i;
  }
  if (or_options) AddOptions(command, completion);
}

}  // namespace

ValueKind KindOf(const std::string& full_name, const OptionDescription& option) {
  if (!option.takes_value || !option.choices.empty()) return ValueKind::kFree;
  // Arguments whose name alone does not determine their kind.
  static const auto& kOfCommand = *new std::map<std::string, std::map<std::string, ValueKind>>{
      {"lengthwise tasks", {{"name", ValueKind::kTask}}},
      {"lengthwise encodings", {{"name", ValueKind::kEncoding}}},
      {"lengthwise networks", {{"name", ValueKind::kNetwork}}},
      {"lengthwise optimizers", {{"name", ValueKind::kOptimizer}}},
      {"lengthwise schedules", {{"name", ValueKind::kSchedule}}},
      {"lengthwise protocols", {{"name", ValueKind::kProtocol}}},
      {"lengthwise show", {{"name", ValueKind::kExperimentOrTrial}}},
      {"lengthwise cancel", {{"name", ValueKind::kExperimentOrTrial}}},
      {"lengthwise retry", {{"name", ValueKind::kExperimentOrTrial}}},
      {"lengthwise plot", {{"--trial", ValueKind::kFree}}},
      {"lengthwise analyze loss_ratios", {{"--reference", ValueKind::kNetwork}}},
      {"lengthwise backup", {{"name", ValueKind::kFree}}},
      {"lengthwise workers up",
       {{"sbatch_args", ValueKind::kFree}, {"--experiment", ValueKind::kExperiment}}},
      {"lengthwise auth revoke-token", {{"token", ValueKind::kFree}}},
      {"lengthwise auth create-token", {{"principal", ValueKind::kFree}}},
  };
  if (const auto command = kOfCommand.find(full_name); command != kOfCommand.end()) {
    const auto found = command->second.find(option.names[0]);
    if (found != command->second.end()) return found->second;
  }
  static const auto& kOfName = *new std::map<std::string, ValueKind>{
      {"spec", ValueKind::kFile},
      {"command", ValueKind::kCommand},
      {"task", ValueKind::kTask},
      {"--task", ValueKind::kTask},
      {"--encoding", ValueKind::kEncoding},
      {"--reference", ValueKind::kEncoding},
      {"--network", ValueKind::kNetwork},
      {"--figure", ValueKind::kFigure},
      {"--compare", ValueKind::kPublishedTable},
      {"experiment", ValueKind::kExperiment},
      {"first", ValueKind::kExperiment},
      {"second", ValueKind::kExperiment},
      {"experiments", ValueKind::kExperimentOrTrial},
      {"trial", ValueKind::kTrial},
  };
  if (const auto found = kOfName.find(option.names[0]); found != kOfName.end()) {
    return found->second;
  }
  if (option.value == "FILE" || option.value == "PATH") return ValueKind::kFile;
  if (option.value == "DIR") return ValueKind::kDirectory;
  static const auto& kFreeValues = *new std::set<std::string>{
      "C",         "N",    "K",    "S",      "L",          "H",      "DEVICE",
      "HOST:PORT", "ID",   "LIST", "NAME",   "NAME=VALUE", "PIXELS", "RATE",
      "SHARE",     "TEXT", "TIME", "TOKENS", "WORKER"};
  return kFreeValues.count(option.value) > 0 ? ValueKind::kFree : ValueKind::kUnknown;
}

Completion Complete(const CommandDescription& program, const std::vector<std::string>& words) {
  Completion completion;
  const CommandDescription* command = &program;
  const OptionDescription* pending = nullptr;
  size_t positionals = 0;
  bool only_positionals = false;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (pending != nullptr) {
      completion.given[pending->names[0]] = word;
      pending = nullptr;
    } else if (word == "--" && !only_positionals) {
      only_positionals = true;
    } else if (word.size() > 1 && word[0] == '-' && !only_positionals) {
      const OptionDescription* option = Find(*command, word);
      if (option == nullptr || !option->takes_value) continue;
      if (const size_t equals = word.find('='); equals != std::string::npos) {
        completion.given[option->names[0]] = word.substr(equals + 1);
      } else {
        pending = option;
      }
    } else {
      const CommandDescription* next = nullptr;
      for (const CommandDescription& one : command->commands) {
        if (one.name == word) next = &one;
      }
      if (next != nullptr) {
        command = next;
        positionals = 0;
      } else {
        ++positionals;
      }
    }
  }
  completion.prefix = words.empty() ? "" : words.back();
  if (pending != nullptr) {
    AddValue(*command, *pending, completion);
  } else if (!only_positionals && absl::StartsWith(completion.prefix, "-")) {
    const size_t equals = completion.prefix.find('=');
    if (equals == std::string::npos) {
      AddOptions(*command, completion);
    } else if (const OptionDescription* option = Find(*command, completion.prefix);
               option != nullptr && option->takes_value) {
      completion.lead = completion.prefix.substr(0, equals + 1);
      completion.prefix = completion.prefix.substr(equals + 1);
      AddValue(*command, *option, completion);
    }
  } else if (!command->commands.empty()) {
    // An unknown command has no completions.
    if (positionals > 0) return completion;
    for (const CommandDescription& one : command->commands) {
      if (absl::StartsWith(one.name, completion.prefix)) {
        completion.candidates.push_back({one.name, FirstSentence(one.help)});
      }
    }
  } else {
    AddPositional(*command, positionals, !only_positionals, completion);
  }
  return completion;
}

}  // namespace lengthwise::command_line
