#include "hw/units/program_file.h"

#include <cerrno>
#include <system_error>

#include <sys/auxv.h>

namespace tessera {
namespace {

namespace fs = std::filesystem;

/// Absolute and as canonical as the file system allows.
fs::path resolved(const fs::path& path) {
  std::error_code failure;
  const fs::path found = fs::weakly_canonical(fs::absolute(path, failure), failure);
  return failure ? path : found;
}

/// The kernel loads no interpreter for a loader that is started itself.
bool loader_was_started() {
  return getauxval(AT_BASE) == 0;
}

}  // namespace

fs::path program_file() {
  const auto* executed = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  const bool named_by_kernel = executed != nullptr && !loader_was_started();
  return resolved(named_by_kernel ? executed : program_invocation_name);
}

fs::path data_folder_of(const fs::path& program) {
  return resolved(program.parent_path().parent_path() / "share" / "tessera");
}

fs::path module_of(const fs::path& program, std::string_view name) {
  return program.parent_path().parent_path() / "lib" / "tessera" / name;
}

fs::path program_beside(const fs::path& program, std::string_view name) {
  return program.parent_path().parent_path() / "bin" / name;
}

}  // namespace tessera
