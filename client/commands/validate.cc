// `lengthwise validate SPEC`: the server's answer without a server.
#include <memory>
#include <set>

#include "client/commands/commands.h"
#include "client/commands/specification_file.h"

namespace lengthwise::client {

void AddValidate(CLI::App& app, Program& program) {
  auto path = std::make_shared<std::string>();
  CLI::App* command = program.AddCommand(
      app, "validate", "Checks a specification and names every mistake", kOfflineGroup,
      "lengthwise validate experiments/quickstart.yaml", [&program, path]() -> absl::StatusOr<int> {
        auto text = ReadSpecification(*path);
        if (!text.ok()) return text.status();
        auto grid = ResolveFile(*path, *text);
        if (!grid.ok()) return grid.status();
        if (program.output_is_table()) {
          const std::string ready = ReadySpecification(*path);
          program.out() << "OK: " << (ready.empty() ? *path : ready) << " is valid, "
                        << DescribeGrid(*grid) << "\n";
          return kSuccess;
        }
        Records records{.columns = {"trial", "pack"}};
        for (const specification::GridTrial& trial : grid->trials) {
          records.rows.push_back({trial.id, trial.pack->key});
        }
        program.Write(records);
        return kSuccess;
      });
  command
      ->add_option("spec", *path,
                   "A file that ends in .yaml, .yml, .json, .textproto or .txtpb; - reads YAML or "
                   "JSON from standard input; or an installed specification (quickstart)")
      ->required()
      ->type_name("");
  program.AddOutputOption(command);
}

}  // namespace lengthwise::client
