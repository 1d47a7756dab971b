// Lists all commands, and has what some of them share. To add a command, add a file to this folder,
// then declare and list its function here.
#ifndef LENGTHWISE_CLIENT_COMMANDS_COMMANDS_H_
#define LENGTHWISE_CLIENT_COMMANDS_COMMANDS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/commands/program.h"
#include "command_line/completion.h"
#include "google/protobuf/repeated_field.h"
#include "platform/child_process.h"

namespace lengthwise::client {

void AddRun(Command root, Program& program);
void AddValidate(Command root, Program& program);
void AddCheck(Command root, Program& program);
void AddSample(Command root, Program& program);
void AddCatalogueCommands(Command root, Program& program);
void AddSubmit(Command root, Program& program);
void AddWatch(Command root, Program& program);
void AddResults(Command root, Program& program);
// Adds the commands of the Python package: plot, web, report, publish, export, compare, analyze.
void AddPython(Command root, Program& program);
void AddAttention(Command root, Program& program);
void AddErrors(Command root, Program& program);
void AddPredict(Command root, Program& program);
void AddEvaluate(Command root, Program& program);
void AddExtend(Command root, Program& program);
void AddList(Command root, Program& program);
void AddShow(Command root, Program& program);
void AddCancel(Command root, Program& program);
void AddRetry(Command root, Program& program);
void AddDelete(Command root, Program& program);
void AddHandOver(Command root, Program& program);
void AddWorkers(Command root, Program& program);
// Adds `up` and `down` to `lengthwise workers`.
void AddFleetCommands(Command workers, Program& program);
// Pauses and resumes the queue.
void AddQueue(Command root, Program& program);
// Prints why the queue is paused (ListWorkersResponse.queue_pause), if it is.
void TellPause(Program& program, const std::string& why);

// Prints a table of what owners have used. Returns kSuccess.
int PrintUsage(Program& program, const google::protobuf::RepeatedPtrField<v1::OwnerUsage>& owners);
void AddAuth(Command root, Program& program);
void AddConfig(Command root, Program& program);
void AddLogs(Command root, Program& program);
void AddStorage(Command root, Program& program);
void AddBackup(Command root, Program& program);
void AddDoctor(Command root, Program& program);
void AddCompletion(Command root, Program& program);
void AddMan(Command root, Program& program);

// In the order in which `lengthwise --help` lists them.
inline constexpr void (*kCommands[])(Command, Program&) = {
    AddRun,      AddValidate, AddCheck,    AddSample,  AddCatalogueCommands,
    AddSubmit,   AddWatch,    AddResults,  AddPython,  AddAttention,
    AddErrors,   AddPredict,  AddEvaluate, AddExtend,  AddList,
    AddShow,     AddLogs,     AddCancel,   AddRetry,   AddDelete,
    AddHandOver, AddWorkers,  AddQueue,    AddStorage, AddBackup,
    AddAuth,     AddConfig,   AddDoctor,   AddMan,     AddCompletion,
};

// Starts `lengthwise web` on a server without credentials, and prints the page's address, that of
// the experiment. The page ends with the process.
absl::StatusOr<std::unique_ptr<platform::ChildProcess>> StartWeb(Program& program,
                                                                 const std::string& server,
                                                                 const std::string& experiment);

// Parses the time of an option: "90d", or a format of absl::ParseDuration ("12h").
// INVALID_ARGUMENT if it is none or negative.
absl::StatusOr<absl::Duration> ParseTime(const std::string& option, const std::string& text);

// Names of the figures that `lengthwise plot` draws.
std::vector<std::string> FigureNames();

struct FormulaDrawing {
  std::string specification;  // as ResolveFile takes it
  // .svg, .png or .pdf file to write. Empty: draw in the terminal.
  std::string out;
  int64_t head = 1;    // from 1, of the terminal's picture
  int64_t tokens = 0;  // 0: those of the longest training input
};

// Draws every encoding `formula` with its parameters' initial values, at the positions 0, 1, 2, ...
// and with the sizes of the first network. INVALID_ARGUMENT if the specification is invalid, has no
// formula or has fewer heads than `head`.
absl::StatusOr<int> DrawFormulas(Program& program, const FormulaDrawing& drawing);

// Lists of numbers: integers such as "41..500", "1,2,5" and "5..60 step 5,100", or real numbers
// such as "1.75,-0.25,0".
inline constexpr absl::string_view kNumbersAndRanges =
    "numbers and ranges such as 41..500 or 1,2,5";

// Appends the numbers of `text`, which may be empty. INVALID_ARGUMENT names the option if the text
// is not such a list, a value does not fit the numbers' type, or there are more than 1,000,000
// values; it tells what is `expected` in place of text that is no list. Nothing is appended after
// an error.
template <typename Number>
absl::Status ReadNumbers(const std::string& option, const std::string& text,
                         google::protobuf::RepeatedField<Number>& numbers,
                         absl::string_view expected = kNumbersAndRanges);

// The same for finite real numbers, without ranges.
absl::Status ReadNumbers(const std::string& option, const std::string& text,
                         google::protobuf::RepeatedField<double>& numbers);

// Called as `lengthwise __complete -- WORD...`.
inline constexpr char kCompleteCommand[] = "__complete";

// Answers in the format of command_line/completion.h. Names from the server are requested
// with a short deadline. If the server does not answer, they are left out without an error.
int PrintCompletion(Command root, Program& program, std::vector<std::string> words);

// The keys of published tables with their titles, sorted: "randomized_pe/table_1".
std::vector<command_line::Candidate> PublishedKeys();

// A file of experiments/published, which the build embeds in the program.
struct PublishedFile {
  // Without its ending: "randomized_pe_table_1".
  absl::string_view name;
  absl::string_view json;
};

// Sorted by name. Live forever.
absl::Span<const PublishedFile> PublishedFiles();

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_COMMANDS_H_
