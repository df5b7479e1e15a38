#pragma once

#include <array>
#include <string_view>

namespace tessera {

/// Commands of the program tessera-lab, which `tessera` hands on to it.
struct LabCommand {
  std::string_view name;
  std::string_view description;
};
inline constexpr std::array kLabCommands{
    LabCommand{"predict", "Predict a list of kernels; print the errors where measured"},
    LabCommand{"train", "Train the kernel model on measured kernels"},
    LabCommand{"calibrate", "Fit a model to measurements; write a file that corrects it"},
    LabCommand{"validate", "Simulate measured runs and print the errors"},
    LabCommand{"reproduce", "Repeat published measurements"},
};

/// Prints the commands of tessera-lab as JSON, for the manual and for shells; not for users.
inline constexpr std::string_view kTreeCommand = "command-tree";

}  // namespace tessera
