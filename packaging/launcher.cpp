// bin/NAME of the relocatable archive: starts libexec/NAME with the loader and the libraries in
// lib/. Linked statically, so that it runs where there is neither a C library nor a shell.
// Libraries of the host that LD_PRELOAD names stay out of the program: they may need another C
// library than the one that came along.
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <sys/auxv.h>
#include <unistd.h>

namespace {

/// `path` without its last part and the slash before that.
std::string folder_of(const std::string& path) {
  return path.substr(0, path.rfind('/'));
}

}  // namespace

int main(int count, char** arguments) {
  const char* started = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  char resolved[PATH_MAX];
  if (started == nullptr || realpath(started, resolved) == nullptr) {
    std::perror("error: the program does not find itself");
    return 1;
  }
  const std::string self = resolved;
  const std::string root = folder_of(folder_of(self));
  const std::string libraries = root + "/lib";
  const std::string loader = libraries + "/ld-linux-x86-64.so.2";
  const std::string program = root + "/libexec" + self.substr(self.rfind('/'));

  std::vector<const char*> words{loader.c_str(), "--inhibit-cache", "--library-path",
                                 libraries.c_str(), program.c_str()};
  for (int i = 1; i < count; ++i) words.push_back(arguments[i]);
  words.push_back(nullptr);
  unsetenv("LD_PRELOAD");
  execv(loader.c_str(), const_cast<char* const*>(words.data()));
  std::perror(("error: cannot start " + loader).c_str());
  return 1;
}
