// Runs commands as a user types them against a real server in this process, on a temporary data
// directory. FaultyServer also gives answers that a real one never gives.
#ifndef LENGTHWISE_CLIENT_COMMANDS_TESTING_COMMANDS_FIXTURE_H_
#define LENGTHWISE_CLIENT_COMMANDS_TESTING_COMMANDS_FIXTURE_H_

#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "client/commands/program.h"
#include "client/connection/testing/faulty_server.h"
#include "gtest/gtest.h"

namespace lengthwise::client {

inline constexpr char kSpecification[] =
    "name: e\n"
    "tasks: bucket_sort\n"
    "networks: {name: encoder, blocks: 1, heads: 2, d_model: 16}\n"
    "encodings: [none, sin_cos]\n"
    "learning_rates: 0.001\n"
    "seeds: [0, 1, 2]\n"
    "training: {steps: 10, batch_size: 4, lengths: {min: 1, max: 4}}\n"
    "evaluation: {lengths: [4, 8], sequences: 8}\n";

// The first trial of an experiment of kSpecification.
inline constexpr char kTrial[] = "experiments/e-1/trials/bucket_sort-encoder-none-lr0.001-seed0";

template <typename Server>
class CommandsTestOn : public testing::Test {
 protected:
  // Returns the exit code. The output is in out_ and err_.
  int Run(const std::vector<std::string>& arguments) {
    std::ostringstream out;
    std::ostringstream err;
    Program program(out, err);
    program.server = server_.address();
    program.is_terminal = terminal_.width > 0;
    if (program.is_terminal) program.terminal_size = [this] { return terminal_; };
    const int code = Main(arguments, program);
    out_ = out.str();
    err_ = err.str();
    return code;
  }

  std::string File(const std::string& name, const std::string& text) {
    const std::string path = testing::TempDir() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }

  Server server_;
  // The terminal that output goes to. A width of 0 means no terminal.
  TerminalSize terminal_ = {.width = 0, .height = 0};
  std::string out_;
  std::string err_;
};

using CommandsTest = CommandsTestOn<FaultyServer>;

}  // namespace lengthwise::client

#endif  // LENGTHWISE_CLIENT_COMMANDS_TESTING_COMMANDS_FIXTURE_H_
