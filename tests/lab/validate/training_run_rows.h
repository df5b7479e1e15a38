#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "lab/validate/runs/training_runs.h"
#include "tests/hw/units/scratch.h"
#include "tests/lab/validate/shipped_rows.h"

namespace tessera::test {

/// A GPT of two layers on one A100; `framework,precision,...` as the columns say.
constexpr const char* kColumns =
    "id,gpu,n_gpus,gpus_per_node,framework,precision,model,family,layers,hidden,heads,kv_heads,ffn,"
    "vocab,tied_embeddings,seq_len,tp,pp,dp,micro_batch,global_batch,recompute,flash_attention,"
    "optimizer,step_time_s,peak_memory_GiB,memory_metric\n";

inline std::string row(const std::string& id, const std::string& framework,
                       const std::string& precision, const std::string& family,
                       const std::string& recompute, const std::string& flash,
                       const std::string& measured) {
  return id + ",A100-SXM4-80GB,1,8," + framework + "," + precision + ",small," + family +
         ",2,1024,16,16,4096,51200,1,1024,1,1,1,2,4," + recompute + "," + flash + ",adam," +
         measured + "\n";
}

inline TrainingRuns read(const std::string& rows, const std::vector<RowFilter>& filters = {}) {
  const ScratchFolder folder;
  return read_training_runs(folder.write("runs.csv", kColumns + rows), shipped_rules(),
                            {.filters = filters});
}

}  // namespace tessera::test
