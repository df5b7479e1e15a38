#pragma once

#include <optional>
#include <string>

#include "app/import/job/imported_job.h"
#include "app/import/shell/shell_words.h"

namespace tessera {

/// A training that a file of its own program (YAML) describes, which a script names behind the
/// program or its option; nothing where the script starts none. Settings behind the file
/// ("optimizer.lr=1e-4") go over it.
std::optional<ImportedJob> configured_job(const std::string& text, const ShellScript& script,
                                          const std::string& name, const JobOptions& options);

}  // namespace tessera
