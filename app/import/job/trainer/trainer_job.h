#pragma once

#include <optional>
#include <string>

#include "app/import/job/imported_job.h"
#include "app/import/shell/shell_words.h"

namespace tessera {

/// A training that Hugging Face's Trainer runs, started by torchrun, deepspeed, accelerate or
/// python; nothing where a script starts none. `of_another`: by a program around it, LLaMA-Factory
/// or axolotl, whose file is translated. Throws InputError with what cannot be read.
std::optional<ImportedJob> trainer_job(const std::string& text, const ShellScript& script,
                                       const std::string& name, const JobOptions& options,
                                       bool of_another);

}  // namespace tessera
