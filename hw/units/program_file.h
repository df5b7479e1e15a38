#pragma once

#include <filesystem>
#include <string_view>

namespace tessera {

/// The file of this program, absolute and without symbolic links. Call before the working folder
/// changes. Needs no /proc, and is right where a loader that came along was started with the
/// program as its argument.
std::filesystem::path program_file();

/// What an installation holds beside the folder of `program`: `share/tessera` with configs/,
/// predictor/weights/ and results/, links resolved. Need not exist.
std::filesystem::path data_folder_of(const std::filesystem::path& program);

/// The module `name` beside the folder of `program`, in lib/tessera. Need not exist.
std::filesystem::path module_of(const std::filesystem::path& program, std::string_view name);

/// The program `name` of the same installation, as it is to be started. Need not exist.
std::filesystem::path program_beside(const std::filesystem::path& program, std::string_view name);

}  // namespace tessera
