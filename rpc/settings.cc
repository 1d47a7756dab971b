#include "rpc/settings.h"

#include <sys/stat.h>

#include <filesystem>
#include <iterator>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "catalogue/suggestion.h"
#include "platform/files.h"
#include "platform/status_macros.h"
#include "platform/user_directories.h"
#include "rpc/address.h"
#include "yaml-cpp/yaml.h"

namespace lengthwise::rpc {
namespace {

constexpr char kFileVariable[] = "LENGTHWISE_CONFIG";

bool IsPath(const SettingKind& kind) { return absl::string_view(kind.type) == "PATH"; }

std::string Of(const char* text) { return text == nullptr ? "" : text; }

// Expands "~/x" and resolves paths relative to the file's directory.
std::string Expand(const std::string& path, const std::string& file,
                   const Environment& environment) {
  if (path.empty() || path == "system" || path[0] == '/') return path;
  return (std::filesystem::path(file).parent_path() /
          platform::ExpandHome(path, environment("HOME")))
      .string();
}

absl::Status Wrong(const std::string& file, const YAML::Mark& mark, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(file, mark.is_null() ? "" : absl::StrCat(":", mark.line + 1), ": ", what));
}

absl::StatusOr<std::map<std::string, std::string>> ReadSettings(const std::string& file) {
  ASSIGN_OR_RETURN(const std::string text, platform::ReadFile(file));
  std::vector<std::string> names;
  names.reserve(std::size(kSettings));
  for (const SettingKind& kind : kSettings) names.push_back(kind.name);
  std::map<std::string, std::string> values;
  // yaml-cpp reports errors as exceptions. They are caught only here.
  try {
    const YAML::Node root = YAML::Load(text);
    if (root.IsNull()) return values;
    if (!root.IsMap()) {
      return Wrong(file, root.Mark(), "is not a list of settings such as \"server: HOST:PORT\"");
    }
    for (const auto& entry : root) {
      const std::string name = entry.first.as<std::string>();
      if (!absl::c_linear_search(names, name)) {
        return Wrong(
            file, entry.first.Mark(),
            absl::StrCat("unknown setting \"", name, "\"", catalogue::Suggestion(name, names)));
      }
      if (!entry.second.IsScalar()) {
        return Wrong(file, entry.second.Mark(), absl::StrCat(name, " is not one value"));
      }
      if (!values.emplace(name, entry.second.as<std::string>()).second) {
        return Wrong(file, entry.first.Mark(), absl::StrCat(name, " is set twice"));
      }
    }
  } catch (const YAML::Exception& error) {
    return Wrong(file, error.mark, error.msg);
  }
  return values;
}

}  // namespace

const Setting& Settings::operator[](absl::string_view name) const {
  static const Setting& none = *new Setting;
  const auto found = all.find(name);
  return found == all.end() ? none : found->second;
}

std::string SettingsFile(const Environment& environment) {
  if (const char* named = environment(kFileVariable)) return named;
  const std::string config_home = Of(environment("XDG_CONFIG_HOME"));
  if (absl::StartsWith(config_home, "/")) return config_home + "/lengthwise/config.yaml";
  const std::string home = Of(environment("HOME"));
  return home.empty() ? "" : home + "/.config/lengthwise/config.yaml";
}

absl::StatusOr<Settings> ResolveSettings(const std::map<std::string, std::string>& flags,
                                         const Environment& environment) {
  Settings settings;
  std::map<std::string, std::string> in_file;
  if (const std::string file = SettingsFile(environment); !file.empty()) {
    auto read = ReadSettings(file);
    if (read.ok()) {
      in_file = *std::move(read);
      settings.file = file;
    } else if (!absl::IsNotFound(read.status()) || environment(kFileVariable) != nullptr) {
      return read.status();
    }
  }
  for (const SettingKind& kind : kSettings) {
    Setting& setting = settings.all[kind.name];
    setting = {kind.fallback, "default"};
    if (const auto found = in_file.find(kind.name); found != in_file.end()) {
      setting.value =
          IsPath(kind) ? Expand(found->second, settings.file, environment) : found->second;
      setting.origin = settings.file;
    }
    if (const std::string value = Of(environment(kind.variable)); !value.empty()) {
      setting = {IsPath(kind) ? platform::ExpandHome(value, environment("HOME")) : value,
                 absl::StrCat("$", kind.variable)};
    }
    if (const auto found = flags.find(kind.name); found != flags.end() && !found->second.empty()) {
      setting = {found->second, absl::StrCat("--", kind.name)};
    }
  }
  const Setting& server = settings["server"];
  const bool is_url =
      absl::StrContains(server.value, "http://") || absl::StrContains(server.value, "https://");
  if (is_url || AddressesOf(server.value).empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the server \"", server.value, "\" (", server.origin,
        ") is not HOST:PORT, such as 127.0.0.1:7070, or a comma-separated list of them",
        is_url ? "; leave out http:// or https://" : ""));
  }
  const auto bound = in_file.find("server");
  if (bound != in_file.end() && bound->second != server.value) {
    for (const SettingKind& kind : kSettings) {
      Setting& setting = settings.all[kind.name];
      if (!kind.is_access || setting.origin != settings.file) continue;
      setting = {"", absl::StrCat(settings.file, " sets it for ", bound->second, " only")};
    }
  }
  return settings;
}

std::vector<std::pair<std::string, std::string>> EmptySettingsEnvironment() {
  std::vector<std::pair<std::string, std::string>> environment = {{kFileVariable, ""}};
  for (const SettingKind& kind : kSettings) environment.emplace_back(kind.variable, "");
  return environment;
}

}  // namespace lengthwise::rpc
