//! The allowed elements and attributes in pages of customers' views.

/// The kind of an attribute's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttributeKind {
    /// Any text.
    Text,
    /// One of these words, in any case.
    Word(&'static [&'static str]),
    /// The address of a link.
    Link,
    /// A picture.
    Picture,
    /// A file of this server.
    File,
    /// The address of the page's form.
    Action,
    /// An address that the page itself shows in a frame.
    Frame,
    /// The style of a picture: no address is in it.
    Drawing,
    /// The namespace of drawings.
    Namespace,
}

use AttributeKind::{Action, Drawing, File, Frame, Link, Namespace, Picture, Text, Word};

type Attributes = &'static [(&'static str, AttributeKind)];

/// The attributes of all elements, besides `aria-..` and `data-..`.
const ALL: Attributes = &[
    ("class", Text),
    ("dir", Text),
    ("hidden", Text),
    ("id", Text),
    ("inert", Text),
    ("lang", Text),
    ("role", Text),
    ("tabindex", Text),
    ("title", Text),
    ("translate", Text),
];

/// The elements that have no attributes of their own.
const PLAIN: [&str; 65] = [
    "abbr",
    "address",
    "article",
    "aside",
    "b",
    "bdi",
    "bdo",
    "blockquote",
    "body",
    "br",
    "caption",
    "center",
    "cite",
    "code",
    "dd",
    "dfn",
    "div",
    "dl",
    "dt",
    "em",
    "figcaption",
    "figure",
    "footer",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hgroup",
    "hr",
    "html",
    "i",
    "kbd",
    "legend",
    "main",
    "mark",
    "nav",
    "p",
    "pre",
    "q",
    "rp",
    "rt",
    "ruby",
    "s",
    "samp",
    "section",
    "small",
    "span",
    "strong",
    "sub",
    "summary",
    "sup",
    "table",
    "tbody",
    "tfoot",
    "thead",
    "title",
    "tr",
    "u",
    "ul",
    "var",
    "wbr",
];

/// The elements with attributes of their own.
const ELEMENTS: [(&str, Attributes); 23] = [
    ("a", &[("href", Link), ("hreflang", Text), ("rel", Text), ("target", Text)]),
    (
        "button",
        &[
            ("autofocus", Text),
            ("disabled", Text),
            ("name", Text),
            ("type", Word(&["button", "reset", "submit"])),
            ("value", Text),
        ],
    ),
    ("col", &[("span", Text)]),
    ("colgroup", &[("span", Text)]),
    ("data", &[("value", Text)]),
    ("del", &[("datetime", Text)]),
    ("details", &[("open", Text)]),
    ("fieldset", &[("disabled", Text)]),
    (
        "form",
        &[("action", Action), ("autocomplete", Text), ("method", Word(&["post"])), ("novalidate", Text)],
    ),
    ("iframe", &[("src", Frame)]),
    (
        "img",
        &[
            ("alt", Text),
            ("decoding", Text),
            ("height", Text),
            ("loading", Text),
            ("src", Picture),
            ("width", Text),
        ],
    ),
    (
        "input",
        &[
            ("autocapitalize", Text),
            ("autocomplete", Text),
            ("autocorrect", Text),
            ("autofocus", Text),
            ("checked", Text),
            ("disabled", Text),
            ("inputmode", Text),
            ("maxlength", Text),
            ("minlength", Text),
            ("name", Text),
            ("pattern", Text),
            ("placeholder", Text),
            ("readonly", Text),
            ("required", Text),
            ("size", Text),
            ("spellcheck", Text),
            (
                "type",
                Word(&[
                    "button", "checkbox", "email", "hidden", "number", "password", "radio", "reset",
                    "search", "submit", "tel", "text", "url",
                ]),
            ),
            ("value", Text),
        ],
    ),
    ("ins", &[("datetime", Text)]),
    ("label", &[("for", Text)]),
    ("li", &[("value", Text)]),
    ("ol", &[("reversed", Text), ("start", Text), ("type", Text)]),
    ("optgroup", &[("disabled", Text), ("label", Text)]),
    ("option", &[("disabled", Text), ("label", Text), ("selected", Text), ("value", Text)]),
    (
        "select",
        &[("autocomplete", Text), ("disabled", Text), ("name", Text), ("required", Text), ("size", Text)],
    ),
    ("style", &[("media", Text), ("nonce", Text), ("type", Word(&["text/css"]))]),
    ("td", &[("colspan", Text), ("headers", Text), ("rowspan", Text)]),
    ("th", &[("colspan", Text), ("headers", Text), ("rowspan", Text), ("scope", Text)]),
    ("time", &[("datetime", Text)]),
];

/// The allowed names of `<meta>`.
const META: [&str; 8] = [
    "application-name",
    "author",
    "color-scheme",
    "description",
    "format-detection",
    "robots",
    "theme-color",
    "viewport",
];

/// The elements of a drawing.
const DRAWING_ELEMENTS: [&str; 14] = [
    "circle",
    "defs",
    "ellipse",
    "g",
    "line",
    "linearGradient",
    "path",
    "polygon",
    "polyline",
    "radialGradient",
    "rect",
    "stop",
    "svg",
    "text",
];

/// The attributes of drawings.
const DRAWING_ATTRIBUTES: [&str; 54] = [
    "clip-rule",
    "cx",
    "cy",
    "d",
    "dominant-baseline",
    "dx",
    "dy",
    "fill",
    "fill-opacity",
    "fill-rule",
    "focusable",
    "font-family",
    "font-size",
    "font-weight",
    "fx",
    "fy",
    "gradientTransform",
    "gradientUnits",
    "height",
    "letter-spacing",
    "offset",
    "opacity",
    "pathLength",
    "points",
    "preserveAspectRatio",
    "r",
    "rx",
    "ry",
    "shape-rendering",
    "spreadMethod",
    "stop-color",
    "stop-opacity",
    "stroke",
    "stroke-dasharray",
    "stroke-dashoffset",
    "stroke-linecap",
    "stroke-linejoin",
    "stroke-miterlimit",
    "stroke-opacity",
    "stroke-width",
    "text-anchor",
    "text-rendering",
    "textLength",
    "transform",
    "vector-effect",
    "version",
    "viewBox",
    "width",
    "x",
    "x1",
    "x2",
    "y",
    "y1",
    "y2",
];

/// The attributes of an element of HTML; `None` for an element that pages do not have.
pub fn attributes_of(element: &str) -> Option<Attributes> {
    if PLAIN.contains(&element) {
        return Some(&[]);
    }
    ELEMENTS.iter().find(|(name, _)| *name == element).map(|(_, attributes)| *attributes)
}

/// Whether drawings have the element.
pub fn is_drawn(element: &str) -> bool {
    DRAWING_ELEMENTS.contains(&element)
}

/// The kind of an attribute; `None` for one that the element does not have.
pub fn kind_of(own: Attributes, is_drawn: bool, name: &str) -> Option<AttributeKind> {
    let known = own.iter().chain(ALL).find(|(known, _)| *known == name).map(|(_, means)| *means);
    let is_open = || {
        let more = name.strip_prefix("aria-").or_else(|| name.strip_prefix("data-"))?;
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        // the options of an authenticator belong to the script's own element
        (!more.is_empty() && more.bytes().all(fits) && name != "data-options").then_some(Text)
    };
    let of_drawing = || match name {
        "xmlns" => Some(Namespace),
        _ => DRAWING_ATTRIBUTES.contains(&name).then_some(Drawing),
    };
    known.or_else(is_open).or_else(|| if is_drawn { of_drawing() } else { None })
}

/// The attributes of a `<meta>` or `<link>` by its own attributes; `None` where pages have no such element.
pub fn attributes_of_head(element: &str, value: impl Fn(&str) -> Option<String>) -> Option<Attributes> {
    let lower = |name: &str| value(name).unwrap_or_default().trim().to_ascii_lowercase();
    match element {
        "meta" if value("charset").is_some_and(|charset| charset.eq_ignore_ascii_case("utf-8")) => {
            Some(&[("charset", Text)])
        }
        // a page must not send its address to others
        "meta" if lower("name") == "referrer" => {
            (lower("content") == "no-referrer").then_some(&[("name", Text), ("content", Text)][..])
        }
        "meta" if META.contains(&lower("name").as_str()) => {
            Some(&[("name", Text), ("content", Text), ("media", Text)])
        }
        "link" => match lower("rel").as_str() {
            "stylesheet" => Some(&[("rel", Text), ("href", File), ("media", Text), ("type", Text)]),
            "icon" | "shortcut icon" | "apple-touch-icon" => {
                Some(&[("rel", Text), ("href", Picture), ("sizes", Text), ("type", Text)])
            }
            _ => None,
        },
        _ => None,
    }
}
