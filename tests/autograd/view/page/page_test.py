"""Tests of the viewer's page: page_test.py TEST WRITE_PAGES FOLDER. The page is driven as a reader would, by keyboard
where there is a key, and compared with the run's JSON."""

import json
import math
import pathlib
import subprocess
import sys

import browser

PROGRAM, FOLDER = sys.argv[2:4]


def number(value):
    return float(str(value).replace("−", "-").replace("∞", "inf"))


def node_of_step(run, step):
    forward = len(run["nodes"])
    if step == 0:
        return None
    return step - 1 if step <= forward else run["backward"][step - forward - 1]


def last_step(run):
    return len(run["nodes"]) + len(run["backward"])


def steps():
    """Every step by keyboard, from end to end and back; and every other key."""
    browser.write_pages(PROGRAM, FOLDER, "blocks", "scalars")
    with browser.Browser(FOLDER) as page:
        for name in ("blocks", "scalars"):
            run = page.open(name)
            sentences = []
            for step in range(last_step(run) + 1):
                assert page.step() == step, f"{name}: {page.step()} instead of {step}"
                assert page.shown_node() == node_of_step(run, step), f"{name}: node of step {step}"
                assert page.text("#count") == [f"{step} / {last_step(run)}"]
                sentences += page.text("#sentence")
                page.press("right")
            assert page.step() == last_step(run), "there is no step after the last"
            assert all(len(sentence) > 15 and sentence.endswith(".") for sentence in sentences), sentences
            forward = len(run["nodes"])
            for before, after in zip(sentences[1 : forward + 1], sentences[forward + 1 :]):
                assert before != after
            for step in reversed(range(last_step(run))):
                page.press("left")
                assert page.shown_node() == node_of_step(run, step)
            page.press("left")
            assert page.step() == 0, "there is no step before the first"
            page.press("end")
            assert page.step() == last_step(run)
            page.press("home")
            assert page.step() == 0

        run = page.open("blocks")
        seen, scope = [], None
        while page.step() < last_step(run):
            before = page.step()
            page.press("right", shift=True)
            assert page.step() > before
            here = run["nodes"][page.shown_node()]["scope"]
            assert here != scope or page.step() == last_step(run), f"shift goes to another module, stayed in {here}"
            scope = here
            seen.append(here)
        assert {"blocks.0.norm", "blocks.0.ffn", "blocks.1.ffn"} <= set(seen)
        page.press("left", shift=True)
        assert page.step() < last_step(run)

        page.press("home", "p")
        page.wait("Number(document.getElementById('slider').value) >= 2", "it plays")
        page.press("p")
        stopped = page.step()
        page.press("right")
        assert page.step() == stopped + 1, "it does not play on"
        page.press("?")
        assert page.js("return document.getElementById('help').open")
        page.press("escape")
        assert not page.js("return document.getElementById('help').open")
        page.press("/")
        page.press(*"cross_entr")
        page.press("enter")
        assert run["nodes"][page.shown_node()]["op"] == "cross_entropy"
        page.press("home", "tab")
        # By keyboard alone to the tree, and in it.
        for _ in range(30):
            if page.js("return document.activeElement.getAttribute('role') === 'treeitem'"):
                break
            page.press("tab")
        page.press("down", "down")
        name = page.js("return document.activeElement.querySelector('.name').textContent")
        page.press("enter")
        folded = page.js("return document.activeElement.getAttribute('aria-expanded')")
        assert name == "blocks" and folded == "false", (name, folded)
        assert page.console() == []


def expected_tensors(run, node, backward):
    """What the inspector has to show, by its label: tensors of the JSON."""
    out = {}
    many = len(node["outputs"]) > 1
    for i, tensor in enumerate(node["outputs"]):
        out[f"value, output {i}" if many else "value"] = tensor
    if not backward:
        return out
    for i, tensor in enumerate(node["cotangents"]):
        if tensor:
            out[f"cotangent, output {i}" if many else "cotangent"] = tensor
    return out


def same_numbers(where, shown, tensor):
    if "values" in tensor:
        expected = tensor["values"]
    else:
        stats = tensor.get("stats", {})
        expected = [stats[key] for key in ("min", "mean", "max", "std") if "min" in stats]
        expected += [stats[key] for key in ("zeros", "nan", "inf") if stats.get(key) and "min" in stats]
        expected += tensor.get("corner", {}).get("values", [])
    assert len(shown) == len(expected), f"{where}: {len(shown)} numbers instead of {len(expected)}"
    for (full, text), value in zip(shown, expected):
        assert number(full) == number(value) or math.isnan(number(value)), f"{where}: {full} instead of {value}"
        if math.isfinite(number(value)):
            assert abs(number(text) - number(value)) <= 5.1e-3 * abs(number(value)), f"{where}: {text} for {value}"


def numbers():
    """The inspector's numbers are those of the engine, at every step."""
    browser.write_pages(PROGRAM, FOLDER, "blocks", "scalars", "lm")
    compared = 0
    with browser.Browser(FOLDER) as page:
        for name in ("blocks", "scalars", "lm"):
            run = page.open(name)
            assert json.loads(page.js("return document.getElementById('run').textContent")) == run
            forks = {fork["node"]: fork for fork in run["forks"] if fork["output"] == 0}
            norms = {norm["node"]: norm for norm in run["norms"]}
            stride = 1 if name != "lm" else 13
            for step in range(1, last_step(run) + 1, stride):
                page.js("location.hash = `#step=${arguments[0]}`", step)
                page.wait(f"document.getElementById('slider').value === '{step}'", "the step of the address")
                node, backward = run["nodes"][node_of_step(run, step)], step > len(run["nodes"])
                where = f"{name}, step {step}, node {node['id']} ({node['op']})"
                shown = page.tensors()
                by_label = {}
                for label, found in shown:
                    by_label.setdefault(label, found)
                for label, tensor in expected_tensors(run, node, backward).items():
                    same_numbers(f"{where}: {label}", by_label[label], tensor)
                    compared += len(by_label[label])
                if not backward:
                    assert not any(label.startswith(("cotangent", "gradient")) for label in by_label), where
                    continue
                compared += compare_gradients(page, where, node)
                if node["id"] in forks:
                    compare_fork(page, where, forks[node["id"]], by_label)
                if node["id"] in norms:
                    split = norms[node["id"]]
                    for label, key in (("g = γ·dy", "incoming"), ("mean", "mean_part"), ("the rest", "passed")):
                        full = split[key] and f"{label} of the incoming gradient" in by_label
                        assert full or "values" not in (split[key] or {}), f"{where}: {label}"
                        if full:
                            same_numbers(f"{where}: {label}", by_label[f"{label} of the incoming gradient"], split[key])
                    if "sigma" in by_label:
                        same_numbers(f"{where}: sigma", by_label["sigma"], split["sigma"])
    assert compared > 3000, compared


def compare_gradients(page, where, node):
    blocks = page.js(
        """return [...document.querySelectorAll('#inspector .out[data-input]')].map((out) => [Number(out.dataset.input),
             [...out.querySelectorAll('.tensor')].map((t) => [...t.querySelectorAll('[data-v]')].map((c) => [c.dataset.v, c.textContent])),
             out.querySelector('.error')?.dataset.v, out.querySelector('.out-head .verdict')?.textContent ?? '',
             [...out.querySelectorAll('.pair [data-v]')].map((c) => c.dataset.v)])"""
    )
    with_gradient = [i for i, gradient in enumerate(node["gradients"]) if gradient]
    assert [block[0] for block in blocks] == with_gradient, where
    count = 0
    for index, tensors, error, verdict, pair in blocks:
        check = node["checks"][index]
        same_numbers(f"{where}: gradient {index}", tensors[0], node["gradients"][index])
        count += len(tensors[0])
        if check["mode"] == "none":
            assert "not checked" in verdict, where
            continue
        assert number(error) == number(check["error"]), where
        assert ("✓" if check["ok"] else "✗") in verdict, where
        if check["mode"] == "direction":
            assert [number(value) for value in pair] == [check["gradient"], check["difference"]], where
        elif check.get("difference"):
            same_numbers(f"{where}: finite difference {index}", tensors[1], check["difference"])
            count += len(tensors[1])
    return count


def compare_fork(page, where, fork, by_label):
    shares = page.js("return [...document.querySelectorAll('#fork .bars .share')].map((e) => e.textContent)")
    assert len(shares) == len(fork["parts"]), where
    total = sum(float(share.replace("−", "-").replace(" %", "")) for share in shares)
    assert abs(total - 100) <= len(shares), f"{where}: the shares {shares} add up to {total}"
    notes = page.text("#fork .bars .note")
    for note, part in zip(notes, fork["parts"]):
        assert abs(number(note.split()[1]) - part["norm"]) <= 6e-3 * part["norm"], f"{where}: {note}"
    if "values" in fork["total"]:
        same_numbers(f"{where}: sum", by_label["sum of the parts"], fork["total"])
    if fork["cosine"] is not None:
        shown = number(page.js("return [...document.querySelectorAll('#fork .facts b')].pop().textContent"))
        assert abs(shown - fork["cosine"]) < 6e-3, where


def faults():
    """A planted fault is found by F, and shows at its node and nowhere else."""
    browser.write_pages(PROGRAM, FOLDER, "blocks", "broken")
    marks = """return [[...document.querySelectorAll('#tree li[data-node] > .row .glyph.wrong')].map((e) => Number(e.closest('li').dataset.node)),
      document.querySelectorAll('#graph .unit.wrong').length, document.querySelectorAll('#graph text.glyph.wrong').length]"""
    with browser.Browser(FOLDER) as page:
        page.resize(1440, 3000)  # the whole graph in view
        run = page.open("broken")
        place = run["broken"]["node"]
        assert [node["id"] for node in run["nodes"] if node["verdict"] == "wrong"] == [place]
        banner = page.text("#banner")[0]
        assert "layer_norm" in banner and run["broken"]["fault"] in banner
        page.press("f")
        assert page.shown_node() == place and page.step() > len(run["nodes"])
        assert "✗" in page.text("#inspector .head .verdict")[0]
        assert any("✗" in line for line in page.text("#inspector #gradients .verdict"))
        assert page.text("#sentence")[0].endswith("✗ This gradient is wrong.")
        assert page.js(marks) == [[place], 1, 1]
        page.press("f")
        assert page.shown_node() == place, "it is the only one"
        page.press("end")
        assert page.js(marks) == [[place], 1, 1]
        for step in range(last_step(run) + 1):
            page.js("location.hash = `#step=${arguments[0]}`", step)
            page.wait(f"document.getElementById('slider').value === '{step}'", "the step of the address")
            wrong = any("✗" in line for line in page.text("#inspector .verdict"))
            assert wrong == (page.shown_node() == place and step > len(run["nodes"])) or step == 0, step

        run = page.open("blocks")
        assert page.js("return document.getElementById('banner').hidden")
        page.press("end")
        assert page.js(marks) == [[], 0, 0]
        page.press("f")
        assert page.step() == last_step(run) and page.text("#sentence") == ["No check failed."]
        assert "✗" not in page.js("return document.body.innerText")


def offline():
    """No request but for the file itself, no message on the console, no label that comes alive."""
    browser.write_pages(PROGRAM, FOLDER, "blocks", "broken", "lm")
    with browser.Browser(FOLDER) as page:
        for name in ("blocks", "broken", "lm"):
            page.requests()
            run = page.open(name)
            for _ in range(60):
                page.press("right", shift=name == "lm")
            page.press("enter", "f", "end", "?", "escape", "/", "x", "escape")
            page.js("document.getElementById('theme').click()")
            requests = [url for url in page.requests() if url != "about:blank"]
            assert len(requests) == 1 and requests[0].startswith("file://"), requests
            assert page.js("return performance.getEntriesByType('resource').length") == 0
            assert page.console() == []
            assert page.js("return [typeof harmed, document.images.length, document.scripts.length]") == ["undefined", 0, 2]
            if name != "lm":
                label = next(node["name"] for node in run["nodes"] if "</script>" in node["name"])
                page.open(name, "#step=1")
                assert label.split(".")[-1] in page.text("#inspector h2")[0]


def state():
    """The address leads back to the same step and the same open modules; a mangled one does no harm."""
    browser.write_pages(PROGRAM, FOLDER, "lm")
    what = """return [document.getElementById('slider').value, document.getElementById('inspector').dataset.node,
      [...document.querySelectorAll('#tree li[aria-expanded]')].map((e) => [e.dataset.scope, e.getAttribute('aria-expanded')]),
      document.querySelectorAll('#graph .unit').length]"""
    with browser.Browser(FOLDER) as page:
        page.open("lm")
        page.press("right", shift=True, times=5)
        page.press("enter")
        page.wait("location.hash.includes('step=') && location.hash.includes('open=')", "the address is written")
        shown, address = page.js(what), page.js("return location.hash")
        page.open("lm")
        assert page.js(what) != shown
        page.open("lm", address)
        assert page.js(what) == shown
        for mangled in ("#step=-4", "#step=1e9", "#step=x&open=%", "#nonsense", "#open=blocks,nowhere&step=7", "#zoom=9999"):
            page.open("lm", mangled)
            assert 0 <= page.step() and page.text("#sentence")[0] and page.console() == [], mangled
            page.press("right")
            assert page.step() > 0


def folding():
    """Equal modules open folded, never more than 400 elements are drawn, Enter opens what the step is in."""
    browser.write_pages(PROGRAM, FOLDER, "lm", "many")
    drawn = "return [Number(document.getElementById('graph').dataset.elements), document.querySelectorAll('#graph > *').length]"
    with browser.Browser(FOLDER) as page:
        run = page.open("lm")
        # Every op is checked, each gradient along a direction or element by element.
        ops = [node for node in run["nodes"] if node["op"] not in ("leaf", "constant")]
        assert len(ops) > 12 * 10 and all(node["verdict"] == "ok" for node in ops), [n["id"] for n in ops if n["verdict"] != "ok"]
        assert any(check and check["mode"] == "direction" for node in ops for check in node["checks"])
        assert "×12" in page.text('#tree li[data-scope="blocks"] > .row .times')
        boxes = page.js("return document.querySelectorAll('#graph .unit').length")
        assert boxes < 20, boxes
        block = next(node for node in run["nodes"] if node["scope"].startswith("blocks.7.ffn") and node["backward_index"] is not None)
        page.open("lm", f"#step={len(run['nodes']) + block['backward_index'] + 1}")
        assert page.shown_node() == block["id"]
        for _ in range(len(block["scope"].split("."))):
            page.press("enter")
        shown = page.js("return document.querySelector('#graph .current')?.querySelector('title').textContent")
        assert "blocks.7" in shown and ": open" not in shown or page.js("return !!document.querySelector('#graph .chip.current')"), shown
        page.press("enter")
        assert page.js("return document.querySelector('#tree li[aria-selected=true]').getAttribute('aria-expanded')") == "false"

        run = page.open("many")
        assert len(run["nodes"]) >= 5000
        assert page.js(drawn)[0] <= 400
        scopes = sorted({node["scope"] for node in run["nodes"] if node["scope"].startswith("blocks.")})
        opened = ",".join(["blocks", *sorted({".".join(scope.split(".")[:2]) for scope in scopes}), *scopes])
        page.open("many", f"#step=3000&open={opened}")
        for step in (3000, 10, 5000, 9000, last_step(run)):
            page.js("location.hash = location.hash.replace(/step=\\d+/, `step=${arguments[0]}`)", step)
            page.wait(f"document.getElementById('slider').value === '{step}'", "the step of the address")
            counted, elements = page.js(drawn)
            assert 5 < counted <= 400 and elements <= 900, (counted, elements)
            assert page.js("return !!document.querySelector('#graph .current')"), "the step is in view"


def layout():
    """Wide and narrow: nothing overlaps, nothing sticks out, the residual stream is one straight line."""
    browser.write_pages(PROGRAM, FOLDER, "blocks", "lm")
    boxes = """return [...document.querySelectorAll('#graph .unit > .box:not(.back), #graph .chip > rect')].map((e) => {
      const r = e.getBBox(); return [r.x, r.y, r.x + r.width, r.y + r.height]; })"""
    sums = "return [...document.querySelectorAll('#graph .unit.sum > .box')].map((e) => [e.getBBox().x, e.getBBox().y])"
    with browser.Browser(FOLDER) as page:
        for width, height in ((1920, 1080), (1440, 3000), (1024, 768), (768, 1024), (360, 740)):
            page.resize(width, height)
            for name in ("blocks", "lm"):
                run = page.open(name)
                for step in (0, 20, len(run["nodes"]) + 8, last_step(run)):
                    page.open(name, f"#step={step}")
                    size = page.js("return [document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
                    assert size[0] <= width and size[1] <= height, f"{name} at {width}×{height}: {size}"
                    inner = page.js("const e = document.getElementById('inspector'); return [e.scrollWidth, e.clientWidth]")
                    assert inner[0] <= inner[1], f"{name} at {width}, step {step}: the inspector is {inner}"
                    found = page.js(boxes)
                    for i, a in enumerate(found):
                        for b in found[:i]:
                            apart = a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]
                            assert apart, f"{name} at {width}: {a} and {b} overlap"
                    parts = page.js(
                        """return ['#top', '#graph-pane', '#inspector', '#bottom'].map((s) => {
                             const r = document.querySelector(s).getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; })"""
                    )
                    for i, a in enumerate(parts):
                        assert a[2] - a[0] > 100 and a[3] - a[1] > 20, parts
                        for b in parts[:i]:
                            assert a[2] <= b[0] + 1 or b[2] <= a[0] + 1 or a[3] <= b[1] + 1 or b[3] <= a[1] + 1, parts
        page.resize(1440, 3000)
        page.open("blocks")
        stream = page.js(sums)
        assert len(stream) == 2 and len({x for x, _ in stream}) == 1, stream
        branch = page.js("return [...document.querySelectorAll('#graph .unit:not(.sum):not(.source) > .box')].map((e) => e.getBBox().x)")
        assert sum(x > stream[0][0] for x in branch) == 8, "the branches stand beside the stream"


def accessibility():
    """An accessibility checker finds nothing serious, in light and dark; what is announced is there."""
    from axe_core_python.selenium import Axe

    browser.write_pages(PROGRAM, FOLDER, "blocks", "broken", "lm")
    axe = Axe()
    with browser.Browser(FOLDER) as page:
        for dark in (False, True):
            page.media(dark, reduced=True)
            for width, height in ((1440, 900), (360, 740)):
                page.resize(width, height)
                for name in ("blocks", "broken", "lm"):
                    run = page.open(name)
                    kinds = {}  # a step of each op
                    for i, node in enumerate(run["backward"]):
                        kinds.setdefault(run["nodes"][node]["op"], len(run["nodes"]) + i + 1)
                    for step in [0, 3, *kinds.values()]:
                        page.open(name, f"#step={step}")
                        for found in axe.run(page.driver)["violations"]:
                            assert found["impact"] not in ("serious", "critical"), (
                                f"{name}, step {step}, {'dark' if dark else 'light'}, {width}: {found['id']}: {found['help']}\n"
                                + "\n".join(node["html"] + "\n  " + node["failureSummary"] for node in found["nodes"][:4])
                            )
            page.open("blocks")
            page.press("?")
            found = [f for f in axe.run(page.driver)["violations"] if f["impact"] in ("serious", "critical")]
            assert not found, found
        page.resize(1440, 900)
        page.open("blocks")
        live = page.js("const s = document.getElementById('sentence'); return [s.getAttribute('aria-live'), s.getAttribute('role')]")
        assert live == ["polite", "status"]
        tree = page.js(
            """return [document.querySelectorAll('[role=tree]').length, document.querySelectorAll('#tree [tabindex="0"]').length,
              [...document.querySelectorAll('#tree li')].every((e) => e.getAttribute('role') === 'treeitem' && e.ariaLevel > 0)]"""
        )
        assert tree == [1, 1, True], tree


def lesson():
    """A lesson's own page, as its program writes it: every step by keyboard, from end to end."""
    path = pathlib.Path(FOLDER) / "lesson.html"
    subprocess.run([PROGRAM, "--html", path], check=True, stdout=subprocess.DEVNULL)
    data = path.read_text().split('<script type="application/json" id="run">', 1)[1].split("</script>", 1)[0]
    path.with_suffix(".json").write_text(data)
    with browser.Browser(FOLDER) as page:
        run = page.open("lesson")
        assert last_step(run) > 100, "the lesson is not what it was"
        for step in range(last_step(run) + 1):
            assert page.step() == step, f"{page.step()} instead of {step}"
            assert page.shown_node() == node_of_step(run, step), f"node of step {step}"
            assert len(page.text("#sentence")[0]) > 15
            page.press("right")
        assert page.step() == last_step(run)
        assert page.console() == []


TESTS = (accessibility, faults, folding, layout, lesson, numbers, offline, state, steps)

if __name__ == "__main__":
    {test.__name__: test for test in TESTS}[sys.argv[1]]()
