// `lengthwise delete EXPERIMENT`.
#include <memory>

#include "client/commands/commands.h"
#include "client/connection/names.h"

namespace lengthwise::client {

void AddDelete(CLI::App& app, Program& program) {
  auto name = std::make_shared<std::string>();
  CLI::App* command = program.AddCommand(
      app, "delete", "Deletes an experiment with all that it recorded", kServerGroup,
      "lengthwise delete quickstart-1", [&program, name]() -> absl::StatusOr<int> {
        auto connection = program.Connect();
        if (!connection.ok()) return connection.status();
        // What is deleted must be named in full: no prefix, no "the newest".
        const std::string full =
            name->rfind("experiments/", 0) == 0 ? *name : "experiments/" + *name;
        const absl::Status deleted = (*connection)->DeleteExperiment(full);
        if (absl::IsNotFound(deleted)) {
          // Says what is there instead, where something similar is.
          const auto similar = FindExperiment(**connection, *name);
          if (!similar.ok()) return similar.status();
          return absl::NotFoundError("there is no experiment \"" + *name + "\"; did you mean \"" +
                                     ShortName(similar->name()) + "\"?");
        }
        if (!deleted.ok()) return deleted;
        program.out() << "Deleted " << ShortName(full) << ".\n";
        return kSuccess;
      });
  command->add_option("experiment", *name, "Its full name")->required()->type_name("");
  program.AddServerOption(command);
  program.AddDataDirOption(command);
}

}  // namespace lengthwise::client
