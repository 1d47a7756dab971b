// `lengthwise validate SPEC`: checks a specification as the server would, without a server.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "catalogue/entry.h"
#include "client/commands/commands.h"
#include "client/commands/specification_file.h"
#include "client/display/numbers.h"
#include "client/display/records.h"
#include "platform/status_macros.h"
#include "specification/components.h"
#include "specification/expand.h"
#include "tasks/examples/contents.h"

namespace lengthwise::client {
namespace {

// Prints overrides of networks by encoding: "network encoder with encoding rope: dropout 0.1".
void WriteOverrides(const specification::Grid& grid, std::ostream& out) {
  for (const v1::NetworkOverride& one : grid.specification.network_overrides()) {
    std::vector<std::string> values;
    const catalogue::Parameters parameters = specification::ParametersOf(one.network());
    for (const auto& [name, value] : parameters.values()) {
      values.push_back(absl::StrCat(name, " ", catalogue::FormatValue(value)));
    }
    out << "network " << one.network().label() << " with encoding " << one.encoding() << ": "
        << absl::StrJoin(values, ", ") << "\n";
  }
}

// Prints the contents of the example files, with warnings.
void WriteExamples(Program& program, const specification::Grid& grid,
                   const AttachedExamples& examples) {
  for (size_t i = 0; i < examples.sets.size(); ++i) {
    if (examples.sets[i] == nullptr) continue;
    const v1::Component& task = grid.specification.tasks(static_cast<int>(i));
    const auto contents =
        tasks::examples::ParseContents(specification::ParametersOf(task).String("contents"));
    if (!contents.ok()) continue;
    const auto part = [](const tasks::examples::Contents::OfPart& of) {
      return absl::StrCat(Counted(of.examples, "example"), " of lengths ",
                          tasks::examples::ShowLengths(of.lengths));
    };
    std::string line = absl::StrCat(task.label(), ": trains on ", part(contents->training),
                                    "; tests on ", part(contents->test));
    if (contents->form != tasks::examples::Form::kNumbers) {
      absl::StrAppend(&line, "; ", Counted(contents->input_symbols, "input symbol"), ", ",
                      Counted(contents->target_symbols, "target symbol"));
    }
    program.out() << program.Wrapped(line) << "\n";
  }
  for (const std::string& warning : examples.warnings) {
    program.out() << program.Wrapped("warning: " + warning) << "\n";
  }
}

// Prints the pairs of networks and encodings that the grid leaves out.
void WriteLeftOut(Program& program, const specification::Grid& grid) {
  std::vector<std::string> pairs;
  for (const v1::Component& network : grid.specification.networks()) {
    for (const v1::Component& encoding : grid.specification.encodings()) {
      if (specification::Fits(network, encoding)) continue;
      pairs.push_back(absl::StrCat(network.label(), " with ", encoding.label()));
    }
  }
  if (pairs.empty()) return;
  program.out() << program.Wrapped("left out: " + absl::StrJoin(pairs, ", ")) << "\n";
}

}  // namespace

void AddValidate(Command root, Program& program) {
  auto path = std::make_shared<std::string>();
  auto resolved = std::make_shared<bool>(false);
  const Command command = program.AddCommand(
      root, "validate", "Checks a specification and lists every mistake", kOfflineGroup,
      "lengthwise validate experiments/quickstart.yaml",
      [&program, path, resolved]() -> absl::StatusOr<int> {
        ASSIGN_OR_RETURN(const auto read, ResolveFile(*path));
        const specification::Grid& grid = read.grid;
        if (*resolved) {
          ASSIGN_OR_RETURN(auto json, MessageJson(grid.specification, /*indented=*/true));
          program.out() << json;
          for (const std::string& warning : read.examples.warnings) {
            program.err() << "warning: " << warning << "\n";
          }
          return kSuccess;
        }
        if (program.output_is_table()) {
          program.out() << "OK: " << read.path << " is valid, " << DescribeGrid(grid) << "\n";
          WriteExamples(program, grid, read.examples);
          WriteOverrides(grid, program.out());
          WriteLeftOut(program, grid);
          return kSuccess;
        }
        Records records{.columns = {"trial", "pack"}};
        for (const specification::GridTrial& trial : grid.trials) {
          records.rows.push_back({trial.id, trial.pack->key});
        }
        return program.Write(records);
      });
  command.AddOption("spec", *path,
                    "A file that ends in .yaml, .yml, .json, .textproto or .txtpb; - reads YAML or "
                    "JSON from standard input; or an installed specification (quickstart)");
  command.AddFlag("--resolved", *resolved,
                  "Prints the specification with every default filled in, as JSON, which is a "
                  "specification, too");
  program.AddOutputOption(command);
}

}  // namespace lengthwise::client
