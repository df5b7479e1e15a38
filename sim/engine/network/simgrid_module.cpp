#include "sim/engine/network/simgrid_module.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include <dlfcn.h>

#include "hw/units/input_error.h"
#include "hw/units/program_file.h"

namespace tessera {
namespace {

using StartLinks = SharedLinks* (*)(const LinkPaths*, int gpus);  // sim/simgrid/module.cpp

bool loaded = false, started = false;

/// Beside the folder of the program, which the loader does not know where it was started itself;
/// for other programs, as tests, over their run path.
std::string module_file() {
  const std::filesystem::path beside = module_of(program_file(), TESSERA_SIMGRID_MODULE);
  std::error_code unreadable;
  return std::filesystem::exists(beside, unreadable) ? beside.string() : TESSERA_SIMGRID_MODULE;
}

void* opened_module() {
  void* const module = dlopen(module_file().c_str(), RTLD_NOW | RTLD_LOCAL);
  if (module == nullptr)
    throw InputError({.where = TESSERA_SIMGRID_MODULE,
                      .what = std::string("cannot be loaded: ") + dlerror(),
                      .hint = "keep lib/tessera beside the folder of the program, as in an "
                              "installation, and install SimGrid"});
  return module;
}

void refuse_other_version(void* module) {
  const auto* const version = static_cast<const char*>(dlsym(module, "tessera_module_version"));
  if (version != nullptr && std::string_view(version) == TESSERA_VERSION) return;
  throw InputError({.where = TESSERA_SIMGRID_MODULE,
                    .what = "is of version " +
                            std::string(version != nullptr ? version : "unknown") +
                            ", the program of " TESSERA_VERSION,
                    .hint = "take program and lib/tessera from the same build"});
}

StartLinks loaded_start() {
  static const auto start = [] {
    void* const module = opened_module();
    refuse_other_version(module);
    return reinterpret_cast<StartLinks>(dlsym(module, "tessera_start_shared_links"));
  }();
  loaded = true;
  return start;
}

}  // namespace

void load_simgrid() {
  loaded_start();
}

bool simgrid_is_loaded() {
  return loaded;
}

std::unique_ptr<SharedLinks> start_shared_links(const LinkPaths& paths, int gpus) {
  const StartLinks start = loaded_start();
  started = true;
  return std::unique_ptr<SharedLinks>(start(&paths, gpus));
}

bool simgrid_has_started() {
  return started;
}

}  // namespace tessera
