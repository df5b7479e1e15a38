#pragma once

#include <cstdlib>
#include <string>

#include "app/import/imported.h"
#include "hw/topology/topology.h"
#include "hw/units/input_error.h"
#include "tests/fuzz/input_file.h"
#include "tests/hw/boxes.h"

namespace tessera::fuzz {

/// Any GPU, so that no catalog has to be read: 18 NVLinks.
inline GpuSpec any_gpu(const std::string&) {
  return boxes::gpu("any", Architecture::hopper, "9.0", 18);
}

/// Whatever bytes a file holds, importing gives a cluster that can be crossed, or an InputError
/// that says why.
template <class Importer>
void import_or_refuse(Importer importer, const std::uint8_t* data, std::size_t size) {
  Imported imported;
  try {
    imported =
        importer(std::string(text_of(data, size)), "fuzzed", ImportOptions{"any", {}}, any_gpu);
  } catch (const InputError& error) {
    if (error.problems().empty()) std::abort();
    return;
  }
  const Topology topology(imported.cluster);
  const int last = topology.gpu_count() - 1;
  if (last > 0 && topology.route(0, last).links.empty()) std::abort();
  if (topology.host_to_device(last).links.empty()) std::abort();
}

}  // namespace tessera::fuzz
