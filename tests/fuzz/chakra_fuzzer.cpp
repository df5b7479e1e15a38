// libFuzzer entry: whatever bytes the execution trace of a rank holds, reading it gives nodes whose
// queues stand in an order that runs, or an InputError; the same for a file of groups.
#include <cstdlib>

#include "hw/units/input_error.h"
#include "sim/formats/chakra/chakra_queues.h"
#include "sim/formats/chakra/chakra_reader.h"
#include "tests/fuzz/input_file.h"

namespace {

void check(const tessera::ChakraTrace& trace) {
  const tessera::ChakraQueues queues = tessera::queue_nodes(trace);
  if (queues.nodes.size() > trace.nodes.size()) std::abort();
  for (std::size_t i = 0; i < queues.nodes.size(); ++i) {
    if (queues.nodes[i].node >= trace.nodes.size()) std::abort();
    for (const std::size_t wait : queues.nodes[i].waits) {
      if (wait >= i) std::abort();
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::filesystem::path file = tessera::fuzz::input_file(".et");
  tessera::fuzz::write(file, tessera::fuzz::text_of(data, size));
  try {
    check(tessera::read_chakra(file));
  } catch (const tessera::InputError& error) {
    if (error.problems().empty()) std::abort();
  }
  try {
    tessera::read_chakra_groups(file);
  } catch (const tessera::InputError& error) {
    if (error.problems().empty()) std::abort();
  }
  return 0;
}
