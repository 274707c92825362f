"""A browser without script: it keeps cookies, follows redirects, reads forms, links and text, and submits forms."""

import os
from html.parser import HTMLParser
from urllib.parse import urlencode, urljoin, urlsplit

import requests

# seconds after which a wait for what must happen is given up
PATIENCE = int(os.environ.get("CHANCERY_PATIENCE", "180"))
MOST_REDIRECTS = 20
# what browsers keep of a cookie (RFC 6265bis), in characters of name and value
LARGEST_COOKIE = 4096


class TooLarge(Exception):
    """A site sets a cookie that browsers do not keep."""


class Form:
    """A form of a page: where it is sent, what it brings along, what a person types, and its buttons."""

    def __init__(self, action, method):
        self.action, self.method = action, method.upper()
        self.fields, self.asked, self.buttons = {}, set(), []

    def add(self, told):
        """Adds an input or a button."""
        name, kind = told.get("name"), told.get("type", "text")
        if name is None:
            return
        if kind in ("submit", "image"):
            self.buttons.append((name, told.get("value", "")))
        elif kind not in ("checkbox", "radio") or "checked" in told:
            self.fields[name] = told.get("value") or ""
            if kind != "hidden":
                self.asked.add(name)


class Reader(HTMLParser):
    """Reads a page."""

    def __init__(self, html):
        super().__init__()
        self.forms, self.links, self.words, self.silent = [], {}, [], 0
        self.open, self.link = None, None
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        told = dict(attrs)
        if tag == "form":
            self.open = Form(told.get("action") or "", told.get("method") or "get")
            self.forms.append(self.open)
        elif tag in ("input", "button") and self.open:
            self.open.add({"type": "submit"} | told if tag == "button" else told)
        elif tag == "a":
            self.link = told.get("href")
        elif tag in ("script", "style"):
            self.silent += 1

    def handle_endtag(self, tag):
        if tag == "form":
            self.open = None
        elif tag == "a":
            self.link = None
        elif tag in ("script", "style"):
            self.silent -= 1

    def handle_data(self, data):
        if self.silent or not data.strip():
            return
        self.words.append(data.strip())
        if self.link:
            self.links.setdefault(data.strip(), self.link)


class Page:
    """An answer, and what a person sees of it."""

    def __init__(self, address, answer):
        self.address, self.status, self.source = address, answer.status_code, answer.text
        self.json = answer.json if "json" in answer.headers.get("Content-Type", "") else None
        is_html = "html" in answer.headers.get("Content-Type", "")
        read = Reader(answer.text if is_html else "")
        self.forms, self.links = read.forms, read.links
        self.text = " ".join(read.words) if is_html else answer.text

    def form(self, *, asking=None, button=None, action=None):
        """The first form that asks for a field, has a button, or is sent to an address that contains a text."""
        for form in self.forms:
            if asking is not None and asking not in form.asked:
                continue
            if button is not None and button not in form.buttons:
                continue
            if action is None or action in form.action:
                return form
        return None

    def is_at(self, site):
        return self.address == site or self.address.startswith(f"{site}/")

    def __str__(self):
        return f"{self.status} {self.address}: {self.text[:2000]}"


class Browser:
    """The cookies of one person, and the addresses that were visited."""

    def __init__(self):
        self.session = requests.Session()
        self.trail = []

    def visit(self, address, fields=None, came_from=None, headers=None):
        method, headers = "GET", {"Accept": "text/html,*/*;q=0.8"} | (headers or {})
        if fields is not None:
            method = "POST"
            here, there = urlsplit(came_from), urlsplit(address)
            site = "same-origin" if here[:2] == there[:2] else "cross-site"
            headers |= {"Origin": f"{here.scheme}://{here.netloc}", "Referer": came_from, "Sec-Fetch-Site": site}
        for _ in range(MOST_REDIRECTS):
            self.trail.append(address)
            answer = self.session.request(
                method, address, data=fields, headers=headers, allow_redirects=False, timeout=PATIENCE
            )
            for cookie in answer.cookies:
                if len(cookie.name) + len(cookie.value or "") > LARGEST_COOKIE:
                    raise TooLarge(f"no browser keeps the cookie {cookie.name} of {address}")
            onward = answer.headers.get("Location") or answer.headers.get("Refresh", "").partition("url=")[2]
            if not onward:
                return Page(address, answer)
            address = urljoin(address, onward)
            if answer.status_code not in (307, 308):
                method, fields = "GET", None
                headers = {"Accept": headers["Accept"]}
        raise requests.TooManyRedirects(" ".join(self.trail[-MOST_REDIRECTS:]))

    def submit(self, page, form, **typed):
        """Submits a form of a page with what the person typed, or the button that was chosen."""
        address, fields = urljoin(page.address, form.action), form.fields | typed
        if form.method == "GET":
            return self.visit(f"{address.partition('?')[0]}?{urlencode(fields)}")
        return self.visit(address, fields, came_from=page.address)
