#pragma once

#include <string>

#include "hw/units/input_error.h"
#include "workloads/hugging_face/hugging_face.h"

namespace tessera::test {

inline HuggingFaceModel read_config(const std::string& text) {
  return read_hugging_face_config(text, "config.json");
}

/// Why it is refused; "accepted" where it is not.
inline std::string config_error(const std::string& text) {
  try {
    read_config(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace tessera::test
