#include "client/commands/example_files.h"

#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "catalogue/entry.h"
#include "specification/component_parameters.h"
#include "tasks/catalogue.h"
#include "tasks/examples/contents.h"
#include "tasks/examples/entries.h"

namespace lengthwise::client {
namespace {

using tasks::examples::Contents;
using tasks::examples::File;

// More lengths than this are not evaluated unasked.
constexpr size_t kMostDefaultLengths = 100;

File FileOf(const std::string& specification_path, const std::string& name) {
  if (name.empty()) return {};
  const std::filesystem::path directory =
      specification_path == "-" ? "" : std::filesystem::path(specification_path).parent_path();
  return {.path = (directory / name).string(), .name = name};
}

void Set(v1::Component& component, const std::string& name, const std::string& value) {
  (*component.mutable_parameters())[name].set_string_value(value);
}

// Completes the task of a file; returns its examples, or null where it cannot be read, which is
// then a problem.
std::shared_ptr<const tasks::examples::ExampleSet> Attach(const std::string& specification_path,
                                                          const std::string& field,
                                                          v1::Component& task,
                                                          specification::Parsed& parsed,
                                                          AttachedExamples& attached) {
  const tasks::TaskEntry& entry = *tasks::FindTask(task.name());
  std::vector<catalogue::Problem> wrong;
  const catalogue::Parameters parameters =
      catalogue::Resolve(entry, specification::ParametersOf(task), field, wrong);
  // What is wrong with parameters is told by whoever resolves the specification.
  if (!wrong.empty() || parameters.String("train").empty()) return nullptr;
  const File train = FileOf(specification_path, parameters.String("train"));
  const File test = FileOf(specification_path, parameters.String("test"));
  tasks::examples::Options options = tasks::examples::OptionsOf(parameters);
  options.as_numbers = entry.kind == tasks::TaskKind::kRegression;
  tasks::examples::Problems problems;
  auto loaded = tasks::examples::Load(train, test, options, problems);
  if (!loaded.ok()) {
    parsed.unread.push_back(field + ".train");
    if (problems.all == 0) {
      parsed.problems.push_back({field, std::string(loaded.status().message())});
    }
    parsed.problems.insert(parsed.problems.end(), problems.named.begin(), problems.named.end());
    const int64_t others = problems.all - static_cast<int64_t>(problems.named.size());
    if (others > 0) {
      parsed.problems.push_back({"", absl::StrCat("and ", others, " more in the task's files")});
    }
    return nullptr;
  }
  const auto add = [&](const File& file, const char* name, const std::string& sha256,
                       int64_t bytes) {
    const std::string& given = parameters.String(name);
    if (!given.empty() && given != sha256) {
      parsed.problems.push_back(
          {absl::StrCat(field, ".", name),
           absl::StrCat("got ", given, ", ", file.name, " has ", sha256, ": it is another file")});
    }
    Set(task, name, sha256);
    attached.files.push_back({file.path, file.name, sha256, bytes});
  };
  add(train, "train_sha256", loaded->train_sha256, loaded->train_bytes);
  if (!test.path.empty()) add(test, "test_sha256", loaded->test_sha256, loaded->test_bytes);
  Set(task, "contents", tasks::examples::ToText(tasks::examples::ContentsOf(*loaded)));
  if (loaded->set->form == tasks::examples::Form::kNumbers && !options.as_numbers) {
    if (task.label().empty()) task.set_label(task.name());
    task.set_name(tasks::examples::ExamplesNumbers().name);
  }
  attached.warnings.insert(attached.warnings.end(), loaded->warnings.begin(),
                           loaded->warnings.end());
  return loaded->set;
}

// What a specification that does not say trains on and evaluates: what there is.
void FillLengths(const tasks::examples::ExampleSet& set,
                 v1::ExperimentSpecification& specification) {
  if (!specification.protocol().empty()) return;
  v1::LengthRange& lengths = *specification.mutable_training()->mutable_lengths();
  if (!lengths.has_min()) lengths.set_min(set.training.begin()->first);
  if (!lengths.has_max()) lengths.set_max(set.training.rbegin()->first);
  v1::Evaluation& evaluation = *specification.mutable_evaluation();
  if (evaluation.lengths_size() > 0 || set.test.size() > kMostDefaultLengths) return;
  for (const auto& [length, group] : set.test) evaluation.add_lengths(length);
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
  if (attached.sets.size() == 1 && attached.sets[0] != nullptr) {
    FillLengths(*attached.sets[0], specification);
  }
  return attached;
}

absl::StatusOr<v1::CreateExperimentResponse> CreateExperiment(
    Connection& connection, const v1::CreateExperimentRequest& request,
    const std::vector<ExampleFile>& files) {
  auto created = connection.CreateExperiment(request);
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
    if (uploaded) created = connection.CreateExperiment(request);
  }
  if (absl::IsUnavailable(created.status()) && !request.request_id().empty()) {
    created = connection.CreateExperiment(request);
  }
  return created;
}

}  // namespace lengthwise::client
