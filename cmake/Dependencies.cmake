# Debian 12 packages (tools/packages.txt). SimGrid is LGPL and linked dynamically; it ships no CMake package.
find_package(PkgConfig REQUIRED)
pkg_check_modules(SimGrid REQUIRED IMPORTED_TARGET GLOBAL simgrid>=3.32)
find_package(Boost 1.74 REQUIRED COMPONENTS iostreams)
find_package(Protobuf 3.21 REQUIRED)
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json 3.11 REQUIRED)
find_package(ZLIB REQUIRED)
find_package(pugixml REQUIRED)
find_path(TOMLPLUSPLUS_INCLUDE NAMES toml++/toml.h REQUIRED)  # headers alone
find_package(SQLite3 3.40 REQUIRED)
find_library(CSV_LIBRARY NAMES libcsv.so REQUIRED)  # LGPL: linked dynamically
find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
# Debian's own interpreter first: one from elsewhere on the PATH may be anything.
find_program(TESSERA_PYTHON python3 HINTS /usr/bin REQUIRED)
