"""A browser without script: cookies, redirects within the sites that it may visit, forms."""

from html.parser import HTMLParser
from urllib.parse import urljoin

import requests


class Form(HTMLParser):
    """The form of a page: where it goes, and the fields that it brings along."""

    def __init__(self, html):
        super().__init__()
        self.action, self.hidden, self.asked = None, {}, set()
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        told = dict(attrs)
        if tag == "form":
            self.action = told["action"]
        elif tag == "input" and told.get("type") == "hidden":
            self.hidden[told["name"]] = told["value"]
        elif tag == "input":
            self.asked.add(told["name"])


class Page:
    """A page, or (without a status) the address outside of the sites that the browser has left for."""

    def __init__(self, address, answer=None):
        self.address = address
        self.status = None if answer is None else answer.status_code
        self.text = "" if answer is None else answer.text
        self.form = Form(self.text)
        policy = "" if answer is None else answer.headers.get("Content-Security-Policy", "")
        self.holds = "form-action 'self'" in policy

    @property
    def asks_for_password(self):
        return self.status == 200 and "password" in self.form.asked

    def __str__(self):
        return f"{self.status} {self.address}: {self.text[:2000]}"


class Blocked(Exception):
    """A form is redirected to where its page's `form-action` does not let it."""


class Browser:
    """Keeps the cookies of one person at these sites, and the addresses that were visited. Like Chromium it holds
    where a form is redirected to what the form's page says in `form-action`."""

    def __init__(self, *sites):
        self.sites = tuple(f"{site}/" for site in sites)
        self.session = requests.Session()
        self.trail = []

    def visit(self, address, fields=None, held_to=None):
        method, headers = "GET", {}
        if fields is not None:
            method, headers = "POST", {"Sec-Fetch-Site": "same-origin"}
        for _ in range(20):
            if not address.startswith(self.sites):
                return Page(address)
            self.trail.append(address)
            answer = self.session.request(
                method, address, data=fields, headers=headers, allow_redirects=False, timeout=30
            )
            redirect = answer.headers.get("Location")
            onward = redirect or answer.headers.get("Refresh", "").partition("url=")[2]
            if not onward:
                return Page(address, answer)
            address = urljoin(address, onward)
            held_to = held_to if redirect else None
            if held_to and not address.startswith(held_to):
                raise Blocked(address)
            method, fields, headers = "GET", None, {}
        raise requests.TooManyRedirects(address)

    def submit(self, page, **typed):
        held_to = urljoin(page.address, "/") if page.holds else None
        return self.visit(urljoin(page.address, page.form.action), page.form.hidden | typed, held_to)
