#include "autograd/view/page.h"

#include <algorithm>
#include <array>
#include <utility>

#include "autograd/check.h"
#include "autograd/view/embedded.h"

namespace prenorm::view {
namespace {

// The page's script, in the order in which its parts follow each other: they share one scope.
constexpr std::array<const char*, 9> kScripts{"model",     "layout", "text",  "tensor", "parts",
                                              "inspector", "tree",   "graph", "main"};

const std::string& asset(std::string_view path) {
  const std::string* text = embedded_file(path);
  check(text != nullptr, "view::Recording: ", path, " is not embedded in this build");
  return *text;
}

std::size_t line_of(const std::string& source, std::size_t place) {
  return 1 + static_cast<std::size_t>(
                 std::count(source.begin(), source.begin() + static_cast<std::ptrdiff_t>(place), '\n'));
}

// From the brace at `open` to the one that closes it; braces in strings and comments of the ops come in pairs.
std::size_t closing_brace(const std::string& source, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < source.size(); ++i) {
    if (source[i] == '{') ++depth;
    if (source[i] == '}' && --depth == 0) return i;
  }
  return std::string::npos;
}

}  // namespace

const std::string* embedded_file(std::string_view path) {
  static const std::map<std::string, std::string, std::less<>> files = [] {
    std::map<std::string, std::string, std::less<>> map;
    for (const EmbeddedFile& file : embedded_files()) map.emplace(file.path, file.text);
    return map;
  }();
  const auto found = files.find(path);
  return found == files.end() ? nullptr : &found->second;
}

std::string page_with(const std::string& json) {
  const std::string& shell = asset("autograd/view/page/view.html");
  // All places are found in the shell alone: what is put in may hold a marker's text.
  std::map<std::size_t, std::pair<std::string_view, const std::string*>> parts;
  const auto put = [&](std::string_view marker, const std::string& text) {
    const std::size_t place = shell.find(marker);
    check(place != std::string::npos, "view::Recording: page/view.html has no ", marker);
    parts[place] = {marker, &text};
  };
  put("/*@css@*/", asset("autograd/view/page/view.css"));
  std::string script;
  for (const char* part : kScripts) script += asset("autograd/view/page/js/" + std::string(part) + ".js");
  put("/*@js@*/", script);
  put("@run@", json);
  std::string page;
  std::size_t done = 0;
  for (const auto& [place, part] : parts) {
    page.append(shell, done, place - done).append(*part.second);
    done = place + part.first.size();
  }
  return page.append(shell, done);
}

LineRange backward_lines(const std::string& source, std::string_view op) {
  const std::size_t name = source.find(".name = \"" + std::string(op) + '"');
  if (name == std::string::npos) return {};
  const std::size_t begin = source.find("void backward(const Tensors", name);
  if (begin == std::string::npos) return {};
  const std::size_t open = source.find('{', begin);
  if (open == std::string::npos) return {};
  const std::size_t end = closing_brace(source, open);
  if (end == std::string::npos) return {};
  return {line_of(source, begin), line_of(source, end)};
}

}  // namespace prenorm::view
