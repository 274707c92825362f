"""Makes the console's pages from their samples; see scripts/console-preview."""

import functools
import http.server
import json
import pathlib
import subprocess
import sys
import threading
import tomllib

import jinja2

CONSOLE = pathlib.Path("crates/console")
INTO = pathlib.Path("/tmp/console-preview")
SCRIPTS = pathlib.Path("scripts").resolve()
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types console"
)
ASSETS = {
    "css": "console.css", "js": "console.js", "icons": "icons.svg",
    "import": "import.js", "editor": "editor.js", "wait": "wait.js", "rules": "rules.json", "proof": "proof.js", "sans": "sans.woff2", "sans_ext": "sans-ext.woff2", "serif": "serif.woff2",
}


def make():
    INTO.mkdir(exist_ok=True)
    for old in INTO.glob("*.html"):
        old.unlink()
    for asset in (CONSOLE / "assets").iterdir():
        (INTO / asset.name).write_bytes(asset.read_bytes())
    engine = jinja2.Environment(
        loader=jinja2.FileSystemLoader(CONSOLE / "templates"), autoescape=True, undefined=jinja2.StrictUndefined,
    )
    texts = {lang: tomllib.loads((CONSOLE / f"texts/{lang}.toml").read_text()) for lang in ("en", "de")}
    names = []
    for sample in sorted((CONSOLE / "samples").glob("*.json")):
        name = sample.stem
        if name.startswith("shell"):
            continue
        given = json.loads(sample.read_text())
        for lang in (given["lang"],) if "lang" in given else ("en", "de"):
            shell = json.loads((CONSOLE / f"samples/shell.{lang}.json").read_text())
            context = {**shell, **given, "lang": lang, "t": texts[lang]["page"], "assets": ASSETS}
            to = name if lang == "en" or "lang" in given else f"{name}.de"
            (INTO / f"{to}.html").write_text(engine.get_template(given["template"]).render(context))
            names.append(to)
    (INTO / "later.html").write_text('<section class="card"><header><h2>Sign-ins</h2></header><ul class="lines"><li><div>'
                                     '<span>Staff portal</span><small>yesterday</small></div></li></ul></section>')
    return names


class Handler(http.server.SimpleHTTPRequestHandler):
    def end_headers(self):
        self.send_header("Content-Security-Policy", POLICY)
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if path == "/console/find" and "part=1" in query:
            self.path = "/find-results.html"
        elif path == "/console/lookup":
            self.path = "/lookup.json"
        elif path == "/console/store/default/User":
            self.path = "/empty.html" if "xyzzy" in query else "/users.html"
        super().do_GET()

    def log_message(self, *_):
        pass


def serve():
    (INTO / "lookup.json").write_text('[{"id":"7f1c","label":"Engineering","sub":"Everyone"},{"id":"8a2d","label":"Platform","sub":""}]')
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 8899), functools.partial(Handler, directory=INTO))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


names = make()
print(f"{len(names)} pages in {INTO}")
match sys.argv[1:]:
    case []:
        pass
    case ["--serve"]:
        serve()
        print("http://127.0.0.1:8899")
        threading.Event().wait()
    case ["--pictures" | "--check" as what, *which]:
        serve()
        tools = pathlib.Path("/tmp/console-preview-tools")
        if not (tools / "node_modules/puppeteer-core").exists():
            subprocess.run(
                ["npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", tools,
                 "puppeteer-core@25.16.0", "axe-core@4.14.1"], check=True,
            )
        sys.exit(subprocess.run(["node", SCRIPTS / "console_preview.mjs", what, tools, *(which or (name for name in names if not name.startswith("find-results")))]).returncode)
    case _:
        sys.exit("usage: scripts/console-preview [--serve | --pictures | --check]")
