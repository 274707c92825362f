//! The filters, tests and functions of views. MiniJinja's own are not loaded, so these are all.
//!
//! None lengthens a text beyond a known bound.

use minijinja::{
    Environment, Error, ErrorKind, State, Value,
    value::{Kwargs, Rest, ValueKind},
};

/// The names of the filters.
pub(super) const FILTERS: [&str; 14] = [
    "colour", "count", "d", "default", "e", "escape", "fill", "ink", "length", "lower", "of", "trim",
    "upper", "url",
];

/// The names of the tests.
pub(super) const TESTS: [&str; 3] = ["defined", "none", "undefined"];

/// The names of the functions.
pub(super) const FUNCTIONS: [&str; 1] = ["range"];

/// The most characters of a text that was filled in or whose case was changed.
const LONGEST: usize = 16_384;

/// The most numbers of a range.
const MAX_NUMBERS: i64 = 10_000;

/// Adds all filters, tests and functions.
pub(super) fn add_to(environment: &mut Environment) {
    for name in ["d", "default"] {
        environment.add_filter(name, default);
    }
    for name in ["count", "length"] {
        environment.add_filter(name, length);
    }
    // every value is escaped when it is written; templates from other systems may use the filter
    for name in ["e", "escape"] {
        environment.add_filter(name, |value: Value| value);
    }
    environment.add_filter("fill", |text: &str, values: Kwargs| fill(text, &values));
    environment.add_filter("of", of);
    environment.add_filter("lower", |text: &str| bounded(text.to_lowercase()));
    environment.add_filter("upper", |text: &str| bounded(text.to_uppercase()));
    environment.add_filter("trim", |text: &str| bounded(text.trim().to_owned()));
    environment.add_filter("url", url);
    environment.add_filter("colour", colour);
    environment.add_filter("ink", ink);
    environment.add_test("defined", |value: &Value| !value.is_undefined());
    environment.add_test("undefined", Value::is_undefined);
    environment.add_test("none", Value::is_none);
    environment.add_function("range", range);
    environment.set_formatter(write);
}

/// Writes text, numbers and booleans; a list or a map is an error.
fn write(out: &mut minijinja::Output, state: &mut State, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::String | ValueKind::Number | ValueKind::Bool | ValueKind::Undefined => {
            minijinja::escape_formatter(out, state, value)
        }
        kind => Err(invalid(format!("a {kind} cannot be written"))),
    }
}

fn invalid(detail: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidOperation, detail.into())
}

fn bounded(text: String) -> Result<String, Error> {
    if text.len() > LONGEST { Err(invalid("the text is too long")) } else { Ok(text) }
}

fn default(value: &Value, otherwise: Rest<Value>) -> Value {
    if value.is_undefined() || value.is_none() {
        otherwise.0.into_iter().next().unwrap_or_else(|| Value::from(""))
    } else {
        value.clone()
    }
}

fn length(value: &Value) -> Result<usize, Error> {
    let characters = value.as_str().map(|text| text.chars().count());
    characters.or_else(|| value.len()).ok_or_else(|| invalid("this has no length"))
}

/// Replaces names in braces by their values: `"at least {count}" | fill(count=8)`.
fn fill(text: &str, values: &Kwargs) -> Result<String, Error> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').ok_or_else(|| invalid("the text has an open brace"))?;
        let value: Value = values.get(name)?;
        if !matches!(value.kind(), ValueKind::String | ValueKind::Number) {
            return Err(invalid(format!("{name} must be a text or a number")));
        }
        filled = bounded(filled)?;
        filled.push_str(before);
        filled.push_str(&value.to_string());
        rest = after;
    }
    filled.push_str(rest);
    bounded(filled)
}

/// The errors of one field: `errors | of("username")`.
fn of(errors: &Value, field: &str) -> Result<Vec<Value>, Error> {
    let of_field = |error: &Value| error.get_attr("field").is_ok_and(|own| own.as_str() == Some(field));
    Ok(errors.try_iter()?.filter(of_field).collect())
}

/// An `http`, `https`, `otpauth` (an authenticator's) or relative URL unchanged, and nothing for any other: in a
/// link, `javascript:` would run a script.
pub(super) fn url(text: &str) -> String {
    let address = text.trim();
    let scheme = address.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    let of_the_web = matches!(scheme.as_deref(), Some("https" | "http" | "otpauth"));
    let other_host = address.starts_with("//") || address.starts_with("/\\");
    let of_this_server = address.starts_with(['/', '?']) && !other_host;
    let has_control = address.contains(char::is_control);
    if (of_the_web || of_this_server) && !has_control { address.to_owned() } else { String::new() }
}

/// Red, green and blue of `#rgb` or `#rrggbb`.
fn channels(colour: &str) -> Result<[u8; 3], Error> {
    let refused = || invalid("a colour is written #rgb or #rrggbb");
    let digits = colour.strip_prefix('#').ok_or_else(refused)?;
    let digits: Option<Vec<u8>> =
        digits.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    match digits.as_deref() {
        Some([red, green, blue]) => Ok([red * 17, green * 17, blue * 17]),
        Some([r, red, g, green, b, blue]) => Ok([r * 16 + red, g * 16 + green, b * 16 + blue]),
        _ => Err(refused()),
    }
}

/// A colour unchanged; anything else fails, because inside `<style>` HTML escaping does not protect.
fn colour(colour: &str) -> Result<String, Error> {
    channels(colour).map(|_| colour.to_owned())
}

/// Black or white, whichever is easier to read on a colour.
fn ink(colour: &str) -> Result<&'static str, Error> {
    let [red, green, blue] = channels(colour)?.map(|part| {
        let part = f64::from(part) / 255.0;
        if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
    });
    // WCAG's relative luminance; at 0.179 black and white have the same contrast
    let luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    Ok(if luminance > 0.179 { "#000" } else { "#fff" })
}

/// The numbers from 0 to below one number, or from one number to below another.
fn range(first: i64, second: Option<i64>) -> Result<Value, Error> {
    let (from, to) = second.map_or((0, first), |second| (first, second));
    if to.saturating_sub(from) > MAX_NUMBERS {
        return Err(invalid(format!("a range has at most {MAX_NUMBERS} numbers")));
    }
    Ok(Value::make_iterable(move || from..to))
}

#[cfg(test)]
mod tests {
    use super::{colour, ink, url};

    #[test]
    fn addresses() {
        for good in ["https://a", "HTTP://a", "otpauth://totp/a", "/a", "?a=b", "/", "https://ä.example/?a#b"]
        {
            assert_eq!(url(good), good);
        }
        for invalid in
            ["javascript:alert(1)", " javascript:x", "//a", "/\\a", "data:text/html,x", "a", "", "/a\nb"]
        {
            assert_eq!(url(invalid), "", "{invalid}");
        }
    }

    #[test]
    fn colours() {
        assert_eq!(colour("#1a2B3c").unwrap(), "#1a2B3c");
        for invalid in ["red", "#12", "#1234567", "#12g", "#000;}", "", "#é00"] {
            assert!(colour(invalid).is_err(), "{invalid}");
        }
        for (back, front) in [("#fff", "#000"), ("#000", "#fff"), ("#ff0", "#000"), ("#22406b", "#fff")] {
            assert_eq!(ink(back).unwrap(), front);
        }
    }
}
