#include "training/options.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "training/data.h"

namespace prenorm::training {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTraining = "Training";
constexpr const char* kModel = "Model";
constexpr const char* kFiles = "Files";
constexpr const char* kSamples = "Samples, with --text";

enum class Keep { no, changeable, fixed };  // in a checkpoint; fixed: a resumed run must agree

// One row a command-line option: all that the help, the command line and checkpoints need to know of it. Values are
// text to CLI11, which keeps its templates, and with them the time to compile this file, small.
struct Option {
  std::string name;   // without the dashes
  std::string value;  // what the help calls its value; empty: a flag
  std::string help;
  const char* group;
  Keep keep;
  std::string expected;  // "a whole number from 1 to 10"
  std::function<std::string(const Options&)> write;
  std::function<bool(Options&, const std::string&)> read;  // false, and nothing changed: not what is expected
};

// A number as the shortest text that reads back as the same number.
template <class T>
std::string to_text(T value) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

// True if all of the text is a number from `least` to `most`; NaN is not.
template <class T>
bool read_number(const std::string& text, T least, T most, T& out) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= least && value <= most)) return false;
  out = value;
  return true;
}

template <class T>
Option number(const std::string& name, T Options::*member, T least, T most, const std::string& help, const char* group,
              Keep keep) {
  const std::string kind = std::is_integral_v<T> ? "a whole number" : "a number";
  return {.name = name,
          .value = std::is_integral_v<T> ? "N" : "X",
          .help = help,
          .group = group,
          .keep = keep,
          .expected = kind + " from " + to_text(least) + " to " + to_text(most),
          .write = [=](const Options& o) { return to_text(o.*member); },
          .read = [=](Options& o, const std::string& text) { return read_number(text, least, most, o.*member); }};
}

template <class T>
Option choice(const std::string& name, const std::string& value, T Options::*member,
              std::vector<std::pair<std::string, T>> choices, const std::string& help) {
  std::string expected;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    expected += (i == 0 ? "" : i + 1 < choices.size() ? ", " : " or ") + choices[i].first;
  }
  return {.name = name,
          .value = value,
          .help = expected + ": " + help,
          .group = kModel,
          .keep = Keep::fixed,
          .expected = expected,
          .write =
              [=](const Options& o) {
                return std::find_if(choices.begin(), choices.end(),
                                    [&](const auto& c) { return c.second == o.*member; })
                    ->first;
              },
          .read =
              [=](Options& o, const std::string& text) {
                const auto found =
                    std::find_if(choices.begin(), choices.end(), [&](const auto& c) { return c.first == text; });
                if (found == choices.end()) return false;
                o.*member = found->second;
                return true;
              }};
}

Option text(std::string name, std::string value, std::string Options::*member, std::string help, const char* group) {
  return {.name = std::move(name),
          .value = std::move(value),
          .help = std::move(help),
          .group = group,
          .keep = Keep::no,
          .expected = "text that is not empty",
          .write = [=](const Options& o) { return o.*member; },
          .read =
              [=](Options& o, const std::string& value) {
                if (value.empty()) return false;
                o.*member = value;
                return true;
              }};
}

// A flag "no-…" that sets `member` to false. Its text is "yes" where it was given.
Option negation(std::string name, bool Options::*member, std::string help, const char* group, Keep keep) {
  return {.name = std::move(name),
          .value = "",
          .help = std::move(help),
          .group = group,
          .keep = keep,
          .expected = "yes or no",
          .write = [=](const Options& o) { return o.*member ? "no" : "yes"; },
          .read =
              [=](Options& o, const std::string& value) {
                o.*member = value != "yes";
                return value == "yes" || value == "no";
              }};
}

// A flag that sets `member` to true, for this run only.
Option flag(std::string name, bool Options::*member, std::string help, const char* group) {
  Option option = negation(std::move(name), member, std::move(help), group, Keep::no);
  option.write = [=](const Options& o) { return o.*member ? "yes" : "no"; };
  option.read = [=](Options& o, const std::string& value) {
    o.*member = value == "yes";
    return value == "yes" || value == "no";
  };
  return option;
}

// The path of the text is kept as an absolute one, since a run may be resumed from another folder; empty for the rule.
Option text_file() {
  Option option = text("text", "FILE", &Options::text,
                       "Learn the bytes of this file, all but the last tenth,\ninstead of the rule", kTraining);
  option.keep = Keep::changeable;
  option.expected = "the path of a file";
  option.write = [](const Options& o) { return o.text.empty() ? "" : fs::absolute(o.text).string(); };
  return option;
}

Option threads() {
  Option option = number("threads", &Options::threads, 1, 1024, "Threads", kTraining, Keep::changeable);
  option.expected += ", or all";
  option.write = [](const Options& o) { return o.threads == 0 ? "all" : to_text(o.threads); };
  option.read = [](Options& o, const std::string& value) {
    if (value != "all") return read_number(value, 1, 1024, o.threads);
    o.threads = 0;
    return true;
  };
  return option;
}

const std::vector<Option>& table() {
  constexpr std::int64_t any_size = 1'000'000'000, any_count = 1'000'000'000'000;
  const auto changeable = Keep::changeable, fixed = Keep::fixed, no = Keep::no;
  static const std::vector<Option> options{
      text_file(),
      number("steps", &Options::steps, std::int64_t{0}, any_count, "Steps in all, those before a resume included",
             kTraining, changeable),
      number("batch", &Options::batch, std::int64_t{1}, any_size, "Sequences a step", kTraining, changeable),
      number("length", &Options::length, std::int64_t{1}, any_size, "Tokens a sequence", kTraining, fixed),
      number("lr", &Options::lr, 0.0, 1e6, "Learning rate of Adam", kTraining, changeable),
      number("warmup", &Options::warmup, std::int64_t{0}, any_count, "Steps over which the learning rate rises to --lr",
             kTraining, changeable),
      number("clip", &Options::clip, 0.0, 1e30,
             "Scale gradients down to this norm, 0: never;\na step whose norm is not finite is left out", kTraining,
             changeable),
      number("seed", &Options::seed, std::uint64_t{0}, ~std::uint64_t{0}, "Seed of the weights and batches", kTraining,
             changeable),
      threads(),
      flag("nan-check", &Options::nan_check,
           "Stop at the first NaN or infinity and name the operation\nthat made it; slower", kTraining),
      number("depth", &Options::depth, std::int64_t{0}, any_size, "Blocks", kModel, fixed),
      number("d-model", &Options::d_model, std::int64_t{1}, any_size, "Features, a multiple of --heads", kModel, fixed),
      number("heads", &Options::heads, std::int64_t{1}, any_size, "Heads of attention", kModel, fixed),
      choice<nn::Norm>("norm", "NORM", &Options::norm,
                       {{"unbiased", nn::Norm::unbiased},
                        {"standard", nn::Norm::standard},
                        {"rms", nn::Norm::rms},
                        {"none", nn::Norm::none}},
                       "how to normalise"),
      choice<nn::Order>("order", "ORDER", &Options::order, {{"pre", nn::Order::pre}, {"post", nn::Order::post}},
                        "norm before or after each branch"),
      negation("no-residual", &Options::residual, "Without residual connections", kModel, fixed),
      text("checkpoint", "FILE", &Options::checkpoint, "Checkpoint to write; with --resume: that one", kFiles),
      number("checkpoint-every", &Options::checkpoint_every, std::int64_t{1}, any_count, "Steps between checkpoints",
             kFiles, no),
      negation("no-checkpoint", &Options::save, "Write no checkpoint", kFiles, no),
      text("resume", "FILE", &Options::resume, "Go on from this checkpoint, with its options", kFiles),
      text("log", "FILE", &Options::log, "CSV file, a row a step:\nstep,loss,grad_norm,tokens_per_s", kFiles),
      text("report", "FILE", &Options::report,
           "HTML file to look at: curves, gradient norms by\nlayer, spread by depth, attention", kFiles),
      text("prompt", "TEXT", &Options::prompt, "What the samples go on from,\nelse the beginning of the held-out part",
           kSamples),
      number("temperature", &Options::temperature, 0.0, 100.0, "Below 1 keeps to likely bytes, 0 takes the likeliest",
             kSamples, no),
  };
  return options;
}

Options text_defaults() {
  Options o;
  o.depth = 4;
  o.d_model = 128;
  o.length = 64;
  o.batch = 16;
  o.lr = 1e-3;
  o.warmup = 100;
  o.steps = 2000;
  return o;
}

// "Blocks (rule: 8, text: 4)"
std::string help_with_defaults(const Option& option) {
  const std::string rule = option.write(Options{}), text = option.write(text_defaults());
  if (option.value.empty() || rule.empty()) return option.help;
  return option.help + (rule == text ? " (" + rule + ")" : " (rule: " + rule + ", text: " + text + ")");
}

using Given = std::map<std::string, std::string>;  // by the option's name

// Fills in what the command line gives and returns nothing, or returns the help that it asks for.
std::optional<std::string> read_command_line(int argc, const char* const* argv, Given& given) {
  CLI::App app(
      "Trains TinyLM, a small Transformer, to predict the next token, and shows what it learned:\n"
      "the rule next = (current + 1) mod 50, or any text.\n",
      "next_token");
  app.get_formatter()->column_width(25);
  app.set_help_flag("-h,--help", "This help")->group(kTraining);
  for (const Option& option : table()) {
    CLI::Option* declared = nullptr;
    if (option.value.empty()) {
      declared = app.add_flag_callback("--" + option.name, [&given, &option] { given[option.name] = "yes"; });
      declared->disable_flag_override();
    } else {
      declared = app.add_option("--" + option.name, [&given, &option](const CLI::results_t& values) {
        given[option.name] = values.back();
        return true;
      });
      declared->type_name(option.value)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
    }
    declared->description(help_with_defaults(option))->group(option.group);
  }
  app.allow_extras();  // to be refused below
  app.footer(
      "Ctrl-C stops after saving. Examples:\n"
      "  next_token --text book.txt --log loss.csv\n"
      "  next_token --resume next_token.safetensors --steps 600");
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::string help = app.help();
    for (std::size_t at; (at = help.find("\n\n\n")) != std::string::npos;) help.erase(at, 1);
    return help;
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string message = error.what();  // begins with the option's name, that of a flag without dashes
    const std::string name = message.substr(0, message.find_first_of(": "));
    fail(name.starts_with("--") ? name + ": expected a value" : "--" + name + " takes no value",
         "; --help lists the options");
  } catch (const CLI::ParseError& error) {
    fail(error.what(), "; --help lists the options");
  }
  for (const auto& [name, value] : given) {
    // CLI11 takes whatever follows for the value, even the next option.
    check(!app.get_option_no_throw(value.substr(0, value.find('='))) || !value.starts_with("--"), "--", name,
          ": expected a value, got ", value, "; --help lists the options");
  }
  for (const std::string& argument : app.remaining()) {
    fail(argument.starts_with('-') ? "unknown option " : "unexpected argument ", "'", argument,
         "'; --help lists the options");
  }
  return std::nullopt;
}

void read_kept(const optim::Checkpoint& checkpoint, const std::string& path, Options& o) {
  for (const Option& option : table()) {
    if (option.keep == Keep::no) continue;
    const auto found = checkpoint.metadata.find("option." + option.name);
    check(found != checkpoint.metadata.end(), path, ": not a checkpoint of next_token: it keeps no option ",
          option.name);
    const bool rule = option.name == "text" && found->second.empty();
    check(rule || option.read(o, found->second), path, ": not a checkpoint of next_token: its option ", option.name,
          " is '", found->second, "', expected ", option.expected);
  }
}

void read_given(const Given& given, Options& o) {
  for (const Option& option : table()) {
    const auto found = given.find(option.name);
    if (found == given.end()) continue;
    const std::string before = option.write(o);
    check(option.read(o, found->second), "--", option.name, " '", found->second, "': expected ", option.expected);
    if (o.resume.empty() || option.keep != Keep::fixed) continue;
    check(option.write(o) == before, "--", option.name, option.value.empty() ? "" : " " + found->second,
          " does not agree with ", o.resume, ", which has ", option.value.empty() ? "none" : before,
          "; leave it out, or start anew without --resume");
  }
}

// Bytes that training takes at least: weights, gradients and Adam's two averages, and what backward needs of a step.
double least_memory(const Options& o) {
  const auto B = static_cast<double>(o.batch), T = static_cast<double>(o.length), d = static_cast<double>(o.d_model),
             depth = static_cast<double>(o.depth), vocab = static_cast<double>(o.vocab()),
             max_len = static_cast<double>(o.model().max_len);
  const double parameters = d * (2 * vocab + max_len) + 12 * depth * d * d;
  const double values = B * T * (vocab + 12 * depth * d);
  return 4 * (4 * parameters + values);
}

bool same_file(const std::string& a, const std::string& b) {
  const auto resolved = [](const std::string& path) {
    std::error_code ignored;
    return fs::weakly_canonical(fs::absolute(path), ignored);
  };
  return !a.empty() && !b.empty() && resolved(a) == resolved(b);
}

void check_together(const Options& o, const Given& given) {
  for (const char* name : {"prompt", "temperature"}) {
    check(!o.text.empty() || !given.contains(name), "--", name, " goes with --text");
  }
  check(o.save || !given.contains("checkpoint"), "--checkpoint and --no-checkpoint exclude each other");
  check(o.d_model % o.heads == 0, "--d-model ", o.d_model, " is not a multiple of --heads ", o.heads);
  check(o.norm != nn::Norm::unbiased || o.d_model > 1, "--norm unbiased needs a --d-model of at least 2");
  check(!same_file(o.log, o.text), "--log and --text are the same file");
  check(!same_file(o.log, o.resume), "--log and --resume are the same file");
  check(!same_file(o.report, o.text), "--report and --text are the same file");
  check(!same_file(o.report, o.log), "--report and --log are the same file");
  check(!same_file(o.report, o.resume), "--report and --resume are the same file");
  if (o.save) {
    check(!same_file(o.checkpoint, o.text), "--checkpoint and --text are the same file");
    check(!same_file(o.checkpoint, o.log), "--checkpoint and --log are the same file");
    check(!same_file(o.checkpoint, o.report), "--checkpoint and --report are the same file");
  }
  const double needed = least_memory(o);
  const double there = static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGE_SIZE));
  check(needed < there, "training needs at least ", to_text(std::ceil(needed / (1 << 30))),
        " GiB of memory, more than this machine has; choose a smaller --d-model, --depth, --batch or --length");
}

}  // namespace

nn::TinyLMOptions Options::model() const {
  return {.d_model = d_model,
          .n_heads = heads,
          .n_layers = depth,
          .max_len = std::max<std::int64_t>(64, length),
          .use_residual = residual,
          .norm = norm,
          .order = order};
}

std::int64_t Options::vocab() const { return text.empty() ? Rule::kVocab : Text::kVocab; }

SafetensorsMetadata to_metadata(const Options& options) {
  SafetensorsMetadata metadata;
  for (const Option& option : table()) {
    if (option.keep != Keep::no) metadata["option." + option.name] = option.write(options);
  }
  return metadata;
}

// "name\0value\0" each; values that are empty stay at their default, which is empty, too.
std::string to_bytes(const Options& options) {
  std::string bytes;
  for (const Option& option : table()) {
    if (const std::string value = option.write(options); !value.empty()) bytes += option.name + '\0' + value + '\0';
  }
  return bytes;
}

Options from_bytes(const std::string& bytes) {
  Given given;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::string name = bytes.c_str() + at;
    at += name.size() + 1;
    given[name] = bytes.c_str() + at;
    at += given[name].size() + 1;
  }
  Options o;
  for (const Option& option : table()) {
    const auto found = given.find(option.name);
    check(found == given.end() || option.read(o, found->second),
          "this rank's program is not that of rank 0: it cannot ", "read --", option.name, " '",
          found == given.end() ? "" : found->second, "'");
  }
  return o;
}

Parsed parse(int argc, const char* const* argv) {
  Given given;
  Parsed parsed;
  parsed.help = read_command_line(argc, argv, given);
  if (parsed.help) return parsed;

  // Defaults depend on what is learned; what a checkpoint keeps goes before them, and the command line before both.
  Options& o = parsed.options;
  if (given.contains("text")) o = text_defaults();
  if (const auto resume = given.find("resume"); resume != given.end()) {
    check(!resume->second.empty(), "--resume '': expected the path of a file");
    parsed.resumed = optim::read_checkpoint(resume->second);
    read_kept(*parsed.resumed, resume->second, o);
    check(!o.text.empty() || !given.contains("text"), "--text does not agree with ", resume->second,
          ", which was trained on the rule; leave it out, or start anew without --resume");
    check(o.text.empty() || given.contains("text") || fs::exists(o.text), resume->second, ": its text ", o.text,
          " is not there; --text tells where it is now");
    o.resume = o.checkpoint = resume->second;
  }
  read_given(given, o);
  check_together(o, given);
  return parsed;
}

}  // namespace prenorm::training
