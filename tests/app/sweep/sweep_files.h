#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "app/sweep/sweep_grid.h"
#include "tests/hw/units/scratch.h"

namespace tessera {

inline Catalog test_catalog() {
  return Catalog(std::filesystem::path(TESSERA_SOURCE_DIR) / "configs");
}

/// A sweep over GPT-2 on eight H100; `rest` holds axes and conditions.
struct TestSweep {
  explicit TestSweep(const std::string& rest)
      : spec(read_sweep(folder.write("sweep.yaml", kBase + rest), test_catalog())),
        source(spec.base, spec.source, test_catalog()),
        grid(spec, source) {}

  static inline const std::string kBase =
      "base: {model: gpt2, cluster: dgx-h100, training: {sequence_length: 128, global_batch: 8}}\n";
  ScratchFolder folder;
  SweepSpec spec;
  ScenarioSource source;
  SweepGrid grid;
};

}  // namespace tessera
