// lengthwise_server: accepts experiments, leases their trials to workers and stores the results.
#include "server/process.h"

int main(int argc, char** argv) {
  using lengthwise::server::Core;
  using lengthwise::server::CoreOptions;
  return lengthwise::server::RunProcess(
      argc, argv, [](const CoreOptions& options) { return Core::Open(options); });
}
