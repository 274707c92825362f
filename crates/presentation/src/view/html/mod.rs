//! The reduction of customers' views: their page is parsed as browsers do, and serialized with the allowed content only.
//!
//! Input and proofs on a page go to this server's step alone. So forms are the page's own, scripts are this
//! server's, and nothing redirects by itself. An address of another site is one of the page's own, or a literal in
//! the view: none is composed from the context.

mod allowed;
mod tree;

use std::collections::BTreeSet;

use html5ever::{Attribute, QualName, ns};
use serde_json::Value;

use self::{
    allowed::{AttributeKind, attributes_of, attributes_of_head, is_drawn, kind_of},
    tree::{Content, DEEPEST, Tree, parse},
};
use super::filters::url;

/// The most names of removed content that are reported.
const MAX_REPORTED: usize = 20;

/// A page of a customer's views, with allowed content only.
#[derive(Debug)]
pub struct Reduced {
    /// The page.
    pub html: String,
    /// The removed content: `<script>`, or `form action`.
    pub removed: BTreeSet<String>,
}

/// The page's own values.
pub struct Own<'a> {
    /// The context that its views were rendered with.
    pub context: &'a Value,
    /// The addresses of other sites in the views.
    pub addresses: &'a BTreeSet<String>,
    /// The elements of the page's scripts.
    pub scripts: &'a str,
}

/// Reduces a page; `None` where it is too large to be parsed.
pub fn reduce(page: &str, own: &Own<'_>) -> Option<Reduced> {
    let tree = parse(page)?;
    let mut writer = Writer {
        tree: &tree,
        own,
        action: own.text(&["action"]).map(url).unwrap_or_default(),
        html: String::with_capacity(page.len() + page.len() / 8),
        removed: BTreeSet::new(),
    };
    writer.html.push_str("<!DOCTYPE html>\n");
    writer.write_children(0, Position::default())?;
    Some(Reduced { html: writer.html, removed: writer.removed })
}

impl Own<'_> {
    fn text(&self, path: &[&str]) -> Option<&str> {
        path.iter().try_fold(self.context, |value, name| value.get(name))?.as_str()
    }

    fn is_frame(&self, address: &str) -> bool {
        let frames = self.context.get("frames").and_then(Value::as_array);
        frames.is_some_and(|frames| frames.iter().any(|frame| frame.as_str() == Some(address)))
    }

    fn is_logo(&self, address: &str) -> bool {
        ["brand", "application"].into_iter().any(|owner| self.text(&[owner, "logo"]) == Some(address))
    }

    /// Whether a link may lead to an address.
    fn leads_to(&self, address: &str) -> bool {
        let begins = |schemes: &[&str]| {
            schemes.iter().any(|scheme| {
                address.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme))
            })
        };
        let is_named = || self.addresses.contains(address) || names(self.context, address);
        !address.contains(char::is_control)
            && (is_here(address)
                || begins(&["mailto:", "tel:"])
                || begins(&["https://", "http://", "otpauth://"]) && is_named())
    }
}

/// Whether one of the addresses in a context is this one.
fn names(context: &Value, address: &str) -> bool {
    match context {
        Value::Object(members) => members.iter().any(|(name, value)| match value {
            Value::String(text) => {
                text == address && (name.ends_with("url") || matches!(name.as_str(), "logo" | "address"))
            }
            value => names(value, address),
        }),
        Value::Array(items) => items.iter().any(|item| names(item, address)),
        _ => false,
    }
}

/// Whether an address is of this server, or on the page.
fn is_here(address: &str) -> bool {
    let is_path = address.starts_with('/') && !address.starts_with("//") && !address.starts_with("/\\");
    (is_path || address.starts_with(['#', '?'])) && !address.contains(char::is_control)
}

/// The addresses of other sites in a view, each up to a character that no address has.
pub fn addresses_in(source: &str) -> impl Iterator<Item = String> {
    let starts = source.match_indices("://").map(|(at, _)| at);
    starts.filter_map(|at| {
        let before = source.get(..at)?;
        let scheme = before.rfind(|letter: char| !letter.is_ascii_alphabetic()).map_or(0, |at| at + 1);
        // the character before the scheme may have more bytes than one
        let address = source.get(scheme..).or_else(|| source.get(at..))?;
        let end =
            |letter: char| letter.is_whitespace() || letter.is_control() || "\"'<>{}`\\".contains(letter);
        let (address, after) = address.split_at(address.find(end).unwrap_or(address.len()));
        // an address that the tag continues is no literal
        (!after.starts_with('{')).then(|| address.replace("&amp;", "&"))
    })
}

/// The position of a node in a page.
#[derive(Clone, Copy, Default)]
struct Position {
    depth: usize,
    is_in_form: bool,
    is_in_drawing: bool,
}

/// The treatment of an element.
enum Fate {
    /// It is written.
    Retained(&'static [(&'static str, AttributeKind)]),
    /// It is removed, and its content stays.
    Unwrapped,
    /// It is removed with all of its content.
    Removed,
}

struct Writer<'a> {
    tree: &'a Tree,
    own: &'a Own<'a>,
    action: String,
    html: String,
    removed: BTreeSet<String>,
}

impl<'a> Writer<'a> {
    fn write_children(&mut self, at: usize, position: Position) -> Option<()> {
        if position.depth > 2 * DEEPEST {
            return None;
        }
        let tree = self.tree;
        tree.children(at).try_for_each(|child| match tree.content(child) {
            Content::Element(name, attributes) => self.write_element(child, name, attributes, position),
            Content::Text(text) => {
                escape(text, &mut self.html);
                Some(())
            }
            Content::Other => Some(()),
        })
    }

    fn write_element(
        &mut self,
        at: usize,
        name: &'a QualName,
        attributes: &'a [Attribute],
        position: Position,
    ) -> Option<()> {
        let element: &str = &name.local;
        let inside = Position { depth: position.depth + 1, ..position };
        let own = match self.fate(name, attributes, position) {
            Fate::Retained(own) => own,
            Fate::Unwrapped => return self.write_children(at, inside),
            Fate::Removed => return Some(()),
        };
        let is_drawing = name.ns == ns!(svg);
        self.html.push('<');
        self.html.push_str(element);
        for attribute in attributes {
            self.write_attribute(element, is_drawing, own, attribute);
        }
        self.html.push('>');
        if is_void(element) && !is_drawing {
            return Some(());
        }
        match element {
            // it holds raw text, which its end tag alone ends
            "style" => self.write_raw(at),
            "iframe" => {}
            _ => {
                let is_in_form = position.is_in_form || element == "form";
                self.write_children(at, Position { is_in_form, is_in_drawing: is_drawing, ..inside })?;
            }
        }
        if element == "head" {
            self.html.push_str(self.own.scripts);
        }
        self.html.push_str("</");
        self.html.push_str(element);
        self.html.push('>');
        Some(())
    }

    fn fate(&mut self, name: &QualName, attributes: &[Attribute], position: Position) -> Fate {
        let element: &str = &name.local;
        let value = |attribute: &str| {
            let value = attributes.iter().find(|one| one.name.ns == ns!() && &*one.name.local == attribute);
            value.map(|one| one.value.to_string())
        };
        if name.ns == ns!(svg) && is_drawn(element) {
            return Fate::Retained(&[]);
        }
        if name.ns != ns!(html) || position.is_in_drawing {
            self.lose(format!("<{element}>"));
            return Fate::Removed;
        }
        let is_own_script = || value("src").is_some_and(|src| src.contains("/signin/") && is_here(&src));
        match element {
            // the server writes those of the page itself
            "script" if is_own_script() => Fate::Removed,
            "script" | "noscript" | "template" | "textarea" | "object" | "applet" | "audio" | "video" => {
                self.lose(format!("<{element}>"));
                Fate::Removed
            }
            "iframe" if !value("src").is_some_and(|src| self.own.is_frame(&src)) => {
                self.lose("<iframe>".to_owned());
                Fate::Removed
            }
            "meta" | "link" => {
                let allowed = attributes_of_head(element, value);
                allowed.map_or_else(|| self.leave_out(element), Fate::Retained)
            }
            "form" => {
                let is_posted = value("method").is_some_and(|method| method.eq_ignore_ascii_case("post"));
                let is_own =
                    is_posted && !self.action.is_empty() && value("action").as_ref() == Some(&self.action);
                // browsers open a form in a form, too
                if is_own && !position.is_in_form {
                    attributes_of(element).map_or(Fate::Removed, Fate::Retained)
                } else {
                    self.leave_out(element)
                }
            }
            "input" | "button" | "select" if !position.is_in_form => self.leave_out(element),
            _ => match attributes_of(element) {
                Some(own) => Fate::Retained(own),
                None => self.leave_out(element),
            },
        }
    }

    fn leave_out(&mut self, element: &str) -> Fate {
        self.lose(format!("<{element}>"));
        Fate::Unwrapped
    }

    fn lose(&mut self, what: String) {
        if self.removed.len() < MAX_REPORTED {
            self.removed.insert(what);
        }
    }

    fn write_attribute(
        &mut self,
        element: &str,
        is_drawing: bool,
        own: &'static [(&'static str, AttributeKind)],
        attribute: &Attribute,
    ) {
        let (name, value): (&str, &str) = (&attribute.name.local, &attribute.value);
        let fits = match kind_of(own, is_drawing, name) {
            None => false,
            Some(AttributeKind::Text) => true,
            Some(AttributeKind::Word(words)) => words.iter().any(|word| value.eq_ignore_ascii_case(word)),
            Some(AttributeKind::Link) => self.own.leads_to(value),
            Some(AttributeKind::Picture) => {
                is_here(value) || self.own.is_logo(value) || value.starts_with("data:image/")
            }
            Some(AttributeKind::File) => is_here(value),
            Some(AttributeKind::Action) => value == self.action,
            Some(AttributeKind::Frame) => self.own.is_frame(value),
            // a style could be written so, too: it names no other site without one of these
            Some(AttributeKind::Drawing) => !value.contains([':', '\\']) && !value.contains("//"),
            Some(AttributeKind::Namespace) => value == "http://www.w3.org/2000/svg",
        };
        if fits {
            self.html.push(' ');
            self.html.push_str(name);
            self.html.push_str("=\"");
            escape(value, &mut self.html);
            self.html.push('"');
        } else if !(name == "data-options" && self.own.text(&["passkey"]) == Some(value)) {
            self.lose(format!("{element} {name}"));
        }
    }

    fn write_raw(&mut self, at: usize) {
        let tree = self.tree;
        for child in tree.children(at) {
            if let Content::Text(text) = tree.content(child) {
                self.html.push_str(text);
            }
        }
    }
}

/// Whether an element has no end tag.
fn is_void(element: &str) -> bool {
    matches!(element, "br" | "col" | "hr" | "img" | "input" | "link" | "meta" | "wbr")
}

/// Escapes a text, between tags and in quotes.
fn escape(text: &str, html: &mut String) {
    for letter in text.chars() {
        match letter {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            letter => html.push(letter),
        }
    }
}

#[cfg(test)]
mod tests;
