#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hw/node.h"

namespace tessera {

/// Finds a GPU of the catalog by its id, or a user's by its file; throws InputError where there is
/// none.
using GpuFinder = std::function<GpuSpec(const std::string& id)>;

/// What a foreign description says, as far as a ClusterSpec can say it.
struct Imported {
  ClusterSpec cluster;
  std::string gpu;                   ///< reference of the GPU in the catalog
  std::vector<std::string> assumed;  ///< what the file does not say, and what was put in its place
  std::vector<std::string> ignored;  ///< what the file says, but the result does not
};

/// What the caller knows and files do not say.
struct ImportOptions {
  std::string gpu;               ///< reference; empty: guessed where the file allows it
  BytesPerSecond nic_bandwidth;  ///< 0: from the file, else assumed
};

/// NCCL's topology (NCCL_TOPO_DUMP_FILE). `name` stands for the file in messages. All importers
/// throw InputError for what is no such file and for contradictions in it.
Imported import_nccl_topology(const std::string& text, const std::string& name,
                              const ImportOptions& options, const GpuFinder& find_gpu);

/// The matrix of `nvidia-smi topo -m`. It does not name the GPU: `options.gpu` has to.
Imported import_smi_matrix(const std::string& text, const std::string& name,
                           const ImportOptions& options, const GpuFinder& find_gpu);

/// A SimGrid platform (XML, DTD 4 and 4.1): every host becomes a node with one GPU `options.gpu`,
/// every link a link of a `graph` fabric.
Imported import_simgrid_platform(const std::string& text, const std::string& name,
                                 const ImportOptions& options, const GpuFinder& find_gpu);

}  // namespace tessera
