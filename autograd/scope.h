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
  friend class OuterScope;
  std::shared_ptr<const std::string> outer_;
  Scope* enclosing_;
};

// Sets the path back to what it was before the innermost scope opened, until this object ends: for a callable that was
// handed into a module but belongs to its caller.
class OuterScope {
 public:
  OuterScope();
  ~OuterScope();
  OuterScope(const OuterScope&) = delete;
  OuterScope& operator=(const OuterScope&) = delete;

 private:
  std::shared_ptr<const std::string> inner_;
  Scope* innermost_;
};

}  // namespace prenorm
