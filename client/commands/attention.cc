// `lengthwise attention TRIAL`: shows attention maps, recorded ones or those of the user's own
// input.
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "client/commands/commands.h"
#include "client/commands/local_training.h"
#include "client/commands/program.h"
#include "client/display/numbers.h"
#include "client/display/shaded_grid.h"
#include "platform/status_macros.h"
#include "tasks/catalogue.h"

namespace lengthwise::client {
namespace {

struct AttentionOptions {
  std::string trial;
  std::string input;
  int length = 0;
  int sequence = 0;
  int layer = 0;
  int head = 0;
  LocalWorkers workers;
};

// Returns the maps of the user's own input, which a worker records in an evaluation.
absl::StatusOr<std::vector<v1::AttentionMap>> MapsOfInput(Program& program, Connection& connection,
                                                          const AttentionOptions& options,
                                                          const v1::Trial& trial) {
  v1::Evaluation evaluation;
  RETURN_IF_ERROR(AddInput(options.input, trial.specification(), evaluation));
  ASSIGN_OR_RETURN(const v1::Trial evaluated,
                   EvaluateQuietly(program, connection, trial, evaluation, options.workers));
  ASSIGN_OR_RETURN(auto maps, connection.QueryAttentionMaps(evaluated.name(), 0));
  std::erase_if(maps, [](const v1::AttentionMap& map) { return map.input_number() == 0; });
  if (maps.empty()) return WhyNothing(connection, evaluated);
  return maps;
}

void WriteJson(const v1::Trial& trial, const std::vector<v1::AttentionMap>& maps,
               std::ostream& out) {
  nlohmann::ordered_json json = {{"trial", trial.name()}};
  json["maps"] = nlohmann::ordered_json::array();
  for (const v1::AttentionMap& map : maps) {
    nlohmann::ordered_json object = {
        {"length", map.length()},
        {"sequence", map.sequence() + 1},
        {"input", map.input_number()},
        {"tokens", std::vector<int32_t>(map.tokens().begin(), map.tokens().end())},
        {"positions", std::vector<int64_t>(map.positions().begin(), map.positions().end())}};
    if (map.real_positions_size() > 0) {
      object["positions"] =
          std::vector<double>(map.real_positions().begin(), map.real_positions().end());
    }
    if (map.numbers_size() > 0) {
      object["numbers"] = std::vector<double>(map.numbers().begin(), map.numbers().end());
    }
    for (int layer = 0; layer < map.layers(); ++layer) {
      nlohmann::ordered_json heads = nlohmann::ordered_json::array();
      for (int head = 0; head < map.heads(); ++head) {
        nlohmann::ordered_json rows = nlohmann::ordered_json::array();
        for (int query = 0; query < map.tokens_size(); ++query) {
          std::vector<float> row;
          row.reserve(static_cast<size_t>(map.tokens_size()));
          for (int key = 0; key < map.tokens_size(); ++key) {
            row.push_back(ProbabilityAt(map, layer, head, query, key));
          }
          rows.push_back(std::move(row));
        }
        heads.push_back(std::move(rows));
      }
      object["probabilities"].push_back(std::move(heads));
    }
    json["maps"].push_back(std::move(object));
  }
  out << json.dump() << "\n";
}

// Streams the rows, because long maps have millions of numbers.
void WriteCsv(const std::vector<v1::AttentionMap>& maps, std::ostream& out) {
  out << "length,sequence,input,layer,head,query,key,probability\n";
  for (const v1::AttentionMap& map : maps) {
    for (int layer = 0; layer < map.layers(); ++layer) {
      for (int head = 0; head < map.heads(); ++head) {
        for (int query = 0; query < map.tokens_size(); ++query) {
          for (int key = 0; key < map.tokens_size(); ++key) {
            out << map.length() << "," << map.sequence() + 1 << "," << map.input_number() << ","
                << layer + 1 << "," << head + 1 << "," << query << "," << key << ","
                << ProbabilityAt(map, layer, head, query, key) << "\n";
          }
        }
      }
    }
  }
}

absl::Status CheckMap(const v1::AttentionMap& map, const AttentionOptions& options) {
  if (options.layer > map.layers()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--layer: got ", options.layer, ", the network has ", Counted(map.layers(), "layer")));
  }
  if (options.head > map.heads()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--head: got ", options.head, ", the network has ", Counted(map.heads(), "head")));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Attention(Program& program, const AttentionOptions& options) {
  if (!options.input.empty() && options.length > 0) {
    return absl::InvalidArgumentError(
        "--length selects recorded maps, and --input makes a new one; leave one out");
  }
  ASSIGN_OR_RETURN(auto connection,
                   options.input.empty() ? program.ConnectToRead() : program.ConnectToTrain());
  ASSIGN_OR_RETURN(auto trial, FindTrial(*connection, options.trial));
  ASSIGN_OR_RETURN(auto maps, options.input.empty()
                                  ? connection->QueryAttentionMaps(trial.name(), options.length)
                                  : MapsOfInput(program, *connection, options, trial));
  // A table shows only one sequence of each length.
  const int sequence = options.sequence == 0 && program.output_is_table() ? 1 : options.sequence;
  if (sequence > 0) {
    std::erase_if(maps,
                  [&](const v1::AttentionMap& map) { return map.sequence() + 1 != sequence; });
  }
  if (maps.empty() && (trial.state() == v1::FAILED || trial.state() == v1::CANCELLED)) {
    return absl::NotFoundError(
        absl::StrCat(ShortName(trial.name()), " has no attention maps, because the trial ",
                     trial.state() == v1::FAILED ? "failed" : "was cancelled",
                     "; `lengthwise show ", options.trial, program.WhereArguments(), "` says why"));
  }
  if (maps.empty()) {
    return absl::NotFoundError(
        absl::StrCat(ShortName(trial.name()), " has no attention maps",
                     options.length > 0 ? absl::StrCat(" of length ", options.length) : "",
                     sequence > 1 ? absl::StrCat(" of sequence ", sequence) : "",
                     "; record them with evaluation.attention_lengths, with `lengthwise evaluate ",
                     options.trial, " --attention_lengths LIST", program.WhereArguments(),
                     "`, or give an --input"));
  }
  absl::Status status;
  for (const v1::AttentionMap& map : maps) {
    status.Update(CheckMap(map, options));
    status.Update(CheckProbabilities(map));
  }
  RETURN_IF_ERROR(status);
  if (program.output == "json") {
    WriteJson(trial, maps, program.out());
  } else if (program.output == "csv") {
    WriteCsv(maps, program.out());
  } else {
    AttentionView view{.layer = options.layer, .head = options.head};
    const tasks::TaskEntry* task = tasks::FindTask(trial.specification().task().name());
    if (task != nullptr) {
      view.axis = task->axis;
      view.has_outputs = task->kind == tasks::TaskKind::kTransduction;
    }
    for (const v1::AttentionMap& map : maps) {
      program.out() << RenderAttention(map, view, program.width(), program.palette());
    }
  }
  return kSuccess;
}

}  // namespace

void AddAttention(Command root, Program& program) {
  const auto [command, options] =
      program.AddCommand(root, "attention", "Shows what a trained model attends to", kServerGroup,
                         "lengthwise attention figure6-1/0\n"
                         "lengthwise attention figure6-1/0 --length 40 --layer 2 --head 3\n"
                         "lengthwise attention figure6-1/0 --input 0,1,1,0,1\n"
                         "lengthwise attention my_task-1/0 --input 'three plus four'\n"
                         "lengthwise attention positional_attention_figure5-1/0 --input "
                         "1.75,1.25,0.75,0.25,-0.25,-0.75,-1.25,-1.75,0",
                         Attention);
  command.AddOption("trial", options->trial, "EXPERIMENT/TRIAL, or EXPERIMENT/INDEX of the trial");
  command
      .AddOption("--input TOKENS", options->input,
                 "Your own input, on which a worker runs the model: tokens, text for tasks on text "
                 "or, for tasks on real numbers, numbers including a scratchpad's 0")
      .NotEmpty();
  command.AddOption("--length N", options->length, "Shows only recorded maps of this length")
      .Positive();
  command
      .AddOption("--sequence S", options->sequence,
                 "Sequence among those recorded for a length, from 1; default: the first, in json "
                 "and csv all")
      .Positive();
  command.AddOption("--layer L", options->layer, "Layer, from 1; default: all").Positive();
  command.AddOption("--head H", options->head, "Head, from 1; default: the maximum over heads")
      .Positive();
  AddWorkerOptions(command, options->workers);
  program.AddServerOrDataDirOptions(command);
  program.AddOutputOption(command);
}

}  // namespace lengthwise::client
