// lengthwise_server: accepts, schedules, stores, streams.
#include "server/coordinator.h"
#include "server/process.h"

int main(int argc, char** argv) {
  return lengthwise::server::RunProcess(argc, argv, lengthwise::server::Coordinator::Open);
}
