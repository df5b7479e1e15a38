#include "app/import/job/launch/job_files.h"

#include "sim/config/files/text_file.h"

namespace tessera {

namespace fs = std::filesystem;

std::optional<fs::path> file_of_script(const std::string& file, const JobOptions& options) {
  const fs::path folder = options.folder.empty() ? fs::path(".") : options.folder;
  if (file.empty() || is_unknown(file)) return std::nullopt;
  for (const fs::path& path : {folder / file, folder / fs::path(file).filename()})
    if (fs::is_regular_file(path)) return path;
  return std::nullopt;
}

std::optional<JobText> text_of_script(const std::string& file, const ShellScript& script,
                                      const std::string& name, const JobOptions& options) {
  if (const auto written = script.files.find(file); written != script.files.end())
    return JobText{written->second, name + " (" + file + ")"};
  const auto path = file_of_script(file, options);
  if (!path) return std::nullopt;
  return JobText{read_text_file(*path), shown_path(*path)};
}

}  // namespace tessera
