// libFuzzer entry: whatever bytes a config.json holds, reading gives a ModelSpec or an InputError.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "hw/units/input_error.h"
#include "tests/fuzz/input_file.h"
#include "workloads/hugging_face/hugging_face.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    tessera::read_hugging_face_config(std::string(tessera::fuzz::text_of(data, size)),
                                      "fuzzed.json");
  } catch (const tessera::InputError& error) {
    if (error.problems().empty()) std::abort();
  }
  return 0;
}
