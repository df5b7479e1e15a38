#include "sim/formats/output_file.h"

#include <boost/iostreams/device/back_inserter.hpp>
#include <boost/iostreams/filter/gzip.hpp>
#include <boost/iostreams/filtering_stream.hpp>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <unistd.h>

#include "hw/units/input_error.h"

namespace tessera {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void throw_unwritable(const fs::path& path, const std::string& reason) {
  throw InputError(Problem{.where = path.string(),
                           .what = "cannot be written: " + reason,
                           .hint = "name a file in a folder that exists and that you may write"});
}

bool write_all(const fs::path& path, std::string_view contents) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  out.close();
  return !out.fail();
}

/// A device or a pipe (/dev/stdout) must be written in place: a rename would replace it.
bool is_special_file(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status);
}

void write_and_rename(const fs::path& path, std::string_view contents) {
  if (fs::is_directory(path)) throw_unwritable(path, "it is a directory");
  fs::path temporary = path;
  temporary += ".tmp" + std::to_string(getpid());
  std::error_code failure;
  if (!write_all(temporary, contents)) {
    failure = std::error_code(errno, std::generic_category());
  } else {
    fs::rename(temporary, path, failure);
  }
  if (!failure) return;
  std::error_code ignored;
  fs::remove(temporary, ignored);
  throw_unwritable(path, failure.message());
}

}  // namespace

std::string gzip(std::string_view contents) {
  namespace io = boost::iostreams;
  std::string compressed;
  io::filtering_ostream out;
  out.push(io::gzip_compressor(io::gzip_params(io::gzip::best_speed)));  // mtime 0 by default
  out.push(io::back_inserter(compressed));
  out.write(contents.data(), static_cast<std::streamsize>(contents.size()));
  out.reset();
  return compressed;
}

void write_output_file(const fs::path& path, std::string_view contents) {
  const std::string bytes = path.extension() == ".gz" ? gzip(contents) : std::string(contents);
  if (!is_special_file(path)) return write_and_rename(path, bytes);
  if (!write_all(path, bytes)) throw_unwritable(path, std::strerror(errno));
}

}  // namespace tessera
