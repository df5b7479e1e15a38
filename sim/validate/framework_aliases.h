#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/config/catalog.h"

namespace tessera {

/// Which framework profile stands for a framework as a file of measured runs names it.
class FrameworkAliases {
 public:
  /// Reads columns `framework` (part of a name, capitals do not matter) and `profile`. Throws
  /// InputError with what is wrong in the file.
  explicit FrameworkAliases(const std::filesystem::path& file);

  /// Id of the profile with the longest part of `framework`, or `framework` itself where the
  /// catalog has such a profile; empty where nothing fits.
  std::string profile_of(const std::string& framework, const Catalog& catalog) const;

 private:
  struct Alias {
    std::string part;  ///< lower case
    std::string profile;
  };
  std::vector<Alias> aliases_;
};

/// The shipped ones: frameworks/aliases.csv of the catalog.
FrameworkAliases framework_aliases(const Catalog& catalog);

}  // namespace tessera
