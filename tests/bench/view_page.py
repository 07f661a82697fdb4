"""How long the viewer's page takes to open and to step. Called by tests/bench/view_page."""
import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile

PAGES = {"lm": "a step of a TinyLM of 12 blocks", "many": "5,000 nodes"}

# One press of a key: from the event to the frame after the page has been drawn anew. The answer comes by a callback.
STEP = """
const done = arguments[0], start = performance.now();
document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true}));
document.body.getBoundingClientRect();
const worked = performance.now() - start;
requestAnimationFrame(() => setTimeout(() => done([worked, performance.now() - start])));
"""
# Milliseconds from the start of the navigation to the end of the scripts, and to the first frame with the graph in it.
LOADED = "return [performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd, performance.getEntriesByName(" \
         "'first-contentful-paint')[0]?.startTime]"


def main():
    parser = argparse.ArgumentParser(
        prog="tests/bench/view_page", description="Opens the viewer's page of large runs in a headless Chromium and "
        "times loading and stepping. Let nothing else run meanwhile.")
    parser.add_argument("write_pages", help=argparse.SUPPRESS)
    parser.add_argument("page_tests", help=argparse.SUPPRESS)
    parser.add_argument("--steps", type=int, default=200, help="steps to time, evenly over the run (default: %(default)s)")
    parser.add_argument("--loads", type=int, default=5, help="times to open each page (default: %(default)s)")
    args = parser.parse_args()
    sys.path.insert(0, args.page_tests)
    from browser import Browser

    print(f"{'run':<34}{'MB':>6}{'scripts ms':>12}{'drawn ms':>10}{'step ms':>9}{'worst':>8}{'to frame':>10}")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([args.write_pages, folder, *PAGES], check=True, stdout=subprocess.DEVNULL)
        for name, what in PAGES.items():
            with Browser(folder) as browser:
                loads = []
                for _ in range(args.loads):
                    browser.open(name)
                    browser.wait("document.querySelector('.unit') !== null", "the graph")
                    loads.append(browser.js(LOADED))
                total = len(browser.open(name)["nodes"])
                browser.wait("document.querySelector('.unit') !== null", "the graph")
                times = []
                for _ in range(args.steps):
                    times.append(browser.driver.execute_async_script(STEP))
                megabytes = (pathlib.Path(folder) / f"{name}.html").stat().st_size / 1e6
                median = lambda values: statistics.median(value for value in values if value is not None)
                print(f"{what + f', {total} nodes':<34}{megabytes:>6.2f}{median(l[0] for l in loads):>12.0f}"
                      f"{median(l[1] for l in loads):>10.0f}{median(t[0] for t in times):>9.1f}"
                      f"{max(t[0] for t in times):>8.1f}{median(t[1] for t in times):>10.1f}", flush=True)


main()
