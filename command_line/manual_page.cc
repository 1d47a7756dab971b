#include <set>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "command_line/description.h"
#include "rpc/settings.h"

namespace lengthwise::command_line {
namespace {

// Escapes text so that roff prints it verbatim: backslashes, hyphens that can be copied, and lines
// that look like roff requests.
std::string Escape(absl::string_view text) {
  std::string escaped = absl::StrReplaceAll(text, {{"\\", "\\e"}, {"-", "\\-"}});
  if (absl::StartsWith(escaped, ".") || absl::StartsWith(escaped, "'")) escaped.insert(0, "\\&");
  return escaped;
}

std::string Bold(absl::string_view text) { return absl::StrCat("\\fB", Escape(text), "\\fR"); }
std::string Italic(absl::string_view text) { return absl::StrCat("\\fI", Escape(text), "\\fR"); }

void Heading(std::string& page, absl::string_view title) {
  absl::StrAppend(&page, ".SH ", absl::AsciiStrToUpper(title), "\n");
}

void Item(std::string& page, const std::string& head, const std::string& body) {
  absl::StrAppend(&page, ".TP\n", head, "\n", body.empty() ? "\\&" : body, "\n");
}

std::string Usage(const OptionDescription& option) {
  std::string usage = Italic(option.value);
  if (!option.positional) usage = absl::StrCat(Bold(option.names[0]), " ", usage);
  if (option.repeated && option.positional) absl::StrAppend(&usage, " ...");
  return option.required ? usage : absl::StrCat("[", usage, "]");
}

void Synopsis(std::string& page, const CommandDescription& command) {
  Heading(page, "Synopsis");
  std::vector<std::string> parts = {Bold(command.full_name)};
  for (const OptionDescription& option : command.options) {
    if (option.required && !option.positional) parts.push_back(Usage(option));
  }
  parts.push_back(absl::StrCat("[", Italic("OPTION"), " ...]"));
  for (const OptionDescription& option : command.options) {
    if (option.positional) parts.push_back(Usage(option));
  }
  if (!command.commands.empty()) parts.push_back(absl::StrCat(Italic("COMMAND"), " ..."));
  absl::StrAppend(&page, absl::StrJoin(parts, " "), "\n");
}

void Option(std::string& page, const OptionDescription& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back(Bold(name));
  std::string head = absl::StrJoin(names, ", ");
  if (option.positional) {
    head = Italic(option.value);
  } else if (option.takes_value) {
    absl::StrAppend(&head, " ", Italic(option.value));
  }
  std::string body = Escape(option.help);
  const auto add = [&](const std::string& sentence) {
    absl::StrAppend(&body, body.empty() || absl::EndsWith(body, ".") ? " " : ". ", sentence);
  };
  if (!option.choices.empty()) {
    std::vector<std::string> choices;
    for (const std::string& choice : option.choices) choices.push_back(Bold(choice));
    add(absl::StrCat("Accepted: ", absl::StrJoin(choices, ", "), "."));
  }
  if (!option.accepted.empty()) add(absl::StrCat("Accepted: ", Escape(option.accepted), "."));
  if (!option.fallback.empty()) add(absl::StrCat("Default: ", Bold(option.fallback), "."));
  Item(page, head, std::string(absl::StripLeadingAsciiWhitespace(body)));
}

void Options(std::string& page, const CommandDescription& command) {
  bool positionals = false;
  for (const OptionDescription& option : command.options) {
    if (!option.positional) continue;
    if (!positionals) Heading(page, "Arguments");
    positionals = true;
    Option(page, option);
  }
  std::vector<std::string> groups;
  std::set<std::string> seen;
  for (const OptionDescription& option : command.options) {
    if (!option.positional && seen.insert(option.group).second) groups.push_back(option.group);
  }
  for (const std::string& group : groups) {
    Heading(page, group);
    for (const OptionDescription& option : command.options) {
      if (!option.positional && option.group == group) Option(page, option);
    }
  }
}

// Lines such as "Examples:" become headings; indented lines stay verbatim.
void Footer(std::string& page, const std::string& footer) {
  bool verbatim = false;
  const std::vector<std::string> lines = absl::StrSplit(footer, '\n');
  const auto set = [&](bool wanted) {
    if (verbatim != wanted) absl::StrAppend(&page, wanted ? ".RS 4\n.nf\n" : ".fi\n.RE\n");
    verbatim = wanted;
  };
  for (const std::string& line : lines) {
    const bool indented = absl::StartsWith(line, "  ");
    if (line.empty()) {
      set(false);
    } else if (indented) {
      set(true);
      absl::StrAppend(&page, Escape(line.substr(2)), "\n");
    } else if (absl::EndsWith(line, ":") && !absl::StrContains(line, ' ')) {
      set(false);
      Heading(page, line.substr(0, line.size() - 1));
    } else {
      set(false);
      absl::StrAppend(&page, page.find(".SH NOTES\n") == std::string::npos ? ".SH NOTES\n" : "",
                      Escape(line), "\n");
    }
  }
  set(false);
}

void Program(std::string& page) {
  Heading(page, "Environment");
  for (const rpc::SettingKind& kind : rpc::kSettings) {
    Item(page, Bold(kind.variable), Escape(kind.help));
  }
  Item(page, Bold("LENGTHWISE_CONFIG"),
       "Path of another configuration file. Empty: no configuration file.");
  Item(page, Bold("NO_COLOR"), "If set, output has no colours.");
  Item(page, Bold("BROWSER"), "Program that shows pictures and reports.");
  Heading(page, "Files");
  Item(page, Bold("~/.config/lengthwise/config.yaml"),
       Escape("Settings: server, token_file, tls_ca, tls_certificate, tls_key, tls_server_name and "
              "runs_dir. `lengthwise config` shows the settings in effect."));
  Item(page, Bold("~/.local/share/lengthwise/runs"),
       Escape("Experiments and logs of `lengthwise run`."));
  Heading(page, "Exit status");
  Item(page, Bold("0"), "Success.");
  Item(page, Bold("1"),
       "Failure, or an experiment that was run or watched has failed or cancelled trials.");
  Item(page, Bold("2"), "Invalid command line or specification.");
  Item(page, Bold("3"), "The server is unreachable.");
  Item(page, Bold("130"), "Interrupted.");
}

}  // namespace

std::string ManualPageName(const CommandDescription& command) {
  return absl::StrReplaceAll(command.full_name, {{" ", "-"}});
}

std::string ManualPage(const CommandDescription& command, const std::string& version) {
  const std::string name = ManualPageName(command);
  std::string page = absl::StrCat(".TH \"", absl::AsciiStrToUpper(name), "\" 1 \"\" \"lengthwise ",
                                  version, "\" \"Lengthwise\"\n");
  Heading(page, "Name");
  absl::StrAppend(&page, Escape(name), " \\- ", Escape(command.help), "\n");
  Synopsis(page, command);
  if (!command.commands.empty()) {
    Heading(page, "Commands");
    for (const CommandDescription& one : command.commands) {
      Item(page, Bold(one.name), Escape(one.help));
    }
  }
  Options(page, command);
  Footer(page, command.footer);
  const bool program = command.name == command.full_name;
  if (program) Program(page);
  Heading(page, "See also");
  if (!program) {
    absl::StrAppend(&page, Bold(command.full_name.substr(0, command.full_name.find(' '))), "(1)\n");
    return page;
  }
  std::vector<std::string> pages;
  for (const CommandDescription& one : command.commands) {
    pages.push_back(absl::StrCat(Bold(ManualPageName(one)), "(1)"));
  }
  absl::StrAppend(&page, absl::StrJoin(pages, ",\n"), "\n");
  return page;
}

}  // namespace lengthwise::command_line
