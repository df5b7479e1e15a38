#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/collectives/collective.h"
#include "sim/config/catalog.h"

namespace tessera {

/// Which framework profile stands for a framework as a file of measured runs names it, and which
/// NCCL such runs had.
class FrameworkAliases {
 public:
  /// Reads columns `framework` (part of a name, capitals do not matter), `profile` and, optional,
  /// `nccl` (2.8, or empty for a current one). Throws InputError with what is wrong in the file.
  explicit FrameworkAliases(const std::filesystem::path& file);

  /// Id of the profile with the longest part of `framework`, or `framework` itself where the
  /// catalog has such a profile; empty where nothing fits.
  std::string profile_of(const std::string& framework, const Catalog& catalog) const;
  /// The current one where nothing fits.
  NcclTuner tuner_of(const std::string& framework) const;

 private:
  struct Alias {
    std::string part;  ///< lower case
    std::string profile;
    NcclTuner tuner = NcclTuner::current;
  };
  /// With the longest part of `framework`; null where none fits.
  const Alias* find(const std::string& framework) const;
  std::vector<Alias> aliases_;
};

/// The shipped ones: frameworks/aliases.csv of the catalog.
FrameworkAliases framework_aliases(const Catalog& catalog);

}  // namespace tessera
