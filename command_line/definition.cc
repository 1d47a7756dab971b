#include "command_line/definition.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <sstream>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "catalogue/suggestion.h"
#include "platform/printable_text.h"
#include "platform/user_directories.h"

namespace absl {

// CLI11 finds it by its name and argument.
static bool lexical_cast(const std::string& text, Duration& value) {
  return ParseDuration(text, &value);
}

}  // namespace absl

namespace lengthwise::command_line {
namespace {

using catalogue::Alternatives;
using Text = const std::string&;

// CLI11 writes "FORMAT:{table,json}" and "N:INT in [1 - 64]": a value's name and the accepted
// values.
void ReadTypeName(const std::string& text, OptionDescription& option) {
  const size_t colon = text.find(':');
  option.value = text.substr(0, colon);
  if (colon == std::string::npos) return;
  absl::string_view accepted = absl::string_view(text).substr(colon + 1);
  if (absl::ConsumePrefix(&accepted, "{") && absl::ConsumeSuffix(&accepted, "}")) {
    option.choices = absl::StrSplit(std::string(accepted), ',');
  } else if (accepted == "NONNEGATIVE") {
    option.accepted = "a number, 0 or more";
  } else if (accepted == "POSITIVE") {
    option.accepted = "a number above 0";
  } else if (const size_t range = accepted.find(" in ["); range != absl::string_view::npos) {
    accepted.remove_prefix(range + 5);
    absl::ConsumeSuffix(&accepted, "]");
    option.accepted =
        absl::StrCat("a number from ", absl::StrReplaceAll(accepted, {{" - ", " to "}}));
  } else if (absl::StrContains(accepted, ' ')) {
    option.accepted = std::string(accepted);
  } else {
    option.value = text;  // "HOST:PORT" is a name
  }
}

OptionDescription Describe(const CLI::Option& option) {
  OptionDescription described;
  ReadTypeName(option.get_type_name(), described);
  described.positional = option.get_positional();
  if (described.positional) {
    described.names.push_back(option.get_name(/*positional=*/true));
    if (described.value.empty()) described.value = absl::AsciiStrToUpper(described.names[0]);
  } else {
    for (const std::string& name : option.get_lnames()) described.names.push_back("--" + name);
    for (const std::string& name : option.get_snames()) described.names.push_back("-" + name);
  }
  described.help = option.get_description();
  described.fallback = option.get_default_str();
  described.group = option.get_group();
  described.required = option.get_required();
  described.takes_value = option.get_items_expected_max() != 0;
  described.repeated = option.get_items_expected_max() > 1;
  if (!described.takes_value) described.value.clear();
  return described;
}

CommandDescription DescribeUnder(const CLI::App& app, const std::string& parent) {
  CommandDescription command{
      .name = app.get_name(),
      .full_name = absl::StrCat(parent, parent.empty() ? "" : " ", app.get_name()),
      .help = app.get_description(),
      .footer = app.get_footer(),
      .group = app.get_group()};
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_group().empty()) command.options.push_back(Describe(*option));
  }
  for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; })) {
    command.commands.push_back(DescribeUnder(*one, command.full_name));
  }
  return command;
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
  if (option.value == "N") return "a number";
  if (option.value == "DIR") return "a directory";
  if (option.value == "DURATION") return "a duration such as 30s or 10m";
  if (option.value == "LIST") return "numbers such as 1,2,5 or 10..19";
  return option.value == "TOKENS" ? "tokens or numbers such as 0,1,1" : option.value;
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

// Explains `error`, with which `app` has just rejected a command line. CLI11's own messages do not
// name the value given and often not the accepted values.
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
  for (const CLI::App* one = &command; one != nullptr; one = one->get_parent()) {
    path = absl::StrCat(one->get_name(), " ", path);
  }
  return platform::PrintableText(absl::StrCat(text, "; see `", path, "--help`"));
}

// CLI11's mark of options that configuration files may have, which no program here reads. Options
// without a variable are those that have this value.
constexpr bool kWithoutVariable = false;

// The parts of a usage such as "-o,--out FILE", "trial" or "[trial]".
struct UsageParts {
  explicit UsageParts(Text usage) : is_required(absl::ascii_isalpha(usage[0])) {
    const std::vector<std::string> parts =
        absl::StrSplit(usage, absl::ByAnyChar(" []"), absl::SkipEmpty());
    names = parts[0];
    if (parts.size() > 1) placeholder = parts[1];
  }

  CLI::Option* Describe(CLI::Option* option) const {
    for (const char* path : {"PATH", "FILE", "DIR"}) {
      if (!absl::StartsWith(placeholder, path)) continue;
      // Shells do not expand that of --data_dir=~/runs.
      option->transform([](Text given) { return platform::ExpandHome(given); });
    }
    return option->required(is_required)->type_name(placeholder);
  }

  bool is_required;
  std::string names;
  std::string placeholder;
};

// Returns "--data_dir=x" for "--data-dir=x".
std::string WithUnderscores(const std::string& argument) {
  if (!absl::StartsWith(argument, "--")) return argument;
  const size_t end = std::min(argument.find('='), argument.size());
  return absl::StrCat("--", absl::StrReplaceAll(argument.substr(2, end - 2), {{"-", "_"}}),
                      argument.substr(end));
}

}  // namespace

Option Option::Required() const { return Option(option_->required()); }
Option Option::Group(Text heading) const { return Option(option_->group(heading)); }
Option Option::ShowDefault() const { return Option(option_->capture_default_str()); }
Option Option::Environment(Text variable) const { return Option(option_->envname(variable)); }
Option Option::Needs(Option other) const { return Option(option_->needs(other.option_)); }

Option Option::OneByOne() const { return Option(option_->allow_extra_args(false)); }
Option Option::SeparatedBy(char delimiter) const {
  return Option(option_->delimiter(delimiter)).OneByOne();
}

Option Option::OneOf(const std::vector<std::string>& choices) const {
  return Option(option_->check(CLI::IsMember(choices)));
}
Option Option::Positive() const { return Option(option_->check(CLI::PositiveNumber)); }
Option Option::NonNegative() const { return Option(option_->check(CLI::NonNegativeNumber)); }
Option Option::Range(int min, int max) const {
  return Option(option_->check(CLI::Range(min, max)));
}
Option Option::Range(size_t min, size_t max) const {
  return Option(option_->check(CLI::Range(min, max)));
}
Option Option::Range(int64_t min, int64_t max) const {
  return Option(option_->check(CLI::Range(min, max)));
}
Option Option::NotEmpty() const {
  return Check([](Text text) { return text.empty() ? "empty" : std::string(); });
}
Option Option::Check(std::string (*check)(Text), Text accepted) const {
  return Option(option_->check(CLI::Validator(check, accepted)));
}

Command Command::AddCommand(Text name, Text help) const {
  return Command(app_->add_subcommand(name, help));
}
Command Command::Group(Text heading) const { return Command(app_->group(heading)); }
Command Command::Footer(Text text) const { return Command(app_->footer(text)); }
Command Command::RequireCommand() const { return Command(app_->require_subcommand(1)); }

Command Command::OnChosen(std::function<void()> chosen) const {
  // CLI11 also calls the function of a command above the chosen one.
  return Command(app_->callback([app = app_, chosen = std::move(chosen)] {
    if (app->get_subcommands().empty()) chosen();
  }));
}

template <typename T>
Option Command::AddOption(Text usage, T& value, Text help) const {
  const UsageParts parts(usage);
  return Option(parts.Describe(app_->add_option(parts.names, value, help)));
}

template <typename T>
Option Command::AddOption(Text usage, Text help) const {
  const UsageParts parts(usage);
  CLI::Option* option = app_->add_option_function<T>(
      parts.names, [](const T&) {}, help);
  return Option(parts.Describe(option)->configurable(kWithoutVariable));
}

template Option Command::AddOption(Text, std::string&, Text) const;
template Option Command::AddOption(Text, std::vector<std::string>&, Text) const;
template Option Command::AddOption(Text, int32_t&, Text) const;
template Option Command::AddOption(Text, std::optional<int32_t>&, Text) const;
template Option Command::AddOption(Text, int64_t&, Text) const;
template Option Command::AddOption(Text, std::optional<int64_t>&, Text) const;
template Option Command::AddOption(Text, uint64_t&, Text) const;
template Option Command::AddOption(Text, std::optional<uint64_t>&, Text) const;
template Option Command::AddOption(Text, double&, Text) const;
template Option Command::AddOption(Text, std::optional<double>&, Text) const;
template Option Command::AddOption(Text, std::vector<double>&, Text) const;
template Option Command::AddOption(Text, absl::Duration&, Text) const;
template Option Command::AddOption<std::string>(Text, Text) const;
template Option Command::AddOption<std::vector<std::string>>(Text, Text) const;
template Option Command::AddOption<int32_t>(Text, Text) const;
template Option Command::AddOption<double>(Text, Text) const;

void Command::AddFlag(Text names, bool& value, Text help) const {
  app_->add_flag(names, value, help);
}
void Command::AddFlag(Text names, Text help) const {
  app_->add_flag(names, help)->configurable(kWithoutVariable);
}

std::vector<std::string> Command::Given() const {
  std::vector<std::string> given;
  std::vector<std::string> positional;
  for (const CLI::Option* option : app_->get_options()) {
    if (option->get_configurable() != kWithoutVariable || option->count() == 0) continue;
    const OptionDescription described = command_line::Describe(*option);
    if (!described.takes_value) {
      given.push_back(described.names[0]);
      continue;
    }
    for (const std::string& value : option->results()) {
      if (described.positional) {
        positional.push_back(value);
      } else {
        given.push_back(absl::StrCat(described.names[0], "=", value));
      }
    }
  }
  if (!positional.empty()) given.emplace_back("--");
  given.insert(given.end(), positional.begin(), positional.end());
  return given;
}

bool Command::Has(Text option) const { return app_->count(option) > 0; }
CommandDescription Command::Describe() const { return DescribeUnder(*app_, ""); }

CommandLine::CommandLine(Text program, Text help)
    : app_(std::make_unique<CLI::App>(help, program)) {
  app_->get_formatter()->column_width(32);
}

CommandLine::CommandLine(CommandLine&&) noexcept = default;
CommandLine::~CommandLine() = default;

void CommandLine::SetVersion(std::function<std::string()> text, Text help) {
  app_->set_version_flag("--version", std::move(text), help);
}

std::string CommandLine::Help() const { return app_->help(); }

absl::StatusOr<std::string> CommandLine::Parse(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = arguments;
  std::transform(words.begin(), std::find(words.begin(), words.end(), "--"), words.begin(),
                 WithUnderscores);
  if (!words.empty() && words[0] == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  // CLI11 reads the arguments from the back.
  std::reverse(words.begin(), words.end());
  std::ostringstream text;
  try {
    app_->parse(words);
  } catch (const CLI::Success& request) {  // --help, --version
    app_->exit(request, text, text);
  } catch (const CLI::ParseError& error) {
    return absl::InvalidArgumentError(ExplainMistake(*app_, error));
  }
  return text.str();
}

}  // namespace lengthwise::command_line
