// `lengthwise`, the command line.
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "client/commands/program.h"
#include "platform/descriptors.h"

int main(int argc, char** argv) {
  lengthwise::platform::PrepareFiles();
  // gRPC's own log describes handshakes; our errors say what to do.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  lengthwise::client::Program program(std::cout, std::cerr);
  program.is_terminal = isatty(STDOUT_FILENO) == 1;
  return lengthwise::client::Main(std::vector<std::string>(argv + 1, argv + argc), program);
}
