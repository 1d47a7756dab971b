#include "client/commands/specification_file.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "catalogue/entry.h"
#include "catalogue/suggestion.h"
#include "client/display/numbers.h"
#include "models/networks/catalogue.h"
#include "nlohmann/json.hpp"
#include "platform/files.h"
#include "platform/printable_text.h"
#include "platform/sha256.h"
#include "platform/status_macros.h"
#include "platform/user_directories.h"
#include "specification/catalogues.h"
#include "specification/checks.h"
#include "specification/components.h"
#include "specification/examples.h"
#include "specification/parse.h"
#include "specification/resolve.h"
#include "tasks/catalogue.h"
#include "tasks/examples/contents.h"
#include "tasks/examples/entries.h"

namespace lengthwise::client {
namespace {

// Suggests a file in the folder of `path` with a similar name, of those that are specifications or
// are not, or `otherwise`.
std::string DidYouMean(const std::string& path, bool specifications, const char* otherwise) {
  const std::filesystem::path given(path);
  std::vector<std::string> names;
  std::error_code error;
  const std::filesystem::path directory = given.has_parent_path() ? given.parent_path() : ".";
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    std::error_code unknown;
    if (entry.is_regular_file(unknown) &&
        specification::FormatOfFile(entry.path().string()).ok() == specifications) {
      names.push_back(entry.path().filename().string());
    }
  }
  const std::string suggestion = catalogue::Suggestion(given.filename().string(), names);
  return absl::StrContains(suggestion, "did you mean") ? suggestion : otherwise;
}

}  // namespace

std::string ReadySpecification(const std::string& name) {
  std::error_code error;
  if (specification::FormatOfFile(name).ok() || std::filesystem::is_regular_file(name, error)) {
    return "";
  }
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  std::vector<std::filesystem::path> places = {self.parent_path().parent_path() /
                                               "share/lengthwise/experiments"};
  for (auto folder = std::filesystem::current_path(error); !folder.empty();
       folder = folder.has_relative_path() ? folder.parent_path() : "") {
    // Not a folder of the user's own that has this name.
    if (std::filesystem::exists(folder / "experiments/published/papers.json", error)) {
      places.push_back(folder / "experiments");
    }
  }
  for (const std::filesystem::path& place : places) {
    const std::filesystem::path file = place / (name + ".yaml");
    if (std::filesystem::is_regular_file(file, error)) return file.string();
  }
  return "";
}

absl::StatusOr<v1::SpecificationText> ReadSpecification(const std::string& path) {
  const int64_t most_bytes = specification::Limits().max_text_bytes;
  v1::SpecificationText text;
  if (path == "-") {
    text.set_format(v1::SpecificationText::YAML);
    std::string& read = *text.mutable_text();
    // Up to a NUL byte, if the program that gives it keeps the input open (--until_eof).
    read.resize(most_bytes + 2);
    std::cin.get(read.data(), most_bytes + 2, '\0');
    read.resize(static_cast<size_t>(std::cin.gcount()));
    if (static_cast<int64_t>(read.size()) <= most_bytes) return text;
    return absl::InvalidArgumentError(absl::StrCat("standard input has more than ", most_bytes,
                                                   " bytes, the most of a specification"));
  }
  struct stat status;
  if (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read ", path, " (it is a directory); name a file in it"));
  }
  ASSIGN_OR_RETURN(const auto format, specification::FormatOfFile(path));
  ASSIGN_OR_RETURN(
      *text.mutable_text(), platform::ReadFile(path, most_bytes),
      absl::InvalidArgumentError(absl::StrCat(
          _.message(),
          absl::IsNotFound(_)
              ? DidYouMean(path, /*specifications=*/true, "; name a file, or - for standard input")
          : absl::IsPermissionDenied(_)
              ? absl::StrCat("; its owner lets you read it with `chmod a+r ", path, "`")
              : "; name another file, or - for standard input")));
  text.set_format(format);
  return text;
}

absl::StatusOr<ResolvedFile> ResolveFile(const std::string& given) {
  // The status is not sent over the network, so every problem can be listed.
  const specification::Limits limits{.max_problem_bytes = 1 << 20};
  ResolvedFile resolved;
  resolved.path = ReadySpecification(given);
  if (resolved.path.empty()) resolved.path = given;
  ASSIGN_OR_RETURN(resolved.text, ReadSpecification(resolved.path));
  specification::Parsed parsed = specification::Parse(resolved.text.format(), resolved.text.text());
  resolved.examples = AttachExamples(resolved.path, parsed);
  absl::StatusOr<specification::Grid> grid =
      specification::ResolveWith(specification::AllCatalogues(), std::move(parsed), limits);
  if (grid.ok()) {
    resolved.grid = *std::move(grid);
    for (std::string& warning : specification::ExampleWarnings(resolved.grid.specification)) {
      resolved.examples.warnings.push_back(std::move(warning));
    }
    std::string unchosen = specification::ChoiceWarning(resolved.grid.specification);
    if (!unchosen.empty()) resolved.examples.warnings.push_back(std::move(unchosen));
    return resolved;
  }
  if (!absl::IsInvalidArgument(grid.status())) return grid.status();
  return absl::InvalidArgumentError(
      absl::StrCat(given == "-" ? "the specification" : given, " is not valid:\n  ",
                   absl::StrReplaceAll(grid.status().message(), {{"\n", "\n  "}})));
}

void SetSpecification(const ResolvedFile& read, v1::CreateExperimentRequest& request) {
  if (read.examples.files.empty()) {
    *request.mutable_specification_text() = read.text;
  } else {
    *request.mutable_specification() = read.grid.specification;
  }
}

std::string DescribeGrid(const specification::Grid& grid) {
  std::set<std::string> packs;
  for (const specification::GridTrial& trial : grid.trials) packs.insert(trial.pack->key);
  return absl::StrCat(Counted(static_cast<int64_t>(grid.trials.size()), "trial"), " in ",
                      Counted(static_cast<int64_t>(packs.size()), "pack"));
}

namespace {

using tasks::examples::File;

// Maximum number of lengths evaluated by default.
constexpr size_t kMostDefaultLengths = 100;
// Maximum size of a network's files together.
constexpr int64_t kMostNetworkBytes = 1 << 20;

File FileOf(const std::string& specification_path, const std::string& name) {
  if (name.empty()) return {};
  const std::filesystem::path directory =
      specification_path == "-" ? "" : std::filesystem::path(specification_path).parent_path();
  return {.path = (directory / platform::ExpandHome(name)).string(), .name = name};
}

// Returns true if any of the specification's networks satisfies `is`.
template <typename Predicate>
bool AnyNetwork(const v1::ExperimentSpecification& specification, const Predicate& is) {
  for (const v1::Component& network : specification.networks()) {
    for (const models::NetworkEntry* entry : models::EveryNetworkEntry()) {
      if (entry->name == network.name() && is(*entry)) return true;
    }
  }
  return false;
}

// Returns true if any network is a language model, which learns nothing but text.
bool AreLanguageModels(const v1::ExperimentSpecification& specification) {
  return AnyNetwork(specification, [](const models::NetworkEntry& entry) {
    return entry.task_kinds == std::vector<tasks::TaskKind>{tasks::TaskKind::kText};
  });
}

// Returns true if no network of the specification learns tasks of this kind.
bool NoneLearns(tasks::TaskKind kind, const v1::ExperimentSpecification& specification) {
  return !specification.networks().empty() &&
         !AnyNetwork(specification,
                     [kind](const models::NetworkEntry& entry) { return entry.Learns(kind); });
}

void Set(v1::Component& component, const std::string& name, const std::string& value) {
  (*component.mutable_parameters())[name].set_string_value(value);
}

// Turns the task into one of `entry` and keeps its label.
void Become(const tasks::TaskEntry& entry, v1::Component& task) {
  if (task.name() == entry.name) return;
  if (task.label().empty()) task.set_label(task.name());
  task.set_name(entry.name);
}

// Completes a file task and returns its examples. Returns null if the file cannot be read, and adds
// a problem.
std::shared_ptr<const tasks::examples::ExampleSet> Attach(const std::string& specification_path,
                                                          const std::string& field,
                                                          v1::Component& task,
                                                          specification::Parsed& parsed,
                                                          AttachedExamples& attached) {
  const tasks::TaskEntry& entry = *tasks::FindTask(task.name());
  std::vector<catalogue::Problem> wrong;
  const catalogue::Parameters parameters =
      catalogue::Resolve(entry, specification::ParametersOf(task), field, wrong);
  if (parameters.String("train").empty()) return nullptr;
  // Resolving the specification reports wrong parameters, and not also that the file is unknown.
  if (!wrong.empty()) {
    parsed.unread.push_back(field + ".train");
    return nullptr;
  }
  const File train = FileOf(specification_path, parameters.String("train"));
  const File test = FileOf(specification_path, parameters.String("test"));
  const bool is_text =
      entry.kind == tasks::TaskKind::kText || AreLanguageModels(parsed.specification);
  tasks::examples::Options options = tasks::examples::OptionsOf(parameters);
  options.as_numbers = entry.kind == tasks::TaskKind::kRegression;
  options.continues_text = is_text;
  tasks::examples::Problems problems;
  auto loaded = tasks::examples::Load(train, test, options, problems);
  if (!loaded.ok()) {
    // What the file has is unknown, so no network may be called unable to learn it.
    if (is_text) {
      Become(tasks::examples::ExamplesText(), task);
    } else if (NoneLearns(tasks::TaskKind::kTransduction, parsed.specification)) {
      Become(tasks::examples::ExamplesNumbers(), task);
    }
    parsed.unread.push_back(field + ".train");
    if (problems.all == 0) {
      std::error_code error;
      const auto is_no_file = [&](const File& file) {
        return !file.path.empty() && !std::filesystem::is_regular_file(file.path, error);
      };
      const bool is_train = is_no_file(train);
      const bool is_named = is_train || is_no_file(test);
      const std::string& path = is_train ? train.path : test.path;
      const bool is_missing = is_named && !std::filesystem::is_symlink(path, error) &&
                              !std::filesystem::exists(path, error);
      const std::string advice =
          is_missing ? DidYouMean(path, /*specifications=*/false,
                                  "; a relative path begins at the specification's folder")
                     : "";
      AddProblem(parsed.problems,
                 is_train   ? field + ".train"
                 : is_named ? field + ".test"
                            : field,
                 loaded.status().message(), advice);
    }
    parsed.problems.insert(parsed.problems.end(), problems.named.begin(), problems.named.end());
    const int64_t others = problems.all - static_cast<int64_t>(problems.named.size());
    if (others > 0) {
      AddProblem(parsed.problems, "", "and ", others, " more in the task's files");
    }
    return nullptr;
  }
  const auto add = [&](const File& file, const char* name, const std::string& sha256,
                       int64_t bytes) {
    const std::string& given = parameters.String(name);
    if (!given.empty() && given != sha256) {
      AddProblem(parsed.problems, absl::StrCat(field, ".", name), "got ", given, ", ", file.name,
                 " has ", sha256, ": it is another file");
    }
    Set(task, name, sha256);
    attached.files.push_back({file.path, file.name, sha256, bytes});
  };
  add(train, "train_sha256", loaded->train_sha256, loaded->train_bytes);
  if (!test.path.empty()) add(test, "test_sha256", loaded->test_sha256, loaded->test_bytes);
  Set(task, "contents", tasks::examples::ToText(tasks::examples::ContentsOf(*loaded)));
  const bool has_numbers = loaded->set->form == tasks::examples::Form::kNumbers;
  if (is_text && !loaded->set->mask.empty()) {
    AddProblem(parsed.problems, field,
               "has lines with a mask; a language model's answers count "
               "whole: leave the mask out");
  }
  if (!loaded->first_number.field.empty() &&
      NoneLearns(tasks::TaskKind::kRegression, parsed.specification)) {
    parsed.problems.push_back(loaded->first_number);
  }
  if (has_numbers || is_text) {
    Become(has_numbers ? tasks::examples::ExamplesNumbers() : tasks::examples::ExamplesText(),
           task);
  }
  attached.warnings.insert(attached.warnings.end(), loaded->warnings.begin(),
                           loaded->warnings.end());
  return loaded->set;
}

// Fills in missing lengths from the file: those of its examples.
void FillLengths(const tasks::examples::ExampleSet& set,
                 v1::ExperimentSpecification& specification) {
  if (!specification.protocol().empty()) return;
  v1::LengthRange& lengths = *specification.mutable_training()->mutable_lengths();
  if (!lengths.has_min()) lengths.set_min(set.training.begin()->first);
  if (!lengths.has_max()) lengths.set_max(set.training.rbegin()->first);
  if (AreLanguageModels(specification)) {
    v1::Packing& packing = *specification.mutable_training()->mutable_packing();
    int64_t longest = 0;
    for (const auto& [length, group] : set.training) {
      const bool trained = length >= lengths.min() && length <= lengths.max();
      if (trained) longest = std::max(longest, group.longest);
    }
    if (longest > 0 && !packing.has_tokens()) {
      packing.set_tokens(static_cast<int32_t>(longest + 1));
    }
  }
  v1::Evaluation& evaluation = *specification.mutable_evaluation();
  if (evaluation.lengths_size() > 0 || set.test.size() > kMostDefaultLengths) return;
  for (const auto& [length, group] : set.test) evaluation.add_lengths(length);
}

// Rejects training.epochs for file tasks. Other tasks are rejected elsewhere, for lack of
// training.examples.
void RefuseEpochs(const tasks::examples::ExampleSet& set, specification::Parsed& parsed) {
  const v1::Training& training = parsed.specification.training();
  if (!training.has_epochs()) return;
  std::string advice = "set training.steps";
  if (training.epochs() > 0 && training.batch_size() > 0 &&
      !AreLanguageModels(parsed.specification)) {
    int64_t examples = 0;
    for (const auto& [length, group] : set.training) {
      const bool trained = length >= training.lengths().min() && length <= training.lengths().max();
      if (trained) examples += static_cast<int64_t>(group.examples.size());
    }
    const double steps = std::ceil(static_cast<double>(training.epochs()) *
                                   static_cast<double>(examples) / training.batch_size());
    absl::StrAppend(&advice, ", ", static_cast<int64_t>(std::min(steps, 1e15)),
                    " for as many examples as ", training.epochs(), " epochs have");
  }
  AddProblem(parsed.problems, "training.epochs",
             "every step draws anew from the task's file: ", advice);
  parsed.unread.insert(parsed.unread.end(), {"training.epochs", "training.steps"});
}

// Makes the archive of a network's file or folder: JSON that is the same for the same files.
absl::StatusOr<std::string> MakeArchive(const std::string& path) {
  const std::filesystem::path given(path);
  std::error_code error;
  const bool is_folder = std::filesystem::is_directory(given, error);
  std::vector<std::filesystem::path> paths = {given};
  if (is_folder) {
    paths.clear();
    std::error_code ignored;
    std::filesystem::recursive_directory_iterator entry(given, error), end;
    for (; !error && entry != end; entry.increment(error)) {
      const std::string name = entry->path().lexically_relative(given).string();
      const bool is_hidden = absl::StrContains(absl::StrCat("/", name), "/.");
      const bool is_made = absl::StrContains(name, "__pycache__");
      if (is_hidden || is_made || !entry->is_regular_file(ignored)) continue;
      if (!platform::IsUtf8(name)) {
        return absl::InvalidArgumentError(absl::StrCat(
            platform::PrintableText(name), " in it has a name that is not UTF-8: rename it"));
      }
      paths.push_back(entry->path());
    }
    if (error) {
      return absl::InvalidArgumentError(
          absl::StrCat("the folder ", path, " cannot be read: ", error.message()));
    }
  }
  nlohmann::json files = nlohmann::json::object();
  int64_t left = kMostNetworkBytes;
  for (const std::filesystem::path& file : paths) {
    ASSIGN_OR_RETURN(const std::string bytes, platform::ReadFile(file.string(), left),
                     absl::InvalidArgumentError(absl::StrCat(
                         _.message(), "; a network's files have at most ", kMostNetworkBytes,
                         " bytes together, and a relative path begins at the specification's "
                         "folder")));
    left -= static_cast<int64_t>(bytes.size());
    nlohmann::json& stored =
        files[is_folder ? file.lexically_relative(given).string() : file.filename().string()];
    if (platform::IsUtf8(bytes)) {
      stored = bytes;
    } else {
      stored["base64"] = absl::Base64Escape(bytes);
    }
  }
  const std::string entry = is_folder ? "__init__.py" : given.filename().string();
  if (!files.contains(entry)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the folder ", path, " has no __init__.py, which has the class"));
  }
  const nlohmann::json archive = {{"entry", entry}, {"files", files}};
  return absl::StrCat(models::kPythonArchiveStart, archive.dump().substr(1));
}

// Completes a network `python` and returns its archive as a file to upload.
void AttachNetwork(const std::string& specification_path, const std::string& field,
                   v1::Component& network, specification::Parsed& parsed,
                   AttachedExamples& attached) {
  const File file =
      FileOf(specification_path, specification::ParametersOf(network).values().contains("file")
                                     ? network.parameters().at("file").string_value()
                                     : "");
  if (file.path.empty()) return;
  const auto fail = [&](absl::string_view why) {
    AddProblem(parsed.problems, field + ".file", why);
    parsed.unread.push_back(field + ".file");
  };
  const absl::StatusOr<std::string> archive = MakeArchive(file.path);
  if (!archive.ok()) return fail(archive.status().message());
  const std::string sha256 = platform::Sha256Hex(*archive);
  const auto given = network.parameters().find("file_sha256");
  if (given != network.parameters().end() && !given->second.string_value().empty() &&
      given->second.string_value() != sha256) {
    return fail(absl::StrCat("has the SHA-256 ", sha256, ", and file_sha256 is another one"));
  }
  Set(network, "file_sha256", sha256);
  const auto bytes = static_cast<int64_t>(archive->size());
  (*network.mutable_parameters())["file_bytes"].set_number_value(static_cast<double>(bytes));
  auto made = std::make_shared<platform::Descriptor>(memfd_create("network", MFD_CLOEXEC));
  if (write(made->get(), archive->data(), archive->size()) != static_cast<ssize_t>(bytes)) {
    return fail("there is no memory for its archive");
  }
  attached.files.push_back(
      {absl::StrCat("/proc/self/fd/", made->get()), file.name, sha256, bytes, made});
}

}  // namespace

AttachedExamples AttachExamples(const std::string& specification_path,
                                specification::Parsed& parsed) {
  AttachedExamples attached;
  v1::ExperimentSpecification& specification = parsed.specification;
  for (int i = 0; i < specification.tasks_size(); ++i) {
    v1::Component& task = *specification.mutable_tasks(i);
    attached.sets.push_back(nullptr);
    if (!tasks::examples::IsExamples(task.name())) continue;
    attached.sets.back() =
        Attach(specification_path, absl::StrCat("tasks[", i, "]"), task, parsed, attached);
  }
  for (int i = 0; i < specification.networks_size(); ++i) {
    if (specification.networks(i).name() != models::kPythonNetwork) continue;
    AttachNetwork(specification_path, absl::StrCat("networks[", i, "]"),
                  *specification.mutable_networks(i), parsed, attached);
  }
  if (attached.sets.size() != 1 || !tasks::examples::IsExamples(specification.tasks(0).name())) {
    return attached;
  }
  if (attached.sets[0] != nullptr) {
    FillLengths(*attached.sets[0], specification);
    RefuseEpochs(*attached.sets[0], parsed);
  } else {
    // The file would have provided the default.
    parsed.unread.push_back("evaluation.lengths");
  }
  return attached;
}

absl::StatusOr<v1::CreateExperimentResponse> CreateExperiment(
    Connection& connection, const v1::CreateExperimentRequest& request,
    const std::vector<ExampleFile>& files) {
  const auto create = [&] { return connection.Call<v1::CreateExperimentResponse>(request); };
  auto created = create();
  if (absl::IsFailedPrecondition(created.status())) {
    bool uploaded = false;
    for (const ExampleFile& file : files) {
      if (!absl::StrContains(created.status().message(), file.sha256)) continue;
      const absl::Status status = connection.UploadData(file.path, file.sha256, file.bytes);
      if (!status.ok()) {
        return absl::Status(status.code(), absl::StrCat(file.name, ": ", status.message()));
      }
      uploaded = true;
    }
    if (uploaded) created = create();
  }
  if (absl::IsUnavailable(created.status()) && !request.request_id().empty()) {
    created = create();
  }
  return created;
}

}  // namespace lengthwise::client
