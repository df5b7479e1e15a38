#include "sim/simgrid/simgrid_session.h"

#include <csignal>
#include <stdexcept>
#include <string>
#include <vector>

namespace tessera {
namespace {

// SimGrid reads these while it starts, as if from its command line.
// Its log lines are for SimGrid's developers, and the engine reports deadlocks itself
// (deadlock_error.h), so the category that lists the blocked actors writes nowhere: it has no
// appender of its own and does not hand on to its parent's.
const std::vector<std::string> kArguments = {
    "tessera", "--log=root.thres:critical", "--log=ker_engine.add:0",
    "--cfg=contexts/stack-size:64",  // KiB; a host process only loops over its ops
};

// CM02 without its TCP corrections: the defaults multiply latencies by 13, bandwidths by 0.97, cap
// every flow at 4 MiB per round trip and charge 5 % for acknowledgements, none of which NVLink,
// PCIe or InfiniBand do. Precision: the default of 1 ns would merge events of short kernels.
const std::vector<std::string> kSettings = {
    "network/model:CM02",
    "network/crosstraffic:0",
    "network/TCP-gamma:1e15",
    "surf/precision:1e-12",
};

// SimGrid takes over SIGINT and SIGSEGV when it starts; what Ctrl-C does is the program's decision.
class KeepSignalHandlers {
 public:
  KeepSignalHandlers() {
    sigaction(SIGINT, nullptr, &interrupt_);
    sigaction(SIGSEGV, nullptr, &fault_);
  }
  ~KeepSignalHandlers() {
    sigaction(SIGINT, &interrupt_, nullptr);
    sigaction(SIGSEGV, &fault_, nullptr);
  }
  KeepSignalHandlers(const KeepSignalHandlers&) = delete;
  KeepSignalHandlers& operator=(const KeepSignalHandlers&) = delete;

 private:
  struct sigaction interrupt_ {};
  struct sigaction fault_ {};
};

bool started = false;

void claim_the_only_session() {
  if (started)
    throw std::logic_error("a process can run one simulation; call the next in run_forked()");
  started = true;
}

}  // namespace

std::unique_ptr<simgrid::s4u::Engine> start_simgrid() {
  claim_the_only_session();
  const KeepSignalHandlers keep;
  std::vector<std::string> arguments = kArguments;
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  int argc = static_cast<int>(argv.size());
  argv.push_back(nullptr);
  auto engine = std::make_unique<simgrid::s4u::Engine>(&argc, argv.data());
  for (const std::string& setting : kSettings) simgrid::s4u::Engine::set_config(setting);
  return engine;
}

}  // namespace tessera
