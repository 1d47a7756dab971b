// `lengthwise`, the command line.
#include <iostream>
#include <string>
#include <vector>

#include "client/commands/program.h"
#include "client/terminal/terminal.h"

int main(int argc, char** argv) {
  lengthwise::client::Program program(std::cout, std::cerr);
  program.is_terminal = lengthwise::client::OutputIsTerminal();
  return lengthwise::client::Main(std::vector<std::string>(argv + 1, argv + argc), program);
}
