#include "client/command_line/description.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace lengthwise::client {
namespace {

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

}  // namespace

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

CommandDescription Describe(const CLI::App& app) { return DescribeUnder(app, ""); }

}  // namespace lengthwise::client
