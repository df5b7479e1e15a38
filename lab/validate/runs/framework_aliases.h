#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "hw/gpu.h"
#include "sim/collectives/collective.h"
#include "sim/config/catalog.h"

namespace tessera {

/// What a row says of the time its code is from.
struct RunFacts {
  std::string where;  ///< file:line, for messages
  std::string gpu;
  Architecture architecture = Architecture::ampere;
  bool flash_attention = false;  ///< stated
  bool fp8 = false;
  int year = 0;  ///< 0: not stated
};

/// "Megatron-LM 2024" -> 2024; 0 where no year from 2000 to 2099 stands alone in `text`.
int year_in(const std::string& text);

/// What stands for a framework.
struct ProfileChoice {
  std::string profile;  ///< id
  NcclTuner tuner = NcclTuner::current;
};

/// Which framework profile stands for a framework as a file of measured runs names it, and which
/// NCCL such runs had. A name that outlived its code stands for a profile only as far as the facts
/// of a run allow: GPUs up to a generation, no fused attention or fp8, up to a year.
class FrameworkAliases {
 public:
  /// Reads columns `framework` (part of a name, capitals do not matter), `profile` and, optional,
  /// `nccl` (2.8, or empty for a current one), `until` (a generation of GPUs such as ampere,
  /// `unfused`, a year) and `later` (profile of newer runs of that name; empty: there is none).
  /// Throws InputError with what is wrong in the file.
  explicit FrameworkAliases(const std::filesystem::path& file);

  /// Profile and NCCL of a run: the catalog's profile of that id, else the one with the longest
  /// part of `framework`, or the later one of that name; megatron-local for an empty name. Throws
  /// InputError where nothing stands for the name, or nothing as new as the run.
  ProfileChoice choice_of(const std::string& framework, const RunFacts& facts,
                          const Catalog& catalog) const;

 private:
  struct Alias {
    std::string part;  ///< lower case
    std::string profile;
    NcclTuner tuner = NcclTuner::current;
    Architecture newest = Architecture::xe2;
    bool unfused = false;
    int last_year = 0;  ///< 0: any
    std::string until;  ///< as written
    std::string later;

    bool is_older_than(const RunFacts& facts) const {
      return facts.architecture > newest || (unfused && (facts.flash_attention || facts.fp8)) ||
             (last_year > 0 && facts.year > last_year);
    }
  };
  /// With the longest part of `framework`; null where none fits.
  const Alias* find(const std::string& framework) const;
  /// Whether every word is known.
  static bool read_until(Alias& alias);
  std::vector<Alias> aliases_;
};

/// The shipped ones: frameworks/aliases.csv of the catalog.
FrameworkAliases framework_aliases(const Catalog& catalog);

}  // namespace tessera
