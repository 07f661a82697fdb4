// Files that become data of the library at build. embed.cmake writes the source of embedded_files().
#pragma once

#include <string>
#include <vector>

namespace prenorm::view {

struct EmbeddedFile {
  std::string path;  // in the source tree
  std::string text;
};
std::vector<EmbeddedFile> embedded_files();

}  // namespace prenorm::view
