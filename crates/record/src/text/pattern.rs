//! The rules of texts as regular expressions, for the OpenAPI document.

/// The control characters of both blocks, in a class of a regular expression.
macro_rules! controls {
    () => {
        r"\x00-\x1f\x7f-\x9f"
    };
}
/// Characters that no line contains: control characters and line separators.
macro_rules! breaks {
    () => {
        concat!(controls!(), r"\u2028\u2029")
    };
}
/// The invisible code points (`Default_Ignorable_Code_Point`) of the basic plane: where patterns are read as
/// ECMA-262 without the flag `u`, a range beyond it is an error. The rules include all of them.
macro_rules! hidden {
    () => {
        concat!(
            r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f",
            r"\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8"
        )
    };
}
/// A letter of an atom before the `@` of an address (RFC 5322, RFC 6531).
macro_rules! atom {
    () => {
        concat!(r#"[^\s()<>\[\]:;,.@"\\"#, breaks!(), hidden!(), "]")
    };
}
/// A label of a domain: for non-ASCII characters, more is checked than a pattern can express.
macro_rules! label {
    () => {
        r"[A-Za-z0-9\u00a1-\uffff]([A-Za-z0-9_\u00a1-\uffff-]{0,61}[A-Za-z0-9\u00a1-\uffff])?"
    };
}
/// The end of a line, which is no white space.
macro_rules! rest {
    () => {
        concat!("([^", breaks!(), r"]*[^\s", breaks!(), "])?")
    };
}
/// White space that is trimmed.
macro_rules! blanks {
    () => {
        r"[\x09-\x0d\x20]*"
    };
}

pub const LINE: Option<&str> =
    Some(concat!(r"^[^\s", breaks!(), r"]([^", breaks!(), r"]*[^\s", breaks!(), r"])?$"));
/// One line, optionally with white space around it, which is trimmed.
pub const TYPED: Option<&str> = Some(concat!(
    "^",
    blanks!(),
    r"[^\s",
    breaks!(),
    "]([^",
    breaks!(),
    r"]*[^\s",
    breaks!(),
    "])?",
    blanks!(),
    "$"
));
/// One line of visible letters.
pub const VISIBLE: Option<&str> = Some(concat!(
    "^",
    blanks!(),
    r"[^\s",
    breaks!(),
    hidden!(),
    "]([^",
    breaks!(),
    hidden!(),
    r"]*[^\s",
    breaks!(),
    hidden!(),
    "])?",
    blanks!(),
    "$"
));
pub const FREE: Option<&str> = Some(r"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*$");
pub const MAIL: Option<&str> = Some(concat!(
    "^",
    blanks!(),
    "(",
    atom!(),
    r"+(\.",
    atom!(),
    r#"+)*|"([^\s"\\@"#,
    breaks!(),
    hidden!(),
    r#"]|\\[!-?A-~])+")@"#,
    label!(),
    r"(\.",
    label!(),
    ")*",
    blanks!(),
    "$"
));
/// At least three digits in total, before or after the mark of an extension.
pub const PHONE: Option<&str> = Some(concat!(
    r"^[ +()./-]*(",
    r"([0-9][ +()./-]*){3,}((;ext=|[eE][xX][tT]\.?|[xX])[0-9 +()./-]*)?",
    r"|([0-9][ +()./-]*){0,2}(;ext=|[eE][xX][tT]\.?|[xX])[ +()./-]*([0-9][ +()./-]*){3,}",
    r"|[0-9][ +()./-]*(;ext=|[eE][xX][tT]\.?|[xX])[ +()./-]*([0-9][ +()./-]*){2}",
    r"|([0-9][ +()./-]*){2}(;ext=|[eE][xX][tT]\.?|[xX])[ +()./-]*([0-9][ +()./-]*){1,2}",
    r")$"
));
/// One line that begins with `http:`, `https:` or no scheme: it has no colon, or a character that no scheme has
/// before its first one.
pub const PERSONAL: Option<&str> = Some(concat!(
    "^",
    blanks!(),
    "([hH][tT][tT][pP][sS]?:",
    rest!(),
    r"|[^\sA-Za-z",
    breaks!(),
    "]",
    rest!(),
    "|[A-Za-z][A-Za-z0-9+.-]*([^A-Za-z0-9+.:",
    breaks!(),
    "-]",
    rest!(),
    ")?)",
    blanks!(),
    "$"
));
pub const WEB: Option<&str> = Some(concat!(
    r"^[\x09-\x0d\x20]*([hH][tT][tT][pP][sS]://[A-Za-z0-9._-]+|[hH][tT][tT][pP]://(localhost|127\.0\.0\.1|\[::1\]))",
    r"(:(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[0-5]?[0-9]{1,4}))?",
    r"([/?#][^\s",
    breaks!(),
    r"]*)?[\x09-\x0d\x20]*$"
));
pub const LOCALE: Option<&str> = Some(r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$");
pub const ZONE: Option<&str> = Some(r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$");
pub const KEY: Option<&str> = LINE;
pub const OPAQUE: Option<&str> = None;
pub const SIGNED: Option<&str> = Some(r"^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$");
