// The page around a record, and what is embedded in the library for it.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace prenorm::view {

// One HTML file that needs nothing else: the shell of page/view.html with style, script and the record in it.
std::string page_with(const std::string& json);

// The text of a file that was embedded at build (autograd/view/embed.cmake): page/view.* and the sources of the ops, by
// their path in the source tree. Null where it is not among them, as for ops defined outside the library.
const std::string* embedded_file(std::string_view path);

// A range of lines, from 1, both ends included.
struct LineRange {
  std::size_t first = 0, last = 0;
};
// Where in a source the backward of the op called `op` stands: its node type names it in info(), backward() follows.
// {0, 0} where it is not found.
LineRange backward_lines(const std::string& source, std::string_view op);

}  // namespace prenorm::view
