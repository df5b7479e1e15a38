#pragma once

#include <filesystem>
#include <string>
#include <utility>

#include "hw/units/input_error.h"

namespace tessera {

/// Throws InputError over the weights file `path`. `remedy`: what `tessera train` has to do.
[[noreturn]] inline void refuse_weights(const std::filesystem::path& path, std::string what,
                                        const char* remedy) {
  throw InputError({.where = path.string(),
                    .what = std::move(what),
                    .hint = std::string("use predictor/weights/tessera.pb of this version, or run "
                                        "tessera train ") +
                            remedy});
}

}  // namespace tessera
