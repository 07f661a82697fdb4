// The stack of module paths: which layer is being called on this thread, "blocks.0.attn".
//
// Every call of a module opens a scope, every node notes the path it was made under. Error messages, the viewer and
// the checks of NaN show it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace prenorm {

class Scope {
 public:
  // Appends `name` to the path until the scope ends. An empty name (a root module's) leaves the path as it is.
  explicit Scope(std::string_view name);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

  // The dotted path of the open scopes; "" outside all. Shared, because each node keeps it.
  static std::shared_ptr<const std::string> path();

 private:
  std::shared_ptr<const std::string> outer_;
};

}  // namespace prenorm
