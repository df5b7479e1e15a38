#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "app/import/job/imported_job.h"
#include "app/import/shell/shell_words.h"

namespace tessera {

/// `file` from the folder of the script that names it; beside the script where only its name fits.
std::optional<std::filesystem::path> file_of_script(const std::string& file,
                                                    const JobOptions& options);

/// A file that a script names, as it lies there or as the script writes it.
struct JobText {
  std::string text;
  std::string name;  ///< as messages show it
};
std::optional<JobText> text_of_script(const std::string& file, const ShellScript& script,
                                      const std::string& name, const JobOptions& options);

}  // namespace tessera
