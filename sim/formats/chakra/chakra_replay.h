#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/formats/chakra/chakra_reader.h"
#include "sim/plan/timed_program.h"

namespace tessera {

/// Execution traces of a job, one per rank, with the groups that their collectives name.
struct ChakraJob {
  std::vector<ChakraTrace> ranks;
  ChakraGroups groups;
};

/// Reads `PREFIX.0.et`, `PREFIX.1.et`, ... as far as there are any, and groups from `groups_file`,
/// if it is empty from `PREFIX.groups.json` where there is one. Throws InputError.
ChakraJob read_chakra_job(const std::filesystem::path& prefix,
                          const std::filesystem::path& groups_file);

/// How a job is replayed.
struct ReplaySettings {
  ClusterSpec cluster;  ///< rank r runs on its GPU r
  CollectiveSettings collectives;
  Precision precision = Precision::bf16;  ///< of the peak, where a node gives work and no duration
};

struct ChakraReplay {
  TimedProgram timed;
  std::vector<std::string> notes;  ///< what was taken for something else
};

/// The program of a job: every rank has one of its own, kernels take the durations of the traces,
/// collectives and messages what they cost on the cluster. Throws InputError with everything that
/// does not fit together: unknown groups, messages with one end.
ChakraReplay replay_chakra(const ChakraJob& job, const ReplaySettings& settings);

}  // namespace tessera
